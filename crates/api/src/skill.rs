//! Skills as they are listed, called and answered.

use glovebox_model::{
    ClientId, Error, Exec, ExecId, Mode, OnExceed, ProjectId, SecretUse, Simulation, SkillRef,
    Status, Writes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{ExecRequest, PolicyOverrides, SandboxRef, TaskRef, Words};

/// A call of a skill. What is said beside `inputs` means what it means for an exec.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "inputs": {"script": "echo hello"},
    "project_id": "demo",
    "task_ref": {"task_id": "task-7"}
}))]
pub struct SkillCallRequest {
    /// What the skill is called with, as its `inputs` schema says.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({"script": "echo hello"}))]
    pub inputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<ClientId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_overrides: Option<PolicyOverrides>,
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
    #[serde(default)]
    #[schema(max_items = 64, example = json!([]))]
    pub secrets: Vec<SecretUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<Words>,
    #[serde(default)]
    pub writes: Writes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate: Option<Simulation>,
    /// The exec whose changes wait and are there for this one, as if they had been kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<ExecId>,
    /// Another place for the header `Idempotency-Key`, which counts when both are there.
    #[schema(pattern = "^[!-~]+$", min_length = 1, max_length = 255)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The exec that the skill is called in; its program is the skill's to say.
impl From<SkillCallRequest> for ExecRequest {
    fn from(it: SkillCallRequest) -> Self {
        Self {
            project_id: it.project_id,
            client_id: it.client_id,
            policy_overrides: it.policy_overrides,
            sandbox: it.sandbox,
            task_ref: it.task_ref,
            mode: it.mode,
            wait: it.wait,
            on_exceed: it.on_exceed,
            secrets: it.secrets,
            justification: it.justification,
            writes: it.writes,
            simulate: it.simulate,
            over: it.over,
            request_id: it.request_id,
            ..Self::nothing()
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillList {
    /// By id.
    pub skills: Vec<SkillInfo>,
    /// What would be a skill and is not right.
    pub invalid: Vec<InvalidSkill>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InvalidSkill {
    /// The name of its directory.
    pub dir: String,
    pub error: Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillOrigin {
    /// It came with Glovebox.
    Shipped,
    /// It lies in the operator's directory.
    Directory,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SkillInfo {
    pub id: String,
    pub name: String,
    pub description: String,
    pub version: Option<String>,
    /// `sha256:…` over all of its files.
    pub digest: String,
    pub origin: SkillOrigin,
    /// One of the same id came with Glovebox, and this one stands in its place.
    pub replaces_shipped: bool,
    /// Whether the policy of tools lets whoever asks call it, as `skill.ID`.
    pub allowed: bool,
    /// A JSON Schema.
    #[schema(value_type = Object)]
    pub inputs: Value,
    /// A JSON Schema.
    #[schema(value_type = Object)]
    pub outputs: Value,
    /// As in its manifest.
    #[schema(value_type = Object)]
    pub runtime: Value,
    #[schema(value_type = Object)]
    pub permissions: Value,
    #[schema(value_type = Object)]
    pub limits: Value,
    #[schema(value_type = Vec<Object>)]
    pub examples: Vec<Value>,
    /// The text of its `SKILL.md`; only of one skill that is asked for by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// All of them, relative to its directory; as `instructions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
}

/// A call of a skill, and what came of it. What the skill answers is data, whatever it says.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillAnswer {
    pub exec_id: ExecId,
    pub status: Status,
    pub skill: Option<SkillRef>,
    /// Null while it runs, and when it has none.
    #[schema(value_type = Value)]
    pub output: Value,
    /// Whether it fits the skill's `outputs`. Null when there is none yet, or when the skill is not
    /// what it was.
    pub output_valid: Option<bool>,
    /// What does not fit, and where.
    pub output_error: Option<Error>,
    pub exec: Exec,
}
