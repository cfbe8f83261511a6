//! Execs that wait for people: asked, answered, sent on to the queue or ended. What waits is
//! durable, so that an answer may come after a restart, or at another server.

use std::sync::Arc;
use std::time::Instant;

use glovebox_backend::Cancel;
use glovebox_model::{
    Answer, Approval, ApprovalState, Call, Code, Error, Exec, ExecId, Party, Reply, Result,
    SpaceId, Stage, Status, Via, visible,
};
use glovebox_policy::Config;
use glovebox_store::{Admitted, Adopted, NOBODY, NewGrant, Opened, RequestKey, Terms};
use glovebox_workspace::change::TreeState;
use glovebox_workspace::{Happened, Journal, Project};
use jiff::Timestamp;
use tokio::sync::watch;

use super::admission::Account;
use super::answered::Settled;
use super::live::Live;
use super::perform::{Start, Waiting};
use super::sealed_call::SealedCall;
use super::{Dispatcher, locked};
use crate::approvals::{ApprovalRequest, Replayed, answered, denied, expired, gone_by, put_off};
use crate::path::Draft;
use crate::path::Planned;
use crate::visibility::Seen;

/// So many askers of one space can use their share of its places to the full.
const ASKERS: u32 = 4;

/// Everything of an exec that waits for people.
#[derive(Debug)]
pub(super) struct Awaiting {
    pub(super) opened: Opened,
    pub(super) record: Exec,
    pub(super) sealed: Vec<u8>,
    pub(super) project: Project,
    pub(super) live: Arc<Live>,
    pub(super) cancel: Cancel,
    pub(super) journal: Journal,
    /// The token that asks, by its name.
    pub(super) asker: String,
    /// The workspace as it was when people were asked, where the answer is bound to it: to tell what
    /// changed. Unknown after a restart.
    pub(super) state: Option<TreeState>,
    pub(super) since: Instant,
}

/// What is asked for, and by whom.
pub(super) struct Request<'a> {
    pub(super) call: Call,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) by: &'a Party,
    pub(super) key: Option<&'a RequestKey>,
}

impl Dispatcher {
    /// Writes down that an exec waits for people. `Err` inside: the same request was here before.
    pub(super) fn ask_people(
        &self,
        draft: &Draft,
        project: Project,
        approval_request: &ApprovalRequest,
        request: Request<'_>,
    ) -> Result<Result<Exec, ExecId>> {
        // One at a time, or each of many at once would find the same place free.
        let _asking = locked(&self.asking);
        self.ensure_room_to_wait(&approval_request.assessed.call().ids.space_id, request.by)?;
        let settings = self.engine.config().approvals();
        let approval = approval_request.approval(
            &draft.exec_id,
            request.by,
            request.stdin.as_deref(),
            settings,
        )?;
        let record = draft.awaiting(approval_request, &approval.id);
        let kept = SealedCall {
            call: request.call,
            stdin: request.stdin,
            narrowed: None,
            consent: None,
            scripts: None,
            policy: None,
        };
        let space = record.ids.space_id.clone();
        let sealed = self.seal()?.close(&space, &record.exec_id, &kept)?;
        let asker = request.by.name.clone();
        let waits = self.attend_to(&record, project, asker)?;
        let terms = Terms {
            key: request.key,
            budget: self.budget_of(&record),
            sealed_call: Some(&sealed),
        };
        let admitted = self
            .store()
            .and_then(|store| store.await_approval(self.owner(), &record, terms, &approval));
        let opened = match admitted {
            Ok(Admitted::Opened(opened)) => opened,
            Ok(Admitted::Existing(id)) => {
                self.forget(&waits.live);
                return Ok(Err(id));
            }
            Err(error) => {
                self.forget(&waits.live);
                return Err(error);
            }
        };
        let state = approval_request.binding.state_to_compare();
        self.wait_for_people(waits, opened, record.clone(), sealed, state);
        Ok(Ok(record))
    }

