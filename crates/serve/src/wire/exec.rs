//! The body of `POST /v1/execs`.

use glovebox_model::{ClientId, Mode, OnExceed, ProjectId, SpaceId};
use serde::Deserialize;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::Id;
use super::input::InputFile;
use super::overrides::PolicyOverrides;
use super::program::ExecSpec;
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
    /// The workspace that it works on. Without it, the conversation's; without one, an empty one
    /// that is gone afterwards.
    pub(super) project_id: Option<ProjectId>,
    /// The caller's own name for the exec, unique in its space.
    pub(super) client_id: Option<ClientId>,
    /// Nothing has skills yet.
    #[serde(default, rename = "skill_id")]
    _skill_id: Nothing,
    pub(super) exec: ExecSpec,
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub(super) inputs: Vec<InputFile>,
    pub(super) policy_overrides: Option<PolicyOverrides>,
    pub(super) task_ref: Option<TaskRef>,
    #[serde(default)]
    pub(super) mode: Mode,
    /// Answer when it has ended (200), or as soon as it is taken on (202).
    #[serde(default = "yes")]
    pub(crate) wait: bool,
    #[serde(default)]
    pub(super) on_exceed: OnExceed,
    /// Another place for the header `Idempotency-Key`, which counts when both are there.
    #[schema(pattern = "^[!-~]+$", min_length = 1, max_length = 255)]
    pub(crate) request_id: Option<String>,
}

/// On whose behalf. A token that is bound to a user or an agent fills these in, and no other
/// values are taken then.
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
struct Nothing(());

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Nothing {}

fn yes() -> bool {
    true
}

impl Sent for ExecRequest {
    const LIMIT: Limit = Limit::Exec;
}
