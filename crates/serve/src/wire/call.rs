//! From a request to the engine's call.

use glovebox_engine::{OF_AGENT, hashed};
use glovebox_model::{
    Call, Code, Correlation, Error, Mode, Placement, ProjectId, Role, Token, WorkspaceRef,
};

use super::exec::{ExecRequest, TaskRef};
use super::sandbox::{SandboxRef, workspace_of};
use super::{Id, input};
use crate::auth::Caller;
use crate::failure::{Answer, Failure};

/// What the engine is asked for, and what its program reads.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) call: Call,
    pub(crate) stdin: Option<Vec<u8>>,
    /// Why it is refused before policy is asked.
    pub(crate) objection: Option<Error>,
    /// The workspace that the caller named.
    pub(crate) project: Option<ProjectId>,
}

impl ExecRequest {
    pub(crate) fn order(self, caller: &Caller) -> Answer<Order> {
        let ids = self.task_ref.unwrap_or_default().ids(caller)?;
        let asked = self.exec.asked()?;
        let mut placement = self.sandbox.map_or(Placement::Fresh, SandboxRef::placement);
        let (mut mode, mut overrides) = (
            self.mode,
            self.policy_overrides.unwrap_or_default().profile()?,
        );
        if let Some(task) = self.sandbox_config {
            let terms = task.terms()?;
            if mode != Mode::Run {
                return Err(both("mode"));
            }
            mode = terms.mode;
            // What the request says elsewhere is nearer.
            overrides = overrides.or(terms.overrides);
            if let (Placement::Fresh, Some(lifetime)) = (&placement, terms.lifetime) {
                placement = Placement::Scope(lifetime);
            }
        }
        if self.simulate.is_some() && !matches!(mode, Mode::Simulate | Mode::Mock) {
            return Err(Failure::new(
                Code::Conflict,
                "`simulate` is for `\"mode\": \"simulate\"` and `mock`",
            ));
        }
        let call = Call {
            workspace: workspace(caller, self.project_id.clone(), &placement, &ids)?,
            placement,
            ids,
            vouched: caller.vouched(),
            client_id: self.client_id,
            program: asked.program,
            cwd: asked.cwd,
            env: asked.env,
            inputs: input::inputs(self.inputs)?,
            mode,
            on_exceed: self.on_exceed,
            mounts: self.mounts.into_iter().map(|words| words.0).collect(),
            secrets: self.secrets,
            justification: self.justification.map(|words| words.0),
            writes: self.writes,
            simulation: self.simulate,
            over: self.over,
            preview: None,
            skill: None,
            overrides,
        };
        Ok(Order {
            call,
            stdin: asked.stdin,
            objection: asked.objection.map(|failure| *failure.0),
            project: self.project_id,
        })
    }
}

fn both(name: &str) -> Failure {
    let message = format!("`sandbox_config` and `{name}` say the same thing in two ways");
    Failure::new(Code::Conflict, message).hint("leave out one of them")
}

impl TaskRef {
    pub(crate) fn ids(self, caller: &Caller) -> Answer<Correlation> {
        let token = caller.token();
        if self.space_id.is_some_and(|space| space != token.space_id) {
            return Err(Failure::new(
                Code::Forbidden,
                "this token is of another space",
            ));
        }
        let text = |id: Option<Id>| id.map(|id| id.0);
        Ok(Correlation {
            space_id: token.space_id.clone(),
            user_id: bound("user_id", token.user_id.as_ref(), text(self.user_id))?,
            conversation_id: bound(
                "conversation_id",
                token.conversation_id.as_ref(),
                text(self.conversation_id),
            )?,
            turn_id: text(self.turn_id),
            task_id: text(self.task_id),
            workflow_id: text(self.workflow_id),
            agent_id: agent(token, text(self.agent_id))?,
            session_id: text(self.session_id),
        })
    }
}