    /// No space can keep the others from asking, and no agent the others of its space. What a
    /// request says of its agent does not count here; its token does.
    fn ensure_room_to_wait(&self, space: &SpaceId, by: &Party) -> Result<()> {
        let settings = locked(&self.settings).0.clone();
        let most = settings.max_queued.max(1);
        let share = settings.max_queued_per_space.unwrap_or((most / 4).max(1));
        let waiting = locked(&self.awaiting);
        let of_space = || waiting.values().filter(|it| it.live.space == *space);
        let of_asker = of_space().filter(|it| it.asker == by.name).count();
        let is_full = |count: usize, most: u32| u32::try_from(count).map_or(true, |it| it >= most);
        if is_full(of_asker, (share / ASKERS).max(1)) {
            return Err(put_off(&format!("`{}` has", visible(&by.name))));
        }
        if is_full(of_space().count(), share) {
            return Err(put_off("this space has"));
        }
        if is_full(waiting.len(), most) {
            return Err(put_off("the server has"));
        }
        Ok(())
    }

    pub(super) fn wait_for_people(
        &self,
        mut waits: Waits,
        opened: Opened,
        record: Exec,
        sealed: Vec<u8>,
        state: Option<TreeState>,
    ) {
        waits.note();
        self.keep(waits.with(opened, record, sealed, state));
    }

    fn keep(&self, awaiting: Awaiting) {
        let (id, live) = (awaiting.record.exec_id.clone(), Arc::clone(&awaiting.live));
        locked(&self.live).insert(id.clone(), live);
        locked(&self.awaiting).insert(id, awaiting);
        self.news.send_modify(|number| *number += 1);
    }

    pub(super) fn attend_to(
        &self,
        record: &Exec,
        project: Project,
        asker: String,
    ) -> Result<Waits> {
        let account = Account {
            space: record.ids.space_id.clone(),
            user: record.ids.user_id.clone(),
        };
        let id = (account.space.clone(), record.exec_id.clone());
        let (live, cancel) = Live::new(id, project.id().clone(), account)?;
        Ok(Waits {
            journal: project.journal(&live.exec)?,
            project,
            live: Arc::new(live),
            cancel,
            asker,
        })
    }

    /// Those that waited when another server, or this one before its restart, went away.
    pub(super) fn await_again(&self, adopted: Adopted) -> Result<()> {
        let Adopted {
            opened,
            record,
            sealed_call,
        } = adopted;
        if !self.engine.workspaces.can_take(&record) {
            return self.end_of_another(opened, record);
        }
        if record.session.is_some() {
            return self.end_without_keeper(opened, record);
        }
        let space = &record.ids.space_id;
        let project = self
            .seal()
            .and_then(|seal| seal.open(space, &record.exec_id, &sealed_call))
            .and_then(|kept| {
                let mut call = kept.call;
                self.engine.sandboxes.place(&mut call)?;
                self.engine.workspaces.project(&call)
            });
        let project = match project {
            Ok(project) => project,
            Err(error) => {
                self.store()?.close(opened, ended(record, error))?;
                return Ok(());
            }
        };
        let asker = match &record.approval_id {
            Some(id) => self.store()?.approval(Some(space), id).ok(),
            None => None,
        };
        let asker = asker.map_or_else(String::new, |it| it.requested_by);
        let waits = self.attend_to(&record, project, asker)?;
        self.keep(waits.with(opened, record, sealed_call, None));
        Ok(())
    }

    /// Whether nothing can come of it any more, wherever it waits.
    pub(super) fn is_over(&self, exec: &Exec) -> Result<bool> {
        Ok(self.why_over(exec)?.is_some())
    }

    /// Of a session that waited, and whose keeper died: people are asked no longer.
    pub(super) fn end_without_keeper(&self, opened: Opened, record: Exec) -> Result<()> {
        let message = "the process that would have kept this session is gone";
        let error = Error::new(Code::Lost, Stage::Admit, message).hint("start the session again");
        self.store()?.close(opened, ended(record, error))?;
        Ok(())
    }

    /// Of one that could not be carried out here, and was taken to be ended: its request is over, or
    /// somebody canceled it.
    pub(super) fn end_of_another(&self, opened: Opened, mut record: Exec) -> Result<()> {
        let record = match self.why_over(&record)? {
            Some(error) => ended(record, error),
            None => {
                record.status = Status::Canceled;
                record.ended_at = Some(Timestamp::now());
                record
            }
        };
        self.store()?.close(opened, record)?;
        Ok(())
    }

