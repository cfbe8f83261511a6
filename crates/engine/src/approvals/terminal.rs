//! Asking the person at the terminal, in the process that runs the exec itself.

use glovebox_model::{Answer, Call, Code, Error, Party, Reply, Result, Stage, Via};
use glovebox_workspace::Project;
use jiff::Timestamp;

use super::request::{ApprovalRequest, denied, gone_by, nobody};
use super::{Approver, answered};
use crate::engine::Engine;
use crate::path::Planned;
use crate::path::{Draft, Plan};

/// How often one person is asked about one call whose files change while they read.
const QUESTIONS: usize = 5;

enum Asked {
    Plan(Box<Plan>),
    /// What it may run has changed while the person thought about it.
    Changed(Box<ApprovalRequest>),
}

fn changing() -> Error {
    let message = "what it may run changes while it is being approved; nothing was run, and there is no output of it";
    Error::new(Code::Denied, Stage::Obtain, message)
        .hint("stop what changes the workspace, or run a copy of it: `glovebox workspace fork`")
}

impl Engine {
    /// A plan that the person at the terminal has agreed to, or the error that says why not.
    pub(crate) fn ask_here(
        &self,
        draft: &Draft,
        project: &Project,
        mut call: Call,
        mut approval_request: ApprovalRequest,
        approver: Option<&dyn Approver>,
    ) -> Result<Plan> {
        let Some(approver) = approver else {
            return Err(nobody(&approval_request.ruling));
        };
        self.sandboxes.place(&mut call)?;
        let mut changed = Vec::new();
        for _ in 0..QUESTIONS {
            match self.ask_once(draft, project, &call, &approval_request, changed, approver)? {
                Asked::Plan(plan) => return Ok(*plan),
                Asked::Changed(now) => {
                    let (bound, state) = (
                        &approval_request.binding.refs,
                        approval_request.binding.state.as_ref(),
                    );
                    changed = now.binding.changes_since(bound, state);
                    approval_request = *now;
                }
            }
        }
        Err(changing())
    }

    fn ask_once(
        &self,
        draft: &Draft,
        project: &Project,
        call: &Call,
        approval_request: &ApprovalRequest,
        changed: Vec<String>,
        approver: &dyn Approver,
    ) -> Result<Asked> {
        let store = self.store()?;
        let user = call.ids.user_id.clone();
        let asked_by = Party {
            name: user.unwrap_or_else(|| "this command".to_owned()),
            user_id: None,
        };
        let settings = self.instance.config().approvals();
        let mut approval = approval_request.approval(&draft.exec_id, &asked_by, None, settings)?;
        approval.ask.changed = changed;
        store.insert_approval(&approval)?;
        let Some(answer) = approver.ask(&approval) else {
            let _ = store.void_approval(&approval.id, "nobody answered")?;
            return Err(nobody(&approval_request.ruling));
        };
        let reply = Reply {
            by: approver.name(),
            user_id: None,
            at: Timestamp::now(),
            via: Via::Terminal,
            answer: answer.clone(),
        };
        let now = Timestamp::now();
        let approval = match &answer {
            Answer::AllowKind { expires_at, .. } => {
                let grant = approval_request.new_grant(&approval, *expires_at, settings)?;
                store.reply_granting(&approval.id, reply, grant, now)?
            }
            _ => store.reply(&approval.id, reply, now)?,
        };
        if !answer.approves() {
            return Err(denied(&approval));
        }
        if approval.wanting() > 0 {
            let message = format!(
                "`{}` needs {} more people to agree, and only you can be asked here",
                approval.id,
                approval.wanting()
            );
            return Err(
                Error::new(Code::ApprovalUnavailable, Stage::Obtain, message)
                    .hint("send it to a server (`--server`), where several people can answer"),
            );
        }
        // What was shown must be what is there now.
        let again = self.approval_request_again(call, project)?;
        if let Some(now) = again
            && now.digest != approval.digest
        {
            let _ = store.void_approval(&approval.id, "it changed after it was approved")?;
            return match now.binding.refs == approval.ask.scripts {
                true => Err(gone_by(&approval, &now.binding.refs)),
                false => Ok(Asked::Changed(Box::new(now))),
            };
        }
        let wanted = answered(call.clone(), &approval);
        let planned = self.plan(&draft.of(&wanted.call), project, wanted)?;
        if let Planned::Ready(plan) = &planned {
            self.instance.policy.check_quorum(plan, &approval)?;
        }
        store.use_approval(&approval.id, &approval.digest)?;
        match planned {
            Planned::Ready(plan) => Ok(Asked::Plan(plan)),
            Planned::Asks(approval_request) => Err(nobody(&approval_request.ruling)),
        }
    }
}
