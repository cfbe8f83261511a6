//! The body of `POST /v1/execs`.

use glovebox_model::{
    ClientId, ExecId, Mode, OnExceed, ProjectId, SecretUse, Simulation, SpaceId, Writes,
};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{
    ExecSpec, Id, InputFile, PolicyOverrides, SandboxRef, SandboxTask, SessionOptions, Words,
};

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "project_id": "demo",
    "exec": {"kind": "shell", "command": "bash", "args": ["-lc", "echo hello"]},
    "policy_overrides": {"timeout": "30s", "memory": "512M"},
    "task_ref": {"task_id": "task-7"}
}))]
pub struct ExecRequest {
    /// The workspace that it works on. Without it, the conversation's; without one, that of its
    /// kept sandbox; without one, an empty one that is gone afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// The caller's own name for the exec, unique for each agent of its space, and for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<ClientId>,
    /// A skill is called with `POST /v1/skills/{id}/invoke`: its program is not the caller's to say.
    #[serde(default, skip_serializing_if = "Nothing::is_always")]
    pub skill_id: Nothing,
    pub exec: ExecSpec,
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub inputs: Vec<InputFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_overrides: Option<PolicyOverrides>,
    /// Where it runs. Without it, where the configuration says; that is a fresh sandbox if it
    /// says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ref: Option<TaskRef>,
    #[serde(default)]
    pub mode: Mode,
    /// Answer when it has ended (200), or as soon as it is taken on (202).
    #[serde(default = "crate::yes")]
    pub wait: bool,
    #[serde(default)]
    pub on_exceed: OnExceed,
    /// Directories of the host that the operator would show, by where they stand in the sandbox.
    /// People are asked about each exec that wants one.
    #[serde(default)]
    #[schema(max_items = 16, example = json!([]))]
    pub mounts: Vec<Words>,
    /// Secrets of the space that it needs, by name. People are asked about each exec that wants
    /// one, unless they have granted it.
    #[serde(default)]
    #[schema(max_items = 64, example = json!([]))]
    pub secrets: Vec<SecretUse>,
    /// Why it needs more than policy gives, for whoever is asked about `on_exceed: ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<Words>,
    /// Where what it writes to its workspace goes.
    #[serde(default)]
    pub writes: Writes,
    /// What a simulated program is told instead of the truth; only with `"mode": "simulate"`, and
    /// the answer of `"mode": "mock"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate: Option<Simulation>,
    /// The exec whose changes wait and are there for this one, as if they had been kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<ExecId>,
    /// How a session is talked to; only with `POST /v1/sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionOptions>,
    /// The same wishes in the words of workflow engines; `mode` must not be there then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_config: Option<SandboxTask>,
    /// Another place for the header `Idempotency-Key`, which counts when both are there.
    #[schema(pattern = "^[!-~]+$", min_length = 1, max_length = 255)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// On whose behalf. What the token is bound to is filled in, and no other value is taken then: a user,
/// a conversation, and the agent, which an agent's token always is.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRef {
    /// The token's own, or a 403.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_id: Option<SpaceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
}

/// Only `null`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Nothing(());

impl Nothing {
    const fn is_always(_: &Self) -> bool {
        true
    }
}

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Nothing {}

impl ExecRequest {
    /// One that asks for nothing yet.
    pub fn nothing() -> Self {
        Self {
            project_id: None,
            client_id: None,
            skill_id: Nothing(()),
            exec: ExecSpec::nothing(),
            inputs: Vec::new(),
            policy_overrides: None,
            sandbox: None,
            task_ref: None,
            mode: Mode::default(),
            wait: true,
            on_exceed: OnExceed::default(),
            mounts: Vec::new(),
            secrets: Vec::new(),
            justification: None,
            writes: Writes::default(),
            simulate: None,
            over: None,
            session: None,
            sandbox_config: None,
            request_id: None,
        }
    }
}