    fn why_over(&self, exec: &Exec) -> Result<Option<Error>> {
        let waits = exec.status == Status::AwaitingApproval;
        let Some(id) = exec.approval_id.as_ref().filter(|_| waits) else {
            return Ok(None);
        };
        let approval = self.store()?.approval(Some(&exec.ids.space_id), id)?;
        Ok(match approval.state {
            ApprovalState::Pending | ApprovalState::Approved => None,
            ApprovalState::Denied => Some(denied(&approval)),
            ApprovalState::Expired => Some(expired(&approval)),
            ApprovalState::Void | ApprovalState::Used => {
                Some(gone_by(&approval, &approval.ask.scripts))
            }
        })
    }

    /// An answer of a person to one request of their space. What becomes of the exec follows.
    pub fn reply(
        self: &Arc<Self>,
        approval: &Seen<Approval>,
        by: Party,
        via: Via,
        answer: Answer,
    ) -> Result<Approval> {
        let (store, id) = (self.store()?, &approval.id);
        let space = &approval.space_id;
        let grant = self.check_answer(approval, &answer)?;
        let now = Timestamp::now();
        let reply = Reply {
            by: by.name,
            user_id: by.user_id,
            at: now,
            via,
            answer,
        };
        let approval = match grant {
            Some(grant) => store.reply_granting(id, reply, grant, now)?,
            None => store.reply(id, reply, now)?,
        };
        if approval.state != ApprovalState::Pending {
            self.settle_answer(&approval);
        }
        self.news.send_modify(|number| *number += 1);
        // Used by now, if it was approved and its exec could go on.
        store.approval(Some(space), id)
    }

    /// What cannot be done is said to whoever answers, and the request goes on waiting.
    fn check_answer(&self, approval: &Approval, answer: &Answer) -> Result<Option<NewGrant>> {
        match answer {
            Answer::AllowOnce { .. } | Answer::Deny { .. } => return Ok(None),
            // A command asks nothing that waits: the process that runs the exec weighs it.
            Answer::Narrow { .. } if self.spawner.is_none() => return Ok(None),
            Answer::AllowKind { .. } | Answer::Narrow { .. } | Answer::Edit { .. } => {}
        }
        if approval.state != ApprovalState::Pending {
            // The store says best why not.
            return Ok(None);
        }
        // Nobody else waits while the answer is weighed.
        let sealed = locked(&self.awaiting)
            .get(&approval.exec_id)
            .map(|it| it.sealed.clone());
        let Some(sealed) = sealed else {
            let message = format!("another server waits for the answer to `{}`", approval.id);
            return Err(Error::new(Code::Conflict, Stage::Obtain, message).hint(
                "allow it once or deny it here, or answer at the server that was asked to run it",
            ));
        };
        let (space, exec) = (&approval.space_id, &approval.exec_id);
        let mut call = self.seal()?.open(space, exec, &sealed)?.call;
        self.engine.sandboxes.place(&mut call)?;
        let project = self.engine.workspaces.project(&call)?;
        let draft = Draft::again(&call, project.id().clone(), exec.clone())?;
        if let Answer::AllowKind { expires_at, .. } = answer {
            let approval_request = self.engine.approval_request_again(&call, &project)?;
            let settings = self.engine.config().approvals();
            return approval_request
                .map(|it| it.new_grant(approval, *expires_at, settings))
                .transpose();
        }
        let mut trial = approval.clone();
        trial.replies.push(Reply {
            by: String::new(),
            user_id: None,
            at: Timestamp::now(),
            via: Via::Rest,
            answer: answer.clone(),
        });
        let wanted = answered(call, &trial);
        let planned = self
            .engine
            .plan(&draft.of(&wanted.call), &project, wanted)?;
        if let Planned::Ready(plan) = planned {
            self.engine.policy().check_quorum(&plan, approval)?;
        }
        Ok(None)
    }