/// An agent is what its token says, whatever the request does. An orchestrator that names none goes by
/// its token's name: it has a budget all the same.
fn agent(token: &Token, asked: Option<String>) -> Answer<Option<String>> {
    match (token.agent(), asked) {
        (Some(own), Some(asked)) if own != asked => {
            let message = format!("this token is the agent `{own}`, and a request names no other");
            Err(Failure::new(Code::Forbidden, message)
                .hint("leave `agent_id` out, or use that agent's own token")
                .hint("an orchestrator's token is bound to `*` and names any agent"))
        }
        (Some(own), _) => Ok(Some(own.to_owned())),
        (None, Some(asked)) => Ok(Some(asked)),
        (None, None) => Ok((token.role == Role::Agent).then(|| token.name.to_string())),
    }
}

/// Who is bound to an id speaks for that one alone.
fn bound(name: &str, own: Option<&String>, asked: Option<String>) -> Answer<Option<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) if *own != asked => {
            let message = format!("this token speaks for another `{name}`");
            Err(Failure::new(Code::Forbidden, message))
        }
        (Some(own), _) => Ok(Some(own.clone())),
        (None, asked) => Ok(asked),
    }
}

fn workspace(
    caller: &Caller,
    project: Option<ProjectId>,
    placement: &Placement,
    ids: &Correlation,
) -> Answer<WorkspaceRef> {
    // Also says when it is not known whose the sandbox is.
    let own = workspace_of(placement, ids)?;
    match (project, ids.conversation_id.as_deref()) {
        (Some(project), _) => reachable(caller, project).map(WorkspaceRef::Project),
        (None, Some(conversation)) => of_conversation(conversation).map(WorkspaceRef::Project),
        (None, None) => Ok(own),
    }
}

/// The name of a workspace that this caller may work on.
fn reachable(caller: &Caller, project: ProjectId) -> Answer<ProjectId> {
    match caller.may_not_name(&project) {
        true => not_reserved(project),
        false => Ok(project),
    }
}

pub(crate) fn not_reserved(project: ProjectId) -> Answer<ProjectId> {
    if !is_reserved(&project) {
        return Ok(project);
    }
    let message = format!("project id `{project}` is reserved");
    Err(Failure::new(Code::Forbidden, message)
        .hint("use another name; `scratch` and names in `cwd-` are Glovebox's own"))
}

pub(crate) fn is_reserved(project: &ProjectId) -> bool {
    project.as_str() == "scratch" || project.as_str().starts_with("cwd-")
}

/// A conversation's id is free text; what is no name of a directory, or is one that has a meaning of
/// its own, is replaced by its hash.
fn of_conversation(conversation: &str) -> Answer<ProjectId> {
    let is_plain =
        |project: &ProjectId| !is_reserved(project) && !project.as_str().starts_with(OF_AGENT);
    let own = conversation.parse().ok().filter(is_plain);
    own.map_or_else(|| Ok(hashed("conversation-", conversation)?), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_conversation_has_a_workspace_of_its_own() {
        assert_eq!(of_conversation("chat-1").unwrap().as_str(), "chat-1");
        let (one, other) = (
            of_conversation("../x").unwrap(),
            of_conversation("a b").unwrap(),
        );
        assert!(one.as_str().starts_with("conversation-") && one != other);
        for taken in ["scratch", "cwd-1", "agent-ann"] {
            let other = of_conversation(taken).unwrap();
            assert!(other.as_str().starts_with("conversation-"), "{other}");
        }
    }

    #[test]
    fn a_binding_fills_in_and_refuses_others() {
        let own = "ann".to_owned();
        assert_eq!(bound("user_id", Some(&own), None).unwrap().unwrap(), "ann");
        assert_eq!(
            bound("user_id", None, Some("bob".into())).unwrap().unwrap(),
            "bob"
        );
        assert!(bound("user_id", Some(&own), Some("bob".into())).is_err());
    }
}
