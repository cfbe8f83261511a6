//! Taking an exec on: policy, a place, a durable row; then it runs or waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Instant;

use glovebox_backend::Cancel;
use glovebox_model::{Call, Code, Error, Exec, ExecId, Mode, Party, Result, Stage, Status};
use glovebox_store::{Admitted, BudgetTerms, NOBODY, Refused, RequestKey, Terms};
use glovebox_workspace::{Happened, Journal, Project};
use jiff::Timestamp;

use super::admission::{Account, Admission};
use super::awaiting::Request;
use super::live::Live;
use super::perform::{Start, Waiting};
use super::sealed_call::SealedCall;
use super::{Dispatcher, locked};
use crate::path::{self, Draft, Plan};
use crate::path::{Planned, refusal};
use crate::stage;
use crate::visibility::{Seen, Viewer};

/// What a caller sends.
#[derive(Debug)]
pub struct Submission {
    pub call: Call,
    pub stdin: Option<Vec<u8>>,
    /// Why it is refused whatever policy says; it is recorded all the same.
    pub objection: Option<Error>,
    pub key: Option<RequestKey>,
    /// Who sends it: they cannot approve it themselves.
    pub by: Party,
    /// What is there for them to name.
    pub eyes: Viewer,
}

#[derive(Debug)]
pub struct Submitted {
    /// As it is now: waiting, running, or refused by policy.
    pub exec: Seen<Exec>,
    /// The same request was here before; nothing was started.
    pub replayed: bool,
}

/// Everything of an exec that may start.
pub(super) struct Candidate {
    plan: Plan,
    project: Project,
    pub(super) live: Arc<Live>,
    cancel: Cancel,
    journal: Journal,
    stdin: Option<Vec<u8>>,
}

impl Dispatcher {
    /// Durable when it returns.
    pub fn submit(self: &Arc<Self>, submission: Submission) -> Result<Submitted> {
        if self.is_closed() {
            return Err(closed());
        }
        if self.is_cut_off() {
            return Err(cut_off());
        }
        if let Some(key) = &submission.key {
            let space = &submission.call.ids.space_id;
            if let Some(id) = self.store()?.replay(space, key)? {
                return self.replayed(&submission.call, &id);
            }
        }
        let Submission {
            mut call,
            stdin,
            objection,
            key,
            by,
            eyes,
        } = submission;
        self.engine.workspaces.lead(&mut call);
        self.may_name(&eyes, &call)?;
        if call.session.is_some() && self.kept.get().is_none() {
            // Without a keeper nobody could talk to it.
            let message = "a session is not started as an exec";
            return Err(Error::new(Code::Conflict, Stage::Parse, message)
                .hint("start it with `POST /v1/sessions`"));
        }
        let (project, draft, plan) = self.engine.receive(call.clone())?;
        let plan = match objection.map_or(plan, Err) {
            Ok(Planned::Ready(plan)) => *plan,
            Ok(Planned::Asks(approval_request)) => {
                let request = Request {
                    call: call.clone(),
                    stdin,
                    by: &by,
                    key: key.as_ref(),
                };
                let asked = self.ask_people(&draft, project, &approval_request, request)?;
                return self.submitted(&call, asked);
            }
            Err(error) => return self.refused(&call, &draft, error, key.as_ref()),
        };
        if call.mode == Mode::Mock {
            let mocked = self.mock(plan, key.as_ref())?;
            return self.submitted(&call, mocked);
        }
        let candidate = Candidate::new(plan, project, stdin)?;
        let entrance = locked(&self.admission).enter(&candidate.live.account);
        let taken = match entrance {
            Admission::Now => self.start_now(candidate, key.as_ref()),
            Admission::Later => self.line_up(candidate, call.clone(), key.as_ref()),
            Admission::Full => {
                self.forget(&candidate.live);
                return Err(self.full());
            }
            Admission::Shut => {
                self.forget(&candidate.live);
                return Err(closed());
            }
        };
        self.submitted(&call, taken?)
    }

    fn submitted(&self, call: &Call, taken: Result<Exec, ExecId>) -> Result<Submitted> {
        match taken {
            Ok(exec) => Ok(Submitted {
                exec: Seen::own(exec),
                replayed: false,
            }),
            Err(existing) => self.replayed(call, &existing),
        }
    }

    /// Nothing runs, and that is on record.
    fn mock(&self, mut plan: Plan, key: Option<&RequestKey>) -> Result<Result<Exec, ExecId>> {
        plan.begin();
        match self.admit(plan.record(), key, None)? {
            Admitted::Existing(id) => Ok(Err(id)),
            Admitted::Opened(entry) => self.engine.mock(plan, entry).map(Ok),
        }
    }

    /// The sandbox is built while the row is written; it starts when the row is there.
    fn start_now(
        self: &Arc<Self>,
        mut candidate: Candidate,
        key: Option<&RequestKey>,
    ) -> Result<Result<Exec, ExecId>> {
        candidate.plan.begin();
        let record = candidate.plan.record().clone();
        let live = Arc::clone(&candidate.live);
        let (told, start) = mpsc::sync_channel(1);
        let waiting = candidate.waiting(Start::Told(start));
        locked(&self.live).insert(live.exec.clone(), Arc::clone(&live));
        self.hand_over(waiting)?;
        let admitted = stage::span("open").in_scope(|| self.admit(&record, key, None));
        stage::reached("admitted");
        match admitted {
            Ok(Admitted::Opened(entry)) => match told.send(entry) {
                Ok(()) => Ok(Ok(record)),
                Err(mpsc::SendError(entry)) => {
                    let broken = Error::new(Code::Internal, Stage::Admit, "its thread broke off");
                    let record = path::failed(record, broken.clone());
                    self.write_end(entry, record, Instant::now());
                    Err(broken)
                }
            },
            // The thread hears nothing, and takes everything down again.
            Ok(Admitted::Existing(id)) => Ok(Err(id)),
            Err(error) => Err(error),
        }
    }