    /// Sends an exec on whose request has been answered, or ends it.
    pub(super) fn settle_answer(self: &Arc<Self>, approval: &Approval) {
        if self.is_closed() {
            // It is written down; whoever opens next finds it.
            return;
        }
        let awaiting = locked(&self.awaiting).remove(&approval.exec_id);
        // Another server's, or settled already.
        let Some(awaiting) = awaiting else { return };
        if awaiting.record.approval_id.as_ref() != Some(&approval.id) {
            locked(&self.awaiting).insert(approval.exec_id.clone(), awaiting);
            return;
        }
        match approval.state {
            ApprovalState::Pending => {
                locked(&self.awaiting).insert(approval.exec_id.clone(), awaiting);
            }
            ApprovalState::Approved => self.send_on(awaiting, approval),
            ApprovalState::Denied => self.end_waiting(awaiting, denied(approval)),
            ApprovalState::Expired => self.end_waiting(awaiting, expired(approval)),
            ApprovalState::Void | ApprovalState::Used => {
                self.end_waiting(awaiting, gone_by(approval, &approval.ask.scripts));
            }
        }
        self.news.send_modify(|number| *number += 1);
    }

    fn send_on(self: &Arc<Self>, awaiting: Awaiting, approval: &Approval) {
        let (plan, sealed) = match self.approved_plan(&awaiting, approval) {
            Ok(Settled::Plan(plan, sealed)) => (*plan, sealed),
            Ok(Settled::Changed(approval_request, stdin)) => {
                return self.ask_anew(awaiting, approval, &approval_request, stdin.as_deref());
            }
            Err(error) => return self.end_waiting(awaiting, error),
        };
        let mut record = plan.record().clone();
        record.status = Status::Queued;
        let queued = self.store().and_then(|store| {
            let (owner, opened) = (self.owner(), &awaiting.opened);
            let digest = &approval.digest;
            store.queue_approved(owner, opened, &record, Some(&sealed), &approval.id, digest)
        });
        if let Err(error) = queued {
            if self.is_queued(approval) {
                // It was written; only the news of it was lost.
            } else if self.tries_again(&error) {
                // It is found again by its answer in the next round.
                locked(&self.awaiting).insert(approval.exec_id.clone(), awaiting);
                return;
            } else {
                return self.end_waiting(awaiting, error);
            }
        }
        let stdin = self
            .seal()
            .and_then(|seal| seal.open(&approval.space_id, &approval.exec_id, &sealed))
            .ok()
            .and_then(|kept| kept.stdin);
        let live = Arc::clone(&awaiting.live);
        let waiting = Waiting {
            plan,
            project: awaiting.project,
            live: awaiting.live,
            cancel: awaiting.cancel,
            journal: awaiting.journal,
            stdin,
            start: Start::Queued(awaiting.opened),
            since: Instant::now(),
            span: tracing::Span::current(),
        };
        let left_over =
            locked(&self.admission).rejoin(live.account.clone(), live.exec.clone(), waiting);
        if left_over.is_some() {
            // The server shut down meanwhile; it waits for the next start.
            self.drop_live(&live);
            live.end();
            let left = self
                .store()
                .and_then(|store| store.adopt_queued(self.owner(), NOBODY));
            if let Err(error) = left {
                tracing::warn!(exec_id = %live.exec, %error, "it could not be left to others");
            }
        }
        self.call_next();
    }

    fn is_queued(&self, approval: &Approval) -> bool {
        let found = self
            .store()
            .and_then(|store| store.get(&approval.space_id, &approval.exec_id));
        found.is_ok_and(|exec| exec.status == Status::Queued)
    }

    pub(super) fn void(&self, approval: &Approval, why: &str) {
        let voided = self
            .store()
            .and_then(|store| store.void_approval(&approval.id, why));
        if let Err(error) = voided {
            tracing::warn!(approval = %approval.id, %error, "it could not be made void");
        }
    }

    pub(super) fn end_waiting(&self, awaiting: Awaiting, error: Error) {
        let Awaiting {
            opened,
            record,
            live,
            since,
            ..
        } = awaiting;
        self.write_end(opened, ended(record, error), since);
        self.drop_live(&live);
        live.end();
    }

