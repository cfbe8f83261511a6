//! From requests to what the engine is asked for, as the caller who asks.

use std::time::Duration;

use glovebox_api::{
    ExecRequest, Id, RecreateRequest, SandboxRef, SandboxRequest, SecretGrantRequest,
    SecretRequest, SkillCallRequest, TaskRef, destinations, inputs,
};
use glovebox_engine::{
    GrantSecret, OF_AGENT, Selection, SetSecret, hashed, named_after, of_session,
};
use glovebox_model::{
    Call, Code, Correlation, Error, Lifetime, Mode, Placement, ProjectId, Role, SecretName, Token,
    WorkspaceRef,
};
use glovebox_skill::Called;
use jiff::Timestamp;

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

impl Order {
    pub(crate) fn of_exec(asked_for: ExecRequest, caller: &Caller) -> Answer<Self> {
        let ids = ids(asked_for.task_ref.unwrap_or_default(), caller)?;
        let asked = asked_for.exec.asked()?;
        let mut placement = asked_for
            .sandbox
            .map_or(Placement::Fresh, SandboxRef::placement);
        let (mut mode, mut overrides) = (
            asked_for.mode,
            asked_for.policy_overrides.unwrap_or_default().profile()?,
        );
        if let Some(task) = asked_for.sandbox_config {
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
        if asked_for.simulate.is_some() && !matches!(mode, Mode::Simulate | Mode::Mock) {
            return Err(Failure::new(
                Code::Conflict,
                "`simulate` is for `\"mode\": \"simulate\"` and `mock`",
            ));
        }
        let session = asked_for.session.map(|it| it.terms(&asked.program));
        let call = Call {
            workspace: workspace(caller, asked_for.project_id.clone(), &placement, &ids)?,
            placement,
            ids,
            vouched: caller.vouched(),
            client_id: asked_for.client_id,
            program: asked.program,
            cwd: asked.cwd,
            env: asked.env,
            inputs: inputs(asked_for.inputs)?,
            mode,
            on_exceed: asked_for.on_exceed,
            mounts: asked_for.mounts.into_iter().map(|words| words.0).collect(),
            secrets: asked_for.secrets,
            justification: asked_for.justification.map(|words| words.0),
            writes: asked_for.writes,
            simulation: asked_for.simulate,
            over: asked_for.over,
            preview: None,
            skill: None,
            session: session.transpose()?,
            overrides,
        };
        Ok(Order {
            call,
            stdin: asked.stdin,
            objection: asked.objection,
            project: asked_for.project_id,
        })
    }

    /// Without `called` for a request that was answered before: nothing of it is run.
    pub(crate) fn of_skill(
        asked_for: SkillCallRequest,
        called: Option<Called>,
        caller: &Caller,
    ) -> Answer<Self> {
        let mut order = Self::of_exec(asked_for.into(), caller)?;
        if let Some(called) = called {
            order.call.program = called.program;
            order.call.inputs = called.inputs;
            order.call.skill = Some(called.skill);
        }
        Ok(order)
    }
}

fn both(name: &str) -> Failure {
    let message = format!("`sandbox_config` and `{name}` say the same thing in two ways");
    Failure::new(Code::Conflict, message).hint("leave out one of them")
}

pub(crate) fn ids(task: TaskRef, caller: &Caller) -> Answer<Correlation> {
    let token = caller.token();
    if task.space_id.is_some_and(|space| space != token.space_id) {
        return Err(Failure::new(
            Code::Forbidden,
            "this token is of another space",
        ));
    }
    let text = |id: Option<Id>| id.map(|id| id.0);
    Ok(Correlation {
        space_id: token.space_id.clone(),
        user_id: bound("user_id", token.user_id.as_ref(), text(task.user_id))?
            .or_else(|| caller.local_user()),
        conversation_id: bound(
            "conversation_id",
            token.conversation_id.as_ref(),
            text(task.conversation_id),
        )?,
        turn_id: text(task.turn_id),
        task_id: text(task.task_id),
        workflow_id: text(task.workflow_id),
        agent_id: agent(token, text(task.agent_id))?,
        session_id: text(task.session_id),
    })
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

/// The sandbox that is asked for.
pub(crate) fn sandbox_request(
    asked_for: SandboxRequest,
    caller: &Caller,
) -> Answer<glovebox_engine::SandboxRequest> {
    let task = TaskRef {
        agent_id: asked_for.agent_id,
        session_id: asked_for.session_id,
        ..TaskRef::default()
    };
    let ids = ids(task, caller)?;
    let lifetime = asked_for.lifetime.into();
    let own = project_of(lifetime, &ids)?.ok_or_else(Failure::internal)?;
    Ok(glovebox_engine::SandboxRequest {
        project: asked_for.project_id.map_or(Ok(own), not_reserved)?,
        ids,
        lifetime,
        on_exceed: asked_for.on_exceed,
        overrides: asked_for.policy_overrides.unwrap_or_default().profile()?,
    })
}

/// The workspace of the sandbox of this scope, when none is named. None: it is not kept.
fn project_of(lifetime: Lifetime, ids: &Correlation) -> Answer<Option<ProjectId>> {
    let (what, key) = match lifetime {
        Lifetime::Exec => return Ok(None),
        Lifetime::Shared => return Ok(Some(named_after("shared-", "sandbox")?)),
        Lifetime::Agent => ("agent", &ids.agent_id),
        Lifetime::Session => ("session", &ids.session_id),
    };
    let key = key.as_deref().ok_or_else(|| {
        let message = format!("`lifetime` `{what}` needs to know which: `{what}_id` is missing");
        Failure::new(Code::Conflict, message)
            .hint(format!("set `{what}_id`, or choose another `lifetime`"))
    })?;
    Ok(Some(match lifetime {
        Lifetime::Session => of_session(ids.agent_id.as_deref(), key)?,
        Lifetime::Agent | Lifetime::Exec | Lifetime::Shared => named_after(OF_AGENT, key)?,
    }))
}

/// The workspace of an exec that is placed like this and names none.
fn workspace_of(placement: &Placement, ids: &Correlation) -> Answer<WorkspaceRef> {
    let own = match placement {
        Placement::Scope(lifetime) => project_of(*lifetime, ids)?,
        // The engine takes the sandbox's own.
        Placement::Fresh | Placement::Named(_) => None,
    };
    Ok(own.map_or(WorkspaceRef::Scratch, WorkspaceRef::Project))
}

/// Which sandboxes are made anew.
pub(crate) fn selection(asked_for: RecreateRequest) -> Selection {
    match asked_for {
        RecreateRequest::All(_) => Selection::All,
        RecreateRequest::Mismatched(_) => Selection::Mismatched,
        RecreateRequest::Agent(it) => Selection::Agent(it.agent.0),
        RecreateRequest::Session(it) => Selection::Session(it.session.0),
    }
}

pub(crate) fn set_secret(asked_for: SecretRequest, name: SecretName) -> Answer<SetSecret> {
    Ok(SetSecret {
        name,
        value: asked_for.value_base64.0,
        hosts: asked_for.hosts.map(destinations).transpose()?,
        deliveries: asked_for.deliveries,
    })
}

pub(crate) fn grant_secret(asked_for: SecretGrantRequest) -> Answer<GrantSecret> {
    let lasts = asked_for.expires_at.map(|end| {
        let left = Duration::try_from(end.duration_since(Timestamp::now()));
        let left = left.ok().filter(|left| !left.is_zero());
        left.ok_or_else(|| Failure::new(Code::Conflict, "`expires_at` is in the past"))
    });
    Ok(GrantSecret {
        secret: asked_for.secret,
        conversation_id: asked_for.conversation_id.map(|id| id.0),
        agent_id: asked_for.agent_id.map(|id| id.0),
        deliveries: asked_for.deliveries,
        lasts: lasts.transpose()?,
    })
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