    fn line_up(
        self: &Arc<Self>,
        mut candidate: Candidate,
        call: Call,
        key: Option<&RequestKey>,
    ) -> Result<Result<Exec, ExecId>> {
        let mut record = candidate.plan.record().clone();
        record.status = Status::Queued;
        let live = Arc::clone(&candidate.live);
        let kept = SealedCall {
            call,
            stdin: candidate.stdin.clone(),
            narrowed: None,
            consent: None,
            scripts: None,
            policy: None,
        };
        let admitted = self
            .seal()
            .and_then(|seal| seal.close(&live.space, &live.exec, &kept))
            .and_then(|sealed| {
                stage::span("open").in_scope(|| self.admit(&record, key, Some(&sealed)))
            });
        stage::reached("admitted");
        let undone = || {
            locked(&self.admission).give_up(&live.space);
            self.forget(&live);
        };
        let entry = match admitted.inspect_err(|_| undone())? {
            Admitted::Opened(entry) => entry,
            Admitted::Existing(id) => {
                undone();
                return Ok(Err(id));
            }
        };
        locked(&self.live).insert(live.exec.clone(), Arc::clone(&live));
        // Its own place is among those that are kept.
        let position = locked(&self.admission)
            .waiting_in(&live.space)
            .saturating_sub(1);
        candidate.note_queued(position);
        let waiting = candidate.waiting(Start::Queued(entry));
        let (account, exec) = (live.account.clone(), live.exec.clone());
        let left_over = locked(&self.admission).queue(account, exec, waiting);
        if left_over.is_some() {
            // The server shut down meanwhile; it is written down, and waits for the next start.
            self.drop_live(&live);
            live.end();
            self.store()?.adopt_queued(self.owner(), NOBODY)?;
        }
        record.queue_position = Some(position);
        self.call_next();
        Ok(Ok(record))
    }

    fn admit(
        &self,
        record: &Exec,
        key: Option<&RequestKey>,
        sealed_call: Option<&[u8]>,
    ) -> Result<Admitted> {
        let terms = Terms {
            key,
            budget: self.budget_of(record),
            sealed_call,
        };
        self.store()?.admit(self.owner(), record, terms)
    }

    pub(super) fn budget_of<'r>(&self, record: &'r Exec) -> Option<BudgetTerms<'r>> {
        record.ids.agent_id.as_deref().map(|agent| BudgetTerms {
            agent,
            budget: locked(&self.settings).0.budget_of(agent),
        })
    }

    fn refused(
        &self,
        call: &Call,
        draft: &Draft,
        error: Error,
        key: Option<&RequestKey>,
    ) -> Result<Submitted> {
        let record = refusal(draft, error)?;
        match self.store()?.refuse_with(record, key)? {
            Refused::Recorded(exec) => Ok(Submitted {
                exec: Seen::own(exec),
                replayed: false,
            }),
            Refused::Existing(id) => self.replayed(call, &id),
        }
    }

    /// A key is its caller's, and so is what was made with it.
    pub(crate) fn replayed(&self, call: &Call, id: &ExecId) -> Result<Submitted> {
        let exec = self.record(&call.ids.space_id, id)?;
        Ok(Submitted {
            exec: Seen::own(exec),
            replayed: true,
        })
    }

    fn full(&self) -> Error {
        let load = self.load();
        let waiting = load.queued.saturating_add(1);
        let soon = self.pace.load(Ordering::Relaxed).saturating_mul(waiting)
            / u64::from(load.limit.max(1));
        let mut error = Error::new(
            Code::RateLimited,
            Stage::Admit,
            "as many execs wait already as may wait",
        )
        .hint("try again later, or ask the operator for a longer queue (`max_queued`)");
        error.retry.after_ms = Some(soon.clamp(1000, 60_000));
        error
    }
}

impl Candidate {
    pub(super) fn new(plan: Plan, project: Project, stdin: Option<Vec<u8>>) -> Result<Self> {
        let ids = &plan.assessed().call().ids;
        let account = Account {
            space: ids.space_id.clone(),
            user: ids.user_id.clone(),
        };
        let id = (account.space.clone(), plan.draft().exec_id.clone());
        let (live, cancel) = Live::new(id, project.id().clone(), account)?;
        Ok(Self {
            journal: project.journal(&live.exec)?,
            plan,
            project,
            live: Arc::new(live),
            cancel,
            stdin,
        })
    }

    pub(super) fn waiting(self, start: Start) -> Waiting {
        Waiting {
            plan: self.plan,
            project: self.project,
            live: self.live,
            cancel: self.cancel,
            journal: self.journal,
            stdin: self.stdin,
            start,
            since: Instant::now(),
            span: tracing::Span::current(),
        }
    }

    fn note_queued(&mut self, position: u64) {
        self.journal.add(
            Timestamp::now(),
            Happened::State {
                status: Status::Queued,
                queue_position: Some(position),
            },
        );
        self.live.tell(self.journal.written());
    }
}

fn cut_off() -> Error {
    let mut error = Error::new(
        Code::StoreUnavailable,
        Stage::Admit,
        "the server could not renew its lease on the database, and starts nothing until it can",
    )
    .hint("see that the database's server runs and can be reached, and try again");
    error.retry.allowed = true;
    error.retry.after_ms = Some(5000);
    error
}

fn closed() -> Error {
    let mut error = Error::new(
        Code::ShuttingDown,
        Stage::Admit,
        "the server is shutting down and takes no new work",
    )
    .hint("try again in a moment, or ask another server");
    error.retry.after_ms = Some(5000);
    error
}
