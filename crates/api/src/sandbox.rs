//! Kept sandboxes: which one an exec runs in, and what one is asked to be.

use glovebox_model::{Lifetime, OnExceed, Placement, ProjectId, Sandbox, SandboxId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{Id, PolicyOverrides, SandboxName};

/// One that is there, by its id or its name; or by a `lifetime`: the one of the exec's session or
/// agent, or the one that all share, which is made when it is not there. `exec` is a fresh one,
/// whatever the configuration says.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum SandboxRef {
    Id(SandboxById),
    Name(SandboxByName),
    Lifetime(SandboxByLifetime),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxById {
    pub id: SandboxId,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxByName {
    pub name: SandboxName,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxByLifetime {
    pub lifetime: Lifetime,
}

impl SandboxRef {
    pub fn placement(self) -> Placement {
        match self {
            Self::Id(it) => Placement::Named(it.id.to_string()),
            Self::Name(it) => Placement::Named(it.name.0),
            Self::Lifetime(it) => Placement::Scope(it.lifetime),
        }
    }
}

/// How long a kept sandbox lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptLifetime {
    Session,
    Agent,
    Shared,
}

impl From<KeptLifetime> for Lifetime {
    fn from(it: KeptLifetime) -> Self {
        match it {
            KeptLifetime::Session => Self::Session,
            KeptLifetime::Agent => Self::Agent,
            KeptLifetime::Shared => Self::Shared,
        }
    }
}

/// What a kept sandbox is asked to be.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "lifetime": "agent",
    "agent_id": "ann",
    "project_id": "demo",
    "policy_overrides": {"memory": "512M", "pids": 64}
}))]
pub struct SandboxRequest {
    pub lifetime: KeptLifetime,
    /// Whose it is when it lives as long as an agent. An agent's token fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Id>,
    /// Whose it is when it lives as long as a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// The workspace that it works on; without it, one that is named after whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_overrides: Option<PolicyOverrides>,
    #[serde(default)]
    pub on_exceed: OnExceed,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Sandboxes {
    /// The last used first, at most 1000.
    pub items: Vec<Sandbox>,
}

/// Which of the space's sandboxes are made anew.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!({"agent": "ann"}))]
pub enum RecreateRequest {
    All(RecreateAll),
    Mismatched(RecreateMismatched),
    Agent(RecreateOfAgent),
    Session(RecreateOfSession),
}

impl RecreateRequest {
    pub const fn all() -> Self {
        Self::All(RecreateAll { all: Yes })
    }

    pub const fn mismatched() -> Self {
        Self::Mismatched(RecreateMismatched { mismatched: Yes })
    }

    pub fn of_agent(agent: &str) -> Self {
        let agent = Id(agent.to_owned());
        Self::Agent(RecreateOfAgent { agent })
    }

    pub fn of_session(session: &str) -> Self {
        let session = Id(session.to_owned());
        Self::Session(RecreateOfSession { session })
    }
}

/// Every one; for an admin.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecreateAll {
    pub all: Yes,
}

/// Those that policy would make otherwise now; for an admin.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecreateMismatched {
    pub mismatched: Yes,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecreateOfAgent {
    pub agent: Id,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecreateOfSession {
    pub session: Id,
}

/// Only `true`.
#[derive(Debug)]
pub struct Yes;

impl Serialize for Yes {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_bool(true)
    }
}

impl<'de> Deserialize<'de> for Yes {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        match bool::deserialize(reader)? {
            true => Ok(Self),
            false => Err(D::Error::custom("must be `true`")),
        }
    }
}

impl PartialSchema for Yes {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .enum_values(Some([true]))
            .into()
    }
}

impl ToSchema for Yes {}
