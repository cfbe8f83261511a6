//! Asking the person at the terminal, in the process that runs the exec itself.

use glovebox_model::{Answer, Call, Code, Error, Party, Reply, Result, Stage, Via};
use glovebox_workspace::Project;
use jiff::Timestamp;

use super::petition::{Petition, denied, gone_by, nobody};
use super::{Approver, answered};
use crate::engine::{Engine, Planned};
use crate::path::{Draft, Plan};

impl Engine {
    /// A plan that the person at the terminal has agreed to, or the error that says why not.
    pub(crate) fn ask_here(
        &self,
        draft: &Draft,
        project: &Project,
        mut call: Call,
        petition: Petition,
        approver: Option<&dyn Approver>,
    ) -> Result<Plan> {
        let Some(approver) = approver else {
            return Err(nobody(&petition.ruling));
        };
        self.place(&mut call)?;
        let store = self.store()?;
        let user = call.ids.user_id.clone();
        let asked_by = Party {
            name: user.unwrap_or_else(|| "this command".to_owned()),
            user_id: None,
        };
        let settings = self.config().approvals();
        let approval = petition.approval(&draft.exec_id, &asked_by, None, settings)?;
        store.insert_approval(&approval)?;
        let Some(answer) = approver.ask(&approval) else {
            let _ = store.void_approval(&approval.id, "nobody answered")?;
            return Err(nobody(&petition.ruling));
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
                let grant = petition.new_grant(&approval, *expires_at, settings)?;
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
        let again = self.petition_again(&call, project)?;
        if let Some(now) = again
            && now.digest != approval.digest
        {
            let _ = store.void_approval(&approval.id, "it changed after it was approved")?;
            return Err(gone_by(&approval, &now.binding.refs));
        }
        let wanted = answered(call, &approval);
        let planned = self.plan(&draft.of(&wanted.call), project, wanted)?;
        if let Planned::Ready(plan) = &planned {
            self.check_quorum(plan, &approval)?;
        }
        store.use_approval(&approval.id, &approval.digest)?;
        match planned {
            Planned::Ready(plan) => Ok(*plan),
            Planned::Asks(petition) => Err(nobody(&petition.ruling)),
        }
    }
}