    /// `None` when it does not wait here.
    pub(super) fn cancel_awaiting(&self, space: &SpaceId, id: &ExecId) -> Option<Result<Exec>> {
        let mut waiting = locked(&self.awaiting);
        if waiting.get(id).is_none_or(|it| it.live.space != *space) {
            return None;
        }
        let awaiting = waiting.remove(id)?;
        drop(waiting);
        let mut record = awaiting.record.clone();
        record.status = Status::Canceled;
        record.ended_at = Some(Timestamp::now());
        let closed = self
            .store()
            .map(|store| store.close(awaiting.opened, record));
        let live = awaiting.live;
        let result = match closed {
            Ok(Ok(record)) => {
                self.tell_end(&record, awaiting.since.elapsed());
                Ok(record)
            }
            Ok(Err(unclosed)) if unclosed.error.code == Code::Conflict => self.record(space, id),
            Ok(Err(unclosed)) => {
                let again = Awaiting {
                    opened: unclosed.opened,
                    live,
                    ..awaiting
                };
                locked(&self.awaiting).insert(id.clone(), again);
                return Some(Err(unclosed.error));
            }
            Err(error) => Err(error),
        };
        self.drop_live(&live);
        live.end();
        self.news.send_modify(|number| *number += 1);
        Some(result)
    }

    /// Called in every round: answers that came elsewhere, and time that is over.
    pub(super) fn look_for_answers(self: &Arc<Self>) -> Result<()> {
        let store = self.store()?;
        if !store.expire_approvals(Timestamp::now())?.is_empty() {
            self.news.send_modify(|number| *number += 1);
        }
        if locked(&self.awaiting).is_empty() {
            return Ok(());
        }
        for approval in store.approvals_decided(self.owner())? {
            self.settle_answer(&approval);
        }
        Ok(())
    }

    /// Leaves them to whoever opens next.
    pub(super) fn leave_awaiting(&self) -> usize {
        let all = std::mem::take(&mut *locked(&self.awaiting));
        for awaiting in all.values() {
            self.drop_live(&awaiting.live);
            awaiting.live.end();
        }
        all.len()
    }

    /// Changes whenever a request was made, answered or ended here.
    pub fn approval_news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// As [`crate::Approvals::replay`].
    pub fn replay(&self, space: &SpaceId, policy: &Config, most: u64) -> Result<Replayed> {
        self.engine.approvals.replay(space, policy, most)
    }

    /// Whether an answer that an agent's host brings counts, if the operator said so or not.
    pub fn elicitation(&self) -> Option<bool> {
        self.engine.config().approvals().elicitation
    }

    /// Nobody is asked: for development alone.
    pub fn approves_by_itself(&self) -> bool {
        self.engine.config().approvals().auto
    }
}

/// What an exec that waits needs beside its row.
pub(super) struct Waits {
    journal: Journal,
    project: Project,
    live: Arc<Live>,
    cancel: Cancel,
    asker: String,
}

impl Waits {
    fn note(&mut self) {
        self.journal.add(
            Timestamp::now(),
            Happened::State {
                status: Status::AwaitingApproval,
                queue_position: None,
            },
        );
        self.live.tell(self.journal.written());
    }

    fn with(
        self,
        opened: Opened,
        record: Exec,
        sealed: Vec<u8>,
        state: Option<TreeState>,
    ) -> Awaiting {
        Awaiting {
            opened,
            record,
            sealed,
            project: self.project,
            live: self.live,
            cancel: self.cancel,
            journal: self.journal,
            asker: self.asker,
            state,
            since: Instant::now(),
        }
    }
}

fn ended(mut record: Exec, error: Error) -> Exec {
    record.status = match error.code {
        Code::PolicyDenied | Code::Denied | Code::Expired | Code::ApprovalUnavailable => {
            Status::PolicyDenied
        }
        Code::Lost => Status::Lost,
        _ => Status::Error,
    };
    record.ended_at = Some(Timestamp::now());
    record.error = Some(error.of_exec(record.exec_id.clone()));
    record
}
