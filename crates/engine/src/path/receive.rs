//! From a call to a plan that may be carried out: resolved, assessed, and agreed to.

use glovebox_gateway::Simulated;
use glovebox_model::{
    Agreed, Call, Code, Consent, Error, Exec, PartialProfile, Result, ScriptRef, Status,
};
use glovebox_workspace::Project;

use super::{Draft, Plan, obtain};
use crate::approvals::{ApprovalRequest, Binding, PriorApproval, Script, check_scripts};
use crate::engine::Engine;
use crate::{skill, stage};

/// A call with what people have said to it.
#[derive(Debug, Clone)]
pub(crate) struct CallWithConsent {
    pub(crate) call: Call,
    /// What they took away from it.
    pub(crate) narrowed: Option<PartialProfile>,
    /// That they agreed.
    pub(crate) consent: Option<Consent>,
    /// The scripts as they were then.
    pub(crate) scripts: Option<Vec<ScriptRef>>,
    /// A gate wants it run, and no gate judges it.
    pub(crate) of_gate: bool,
}

impl CallWithConsent {
    pub(crate) fn of(call: Call) -> Self {
        Self {
            call,
            narrowed: None,
            consent: None,
            scripts: None,
            of_gate: false,
        }
    }
}

/// What came of a call that makes sense and that no rule denies.
#[derive(Debug)]
pub(crate) enum Planned {
    Ready(Box<Plan>),
    /// People have to agree first.
    Asks(Box<ApprovalRequest>),
}

impl Engine {
    /// From a call to a plan that may be carried out. `Err` inside: a refusal, which is still to be
    /// written down; `Err` outside: a call that makes no sense.
    pub(crate) fn receive(&self, mut call: Call) -> Result<(Project, Draft, Result<Planned>)> {
        glovebox_workspace::check_inputs(&call.inputs)?;
        skill::check_inputs(&call)?;
        if let Some(simulation) = &call.simulation {
            Simulated::new(simulation)?;
        }
        if self.instance.is_server() {
            // What is written down of it from here on has nothing secret in it.
            self.secrets.masks_for(&call.ids, call.vouched, &[])?;
        }
        self.sandboxes.place(&mut call)?;
        let project = self.workspaces.project(&call)?;
        let draft = Draft::new(&call, project.id().clone())?;
        let plan = self.plan(&draft, &project, CallWithConsent::of(call));
        Ok((project, draft, plan))
    }

    pub(crate) fn plan(
        &self,
        draft: &Draft,
        project: &Project,
        wanted: CallWithConsent,
    ) -> Result<Planned> {
        let CallWithConsent {
            call,
            narrowed,
            consent,
            scripts: bound,
            of_gate,
        } = wanted;
        if let Some(preview) = &call.preview {
            self.simulations
                .check_place(&call.ids.space_id, preview, draft)?;
            self.simulations.check_rehearsed(&call, project)?;
        }
        let (assessed, scripts) =
            self.instance
                .policy
                .assess_call(call, narrowed.as_ref(), project.work())?;
        let is_asked = consent
            .as_ref()
            .is_some_and(|it| it.agreed == Agreed::People);
        let now: Vec<ScriptRef> = match is_asked {
            true => Binding::of(assessed.call(), &scripts, project)?.refs,
            false => scripts.iter().map(Script::bound).collect(),
        };
        if let Some(bound) = &bound {
            check_scripts(bound, &now)?;
        }
        let chosen = self.sandboxes.choose(assessed.call(), assessed.profile())?;
        let gated = match of_gate {
            true => None,
            false => Some(self.instance.policy.gated(&assessed, &chosen)?),
        };
        let given = consent
            .as_ref()
            .map_or(PriorApproval::Nothing, PriorApproval::Consent);
        let ruled = stage::span("obtain").in_scope(|| {
            let image = chosen.image.as_deref();
            self.approvals
                .rule_on(assessed, scripts, chosen.backend, image, project, given)
        })?;
        stage::reached("obtain");
        let approved = match obtain(ruled) {
            Ok(approved) => approved,
            Err(approval_request) => return Ok(Planned::Asks(Box::new(approval_request))),
        };
        let (call, profile) = (approved.assessed().call(), approved.assessed().profile());
        let assignment =
            self.sandboxes
                .assignment(call, profile, &chosen, PartialProfile::default())?;
        let plan = Plan::new(draft.clone(), approved, chosen, assignment, now)?.judged_by(gated);
        self.workspaces.check_writes(&plan)?;
        self.instance.policy.check_denied(&plan)?;
        Ok(Planned::Ready(Box::new(plan)))
    }

    /// Writes down that nothing was started, and why. What the caller got wrong in asking, and what
    /// keeps us from writing anything, stays an error.
    pub(super) fn refuse(&self, draft: &Draft, error: Error) -> Result<Exec> {
        let record = refusal(draft, error)?;
        self.secrets.masks_for(&record.ids, record.vouched, &[])?;
        self.store()?.refuse(record)
    }
}

/// The record of something that was not started; an error that leaves no record stays one.
pub(crate) fn refusal(draft: &Draft, error: Error) -> Result<Exec> {
    let status = match error.code {
        Code::PolicyDenied | Code::ApprovalUnavailable | Code::Denied | Code::Expired => {
            Status::PolicyDenied
        }
        Code::BackendUnavailable | Code::SetupFailed => Status::Error,
        _ => return Err(error),
    };
    let mut record = draft.record(status);
    record.ended_at = Some(jiff::Timestamp::now());
    record.error = Some(error.of_exec(draft.exec_id.clone()));
    Ok(record)
}
