//! The body of `POST /v1/execs`.

use glovebox_model::{
    ClientId, ExecId, Mode, OnExceed, ProjectId, SecretUse, Simulation, SpaceId, Writes,
};
use serde::Deserialize;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::input::InputFile;
use super::overrides::PolicyOverrides;
use super::program::ExecSpec;
use super::sandbox::SandboxRef;
use super::task::SandboxTask;
use super::{Id, Words};
use crate::body::{Limit, Sent};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "project_id": "demo",
    "exec": {"kind": "shell", "command": "bash", "args": ["-lc", "echo hello"]},
    "policy_overrides": {"timeout": "30s", "memory": "512M"},
    "task_ref": {"task_id": "task-7"}
}))]
pub(crate) struct ExecRequest {
    /// The workspace that it works on. Without it, the conversation's; without one, that of its
    /// kept sandbox; without one, an empty one that is gone afterwards.
    pub(super) project_id: Option<ProjectId>,
    /// The caller's own name for the exec, unique for each agent of its space, and for people.
    pub(super) client_id: Option<ClientId>,
    /// A skill is called with `POST /v1/skills/{id}/invoke`: its program is not the caller's to say.
    #[serde(default, rename = "skill_id")]
    pub(super) _skill_id: Nothing,
    pub(super) exec: ExecSpec,
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub(super) inputs: Vec<InputFile>,
    pub(super) policy_overrides: Option<PolicyOverrides>,
    /// Where it runs. Without it, where the configuration says; that is a fresh sandbox if it
    /// says nothing.
    pub(super) sandbox: Option<SandboxRef>,
    pub(super) task_ref: Option<TaskRef>,
    #[serde(default)]
    pub(super) mode: Mode,
    /// Answer when it has ended (200), or as soon as it is taken on (202).
    #[serde(default = "yes")]
    pub(crate) wait: bool,
    #[serde(default)]
    pub(super) on_exceed: OnExceed,
    /// Directories of the host that the operator would show, by where they stand in the sandbox.
    /// People are asked about each exec that wants one.
    #[serde(default)]
    #[schema(max_items = 16, example = json!([]))]
    pub(super) mounts: Vec<Words>,
    /// Secrets of the space that it needs, by name. People are asked about each exec that wants
    /// one, unless they have granted it.
    #[serde(default)]
    #[schema(max_items = 64, example = json!([]))]
    pub(super) secrets: Vec<SecretUse>,
    /// Why it needs more than policy gives, for whoever is asked about `on_exceed: ask`.
    pub(super) justification: Option<Words>,
    /// Where what it writes to its workspace goes.
    #[serde(default)]
    pub(super) writes: Writes,
    /// What a simulated program is told instead of the truth; only with `"mode": "simulate"`, and
    /// the answer of `"mode": "mock"`.
    pub(super) simulate: Option<Simulation>,
    /// The exec whose changes wait and are there for this one, as if they had been kept.
    pub(super) over: Option<ExecId>,
    /// The same wishes in the words of workflow engines; `mode` must not be there then.
    pub(crate) sandbox_config: Option<SandboxTask>,
    /// Another place for the header `Idempotency-Key`, which counts when both are there.
    #[schema(pattern = "^[!-~]+$", min_length = 1, max_length = 255)]
    pub(crate) request_id: Option<String>,
}

/// On whose behalf. What the token is bound to is filled in, and no other value is taken then: a user,
/// a conversation, and the agent, which an agent's token always is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRef {
    /// The token's own, or a 403.
    pub(super) space_id: Option<SpaceId>,
    pub(super) user_id: Option<Id>,
    pub(super) conversation_id: Option<Id>,
    pub(super) turn_id: Option<Id>,
    pub(super) task_id: Option<Id>,
    pub(super) workflow_id: Option<Id>,
    pub(super) agent_id: Option<Id>,
    pub(super) session_id: Option<Id>,
}

/// Only `null`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Nothing(());

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Nothing {}

impl ExecRequest {
    /// One that asks for nothing yet.
    pub(super) fn nothing() -> Self {
        Self {
            project_id: None,
            client_id: None,
            _skill_id: Nothing(()),
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
            sandbox_config: None,
            request_id: None,
        }
    }
}

fn yes() -> bool {
    true
}

impl Sent for ExecRequest {
    const LIMIT: Limit = Limit::Exec;
}
