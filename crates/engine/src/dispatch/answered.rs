//! What a yes is worth when it comes: the plan that was approved, or a new request, where what the
//! exec may run has changed since.

use std::time::Instant;

use glovebox_model::{Approval, Code, Error, Exec, Party, Result, Stage};
use glovebox_store::Opened;
use glovebox_workspace::change::TreeState;

use super::awaiting::{Awaiting, Waits};
use super::sealed_call::SealedCall;
use super::{Dispatcher, locked};
use crate::approvals::{ApprovalRequest, answered, gone_by};
use crate::path::Planned;
use crate::path::{self, Draft, Plan};

/// What came of an answer that says yes.
pub(super) enum Settled {
    Plan(Box<Plan>, Vec<u8>),
    /// What it may run has changed: people are asked about what is there now.
    Changed(Box<ApprovalRequest>, Option<Vec<u8>>),
}

/// An exec that was queued with an answer that is void now.
pub(super) struct Outdated {
    pub(super) plan: Plan,
    pub(super) entry: Opened,
    pub(super) stdin: Option<Vec<u8>>,
}

/// What people approved is not what is there.
pub(super) fn is_outdated(error: &Error) -> bool {
    error.code == Code::Denied && error.stage == Stage::Obtain
}

impl Dispatcher {
    /// People are asked about what is there now, in place of what they approved before it was queued.
    pub(super) fn ask_instead(&self, outdated: Outdated) {
        let Outdated { plan, entry, stdin } = outdated;
        let asked = self.request_anew(&plan, &entry, stdin);
        let (waits, record, sealed, state) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                let failed = path::failed(plan.record().clone(), error);
                return self.write_end(entry, failed, Instant::now());
            }
        };
        self.wait_for_people(waits, entry, record, sealed, state);
    }

    fn request_anew(
        &self,
        plan: &Plan,
        entry: &Opened,
        stdin: Option<Vec<u8>>,
    ) -> Result<(Waits, Exec, Vec<u8>, Option<TreeState>)> {
        let call = plan.assessed().call().clone();
        let (space, exec) = (&call.ids.space_id, &plan.draft().exec_id);
        let old = plan.record().consent.as_ref();
        let old = old.and_then(|it| it.approval_id.as_ref());
        let old = old.ok_or_else(|| {
            let message = "it was approved by a request that is not known any more";
            Error::new(Code::Denied, Stage::Obtain, message)
        })?;
        let store = self.store()?;
        let old = store.approval(Some(space), old)?;
        let project = self.engine.workspaces.project(&call)?;
        let approval_request = self.engine.approval_request_again(&call, &project)?;
        let approval_request = approval_request.ok_or_else(|| gone_by(&old, &old.ask.scripts))?;
        let approval = self.instead_of(&old, &approval_request, stdin.as_deref(), None)?;
        let record = plan.draft().awaiting(&approval_request, &approval.id);
        let kept = SealedCall {
            call,
            stdin,
            narrowed: None,
            consent: None,
            scripts: None,
            policy: None,
        };
        let sealed = self.seal()?.close(&record.ids.space_id, exec, &kept)?;
        let waits = self.attend_to(&record, project, old.requested_by)?;
        store.await_again(self.owner(), entry, &record, Some(&sealed), &approval)?;
        Ok((
            waits,
            record,
            sealed,
            approval_request.binding.state_to_compare(),
        ))
    }

    /// A request of the same asker for the same exec, which says what changed since `old`.
    fn instead_of(
        &self,
        old: &Approval,
        approval_request: &ApprovalRequest,
        stdin: Option<&[u8]>,
        state: Option<&TreeState>,
    ) -> Result<Approval> {
        let by = Party {
            name: old.requested_by.clone(),
            user_id: old.requested_user.clone(),
        };
        let settings = self.engine.config().approvals();
        let mut approval = approval_request.approval(&old.exec_id, &by, stdin, settings)?;
        approval.ask.changed = approval_request
            .binding
            .changes_since(&old.ask.scripts, state);
        Ok(approval)
    }

    /// What was approved, if it is still the same, as people left it.
    pub(super) fn approved_plan(
        &self,
        awaiting: &Awaiting,
        approval: &Approval,
    ) -> Result<Settled> {
        let (space, exec) = (&approval.space_id, &approval.exec_id);
        let SealedCall {
            mut call, stdin, ..
        } = self.seal()?.open(space, exec, &awaiting.sealed)?;
        self.engine.sandboxes.place(&mut call)?;
        let project = &awaiting.project;
        let draft = Draft::again(&call, project.id().clone(), exec.clone())?;
        match self.engine.approval_request_again(&call, project)? {
            Some(now) if now.digest == approval.digest => {}
            Some(now) => {
                self.void(approval, "it changed after it was approved");
                if now.binding.refs != approval.ask.scripts {
                    return Ok(Settled::Changed(Box::new(now), stdin));
                }
                return Err(gone_by(approval, &now.binding.refs));
            }
            None => {
                self.void(approval, "nobody would be asked any more");
                return Err(gone_by(approval, &approval.ask.scripts));
            }
        }
        let wanted = answered(call, approval);
        let mut kept = SealedCall {
            call: wanted.call.clone(),
            stdin,
            narrowed: wanted.narrowed.clone(),
            consent: wanted.consent.clone(),
            scripts: None,
            policy: Some(self.engine.config().digest().to_owned()),
        };
        match self.engine.plan(&draft.of(&wanted.call), project, wanted)? {
            Planned::Ready(plan) => {
                self.engine.policy().check_quorum(&plan, approval)?;
                kept.scripts = plan.bound_scripts().map(<[_]>::to_vec);
                let sealed = self.seal()?.close(space, exec, &kept)?;
                Ok(Settled::Plan(plan, sealed))
            }
            Planned::Asks(approval_request) => {
                Err(gone_by(approval, &approval_request.binding.refs))
            }
        }
    }

    /// A new request for the same exec, which says what changed. The old answer is void.
    pub(super) fn ask_anew(
        &self,
        mut awaiting: Awaiting,
        old: &Approval,
        approval_request: &ApprovalRequest,
        stdin: Option<&[u8]>,
    ) {
        let asked = self
            .instead_of(old, approval_request, stdin, awaiting.state.as_ref())
            .and_then(|approval| {
                let record = Exec {
                    ruling: Some(approval_request.ruling.clone()),
                    approval_id: Some(approval.id.clone()),
                    ..awaiting.record.clone()
                };
                let (owner, opened) = (self.owner(), &awaiting.opened);
                self.store()?
                    .await_again(owner, opened, &record, None, &approval)?;
                Ok(record)
            });
        match asked {
            Ok(record) => {
                awaiting.record = record;
                awaiting.state = approval_request.binding.state_to_compare();
                locked(&self.awaiting).insert(old.exec_id.clone(), awaiting);
            }
            Err(error) => self.end_waiting(awaiting, error),
        }
    }
}
