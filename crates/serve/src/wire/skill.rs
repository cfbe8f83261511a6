//! Skills as they are listed, called and answered.

use glovebox_model::{
    ClientId, Error, Exec, ExecId, Mode, OnExceed, ProjectId, SecretUse, Simulation, SkillRef,
    Status, Writes,
};
use glovebox_skill::{Called, Invalid, Origin, Output, Skill};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::Words;
use super::call::Order;
use super::exec::{ExecRequest, TaskRef};
use super::overrides::PolicyOverrides;
use super::sandbox::SandboxRef;
use crate::auth::Caller;
use crate::body::{Limit, Sent};
use crate::failure::Answer;

/// A call of a skill. What is said beside `inputs` means what it means for an exec.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "inputs": {"script": "echo hello"},
    "project_id": "demo",
    "task_ref": {"task_id": "task-7"}
}))]
pub(crate) struct SkillCallRequest {
    /// What the skill is called with, as its `inputs` schema says.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({"script": "echo hello"}))]
    pub(crate) inputs: Map<String, Value>,
    project_id: Option<ProjectId>,
    client_id: Option<ClientId>,
    policy_overrides: Option<PolicyOverrides>,
    sandbox: Option<SandboxRef>,
    task_ref: Option<TaskRef>,
    #[serde(default)]
    mode: Mode,
    /// Answer when it has ended (200), or as soon as it is taken on (202).
    #[serde(default = "yes")]
    pub(crate) wait: bool,
    #[serde(default)]
    on_exceed: OnExceed,
    #[serde(default)]
    #[schema(max_items = 64, example = json!([]))]
    secrets: Vec<SecretUse>,
    justification: Option<Words>,
    #[serde(default)]
    writes: Writes,
    simulate: Option<Simulation>,
    /// The exec whose changes wait and are there for this one, as if they had been kept.
    over: Option<ExecId>,
    /// Another place for the header `Idempotency-Key`, which counts when both are there.
    #[schema(pattern = "^[!-~]+$", min_length = 1, max_length = 255)]
    pub(crate) request_id: Option<String>,
}

fn yes() -> bool {
    true
}

impl Sent for SkillCallRequest {
    const LIMIT: Limit = Limit::Exec;
}

impl SkillCallRequest {
    /// Without `called` for a request that was answered before: nothing of it is run.
    pub(crate) fn order(self, called: Option<Called>, caller: &Caller) -> Answer<Order> {
        let request = ExecRequest {
            project_id: self.project_id,
            client_id: self.client_id,
            policy_overrides: self.policy_overrides,
            sandbox: self.sandbox,
            task_ref: self.task_ref,
            mode: self.mode,
            wait: self.wait,
            on_exceed: self.on_exceed,
            secrets: self.secrets,
            justification: self.justification,
            writes: self.writes,
            simulate: self.simulate,
            over: self.over,
            request_id: self.request_id,
            ..ExecRequest::nothing()
        };
        let mut order = request.order(caller)?;
        if let Some(called) = called {
            order.call.program = called.program;
            order.call.inputs = called.inputs;
            order.call.skill = Some(called.skill);
        }
        Ok(order)
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

impl From<Invalid> for InvalidSkill {
    fn from(it: Invalid) -> Self {
        Self {
            dir: it.dir,
            error: it.error,
        }
    }
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

impl SkillInfo {
    pub fn of(skill: &Skill, allowed: bool) -> Self {
        let manifest = skill.manifest();
        let (origin, replaces_shipped) = match skill.origin() {
            Origin::Shipped => (SkillOrigin::Shipped, false),
            Origin::Directory { replaces, .. } => (SkillOrigin::Directory, *replaces),
        };
        Self {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            description: manifest.description.clone(),
            version: manifest.version.clone(),
            digest: skill.digest().to_owned(),
            origin,
            replaces_shipped,
            allowed,
            inputs: manifest.interface.inputs.clone(),
            outputs: manifest.interface.outputs.clone(),
            runtime: json!(manifest.runtime),
            permissions: json!(manifest.permissions),
            limits: json!(manifest.limits),
            examples: manifest.examples.iter().map(|it| json!(it)).collect(),
            instructions: None,
            files: None,
        }
    }

    /// With all that there is to tell.
    pub fn whole(skill: &Skill, allowed: bool) -> Self {
        Self {
            instructions: skill.instructions().map(str::to_owned),
            files: Some(skill.files().map(str::to_owned).collect()),
            ..Self::of(skill, allowed)
        }
    }
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

impl SkillAnswer {
    pub fn new(exec: Exec, output: Option<Output>) -> Self {
        let (value, valid, error) = match output {
            Some(output) => (output.value, Some(output.valid), output.error),
            None => (None, None, None),
        };
        Self {
            exec_id: exec.exec_id.clone(),
            status: exec.status,
            skill: exec.skill_id.clone().map(|id| SkillRef {
                id,
                version: exec.skill_version.clone(),
                digest: exec.skill_digest.clone().unwrap_or_default(),
            }),
            output: value.unwrap_or_default(),
            output_valid: valid,
            output_error: error,
            exec,
        }
    }
}
