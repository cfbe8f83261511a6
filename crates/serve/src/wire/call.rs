//! From a request to the engine's call.

use glovebox_model::{Call, Code, Correlation, Error, ProjectId, Role, Token, WorkspaceRef};

use super::exec::{ExecRequest, TaskRef};
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
}

impl ExecRequest {
    pub(crate) fn order(self, caller: &Caller) -> Answer<Order> {
        let ids = self.task_ref.unwrap_or_default().ids(caller)?;
        let asked = self.exec.asked()?;
        let call = Call {
            workspace: workspace(self.project_id, ids.conversation_id.as_deref())?,
            ids,
            client_id: self.client_id,
            program: asked.program,
            cwd: asked.cwd,
            env: asked.env,
            inputs: input::inputs(self.inputs)?,
            mode: self.mode,
            on_exceed: self.on_exceed,
            overrides: self.policy_overrides.unwrap_or_default().profile()?,
        };
        Ok(Order {
            call,
            stdin: asked.stdin,
            objection: asked.objection.map(|failure| *failure.0),
        })
    }
}

impl TaskRef {
    fn ids(self, caller: &Caller) -> Answer<Correlation> {
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
            conversation_id: text(self.conversation_id),
            turn_id: text(self.turn_id),
            task_id: text(self.task_id),
            workflow_id: text(self.workflow_id),
            agent_id: agent(token, text(self.agent_id))?,
            session_id: text(self.session_id),
        })
    }
}

/// An agent that does not name itself goes by its token's name: it has a budget all the same.
fn agent(token: &Token, asked: Option<String>) -> Answer<Option<String>> {
    let named = bound("agent_id", token.agent_id.as_ref(), asked)?;
    let own = || (token.role == Role::Agent).then(|| token.name.to_string());
    Ok(named.or_else(own))
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

fn workspace(project: Option<ProjectId>, conversation: Option<&str>) -> Answer<WorkspaceRef> {
    match (project, conversation) {
        (Some(project), _) if is_reserved(&project) => {
            let message = format!("project id `{project}` is reserved");
            Err(Failure::new(Code::Forbidden, message)
                .hint("use another name; `scratch` and names in `cwd-` are Glovebox's own"))
        }
        (Some(project), _) => Ok(WorkspaceRef::Project(project)),
        (None, Some(conversation)) => of_conversation(conversation).map(WorkspaceRef::Project),
        (None, None) => Ok(WorkspaceRef::Scratch),
    }
}

pub(crate) fn is_reserved(project: &ProjectId) -> bool {
    project.as_str() == "scratch" || project.as_str().starts_with("cwd-")
}

/// A conversation's id is free text; what is no name of a directory is replaced by its hash.
fn of_conversation(conversation: &str) -> Answer<ProjectId> {
    let own = conversation
        .parse()
        .ok()
        .filter(|project| !is_reserved(project));
    own.map_or_else(
        || {
            let hash = blake3::hash(conversation.as_bytes()).to_hex();
            format!("conversation-{}", &hash[..32])
                .parse()
                .map_err(|_| Failure::internal())
        },
        Ok,
    )
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
        assert!(
            of_conversation("scratch")
                .unwrap()
                .as_str()
                .starts_with("conversation-")
        );
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
