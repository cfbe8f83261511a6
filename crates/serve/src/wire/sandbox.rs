//! Kept sandboxes: which one an exec runs in, and what one is asked to be.

use glovebox_engine::{OF_AGENT, Selection, named_after, of_session};
use glovebox_model::{
    Code, Correlation, Lifetime, OnExceed, Placement, ProjectId, SandboxId, WorkspaceRef,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::call::not_reserved;
use super::exec::TaskRef;
use super::overrides::PolicyOverrides;
use super::{Id, SandboxName};
use crate::auth::Caller;
use crate::body::{Limit, Sent};
use crate::failure::{Answer, Failure};

/// One that is there, by its id or its name; or by a `lifetime`: the one of the exec's session or
/// agent, or the one that all share, which is made when it is not there. `exec` is a fresh one,
/// whatever the configuration says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SandboxRef {
    Id(SandboxById),
    Name(SandboxByName),
    Lifetime(SandboxByLifetime),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxById {
    id: SandboxId,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxByName {
    name: SandboxName,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxByLifetime {
    lifetime: Lifetime,
}

impl SandboxRef {
    pub(super) fn placement(self) -> Placement {
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
pub(crate) enum KeptLifetime {
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
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "lifetime": "agent",
    "agent_id": "ann",
    "project_id": "demo",
    "policy_overrides": {"memory": "512M", "pids": 64}
}))]
pub(crate) struct SandboxRequest {
    lifetime: KeptLifetime,
    /// Whose it is when it lives as long as an agent. An agent's token fills it in.
    agent_id: Option<Id>,
    /// Whose it is when it lives as long as a session.
    session_id: Option<Id>,
    /// The workspace that it works on; without it, one that is named after whose it is.
    project_id: Option<ProjectId>,
    policy_overrides: Option<PolicyOverrides>,
    #[serde(default)]
    on_exceed: OnExceed,
}

impl Sent for SandboxRequest {
    const LIMIT: Limit = Limit::Plain;
}

impl SandboxRequest {
    pub(crate) fn asked(self, caller: &Caller) -> Answer<glovebox_engine::SandboxRequest> {
        let task = TaskRef {
            agent_id: self.agent_id,
            session_id: self.session_id,
            ..TaskRef::default()
        };
        let ids = task.ids(caller)?;
        let lifetime = self.lifetime.into();
        let own = project_of(lifetime, &ids)?.ok_or_else(Failure::internal)?;
        Ok(glovebox_engine::SandboxRequest {
            project: self.project_id.map_or(Ok(own), not_reserved)?,
            ids,
            lifetime,
            on_exceed: self.on_exceed,
            overrides: self.policy_overrides.unwrap_or_default().profile()?,
        })
    }
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
pub(super) fn workspace_of(placement: &Placement, ids: &Correlation) -> Answer<WorkspaceRef> {
    let own = match placement {
        Placement::Scope(lifetime) => project_of(*lifetime, ids)?,
        // The engine takes the sandbox's own.
        Placement::Fresh | Placement::Named(_) => None,
    };
    Ok(own.map_or(WorkspaceRef::Scratch, WorkspaceRef::Project))
}

/// Which of the space's sandboxes are made anew.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!({"agent": "ann"}))]
pub(crate) enum RecreateRequest {
    All(RecreateAll),
    Mismatched(RecreateMismatched),
    Agent(RecreateOfAgent),
    Session(RecreateOfSession),
}

/// Every one; for an admin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecreateAll {
    #[serde(rename = "all")]
    _all: Yes,
}

/// Those that policy would make otherwise now; for an admin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecreateMismatched {
    #[serde(rename = "mismatched")]
    _mismatched: Yes,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecreateOfAgent {
    agent: Id,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecreateOfSession {
    session: Id,
}

impl Sent for RecreateRequest {
    const LIMIT: Limit = Limit::Plain;
}

impl RecreateRequest {
    pub(crate) fn selection(self) -> Selection {
        match self {
            Self::All(_) => Selection::All,
            Self::Mismatched(_) => Selection::Mismatched,
            Self::Agent(it) => Selection::Agent(it.agent.0),
            Self::Session(it) => Selection::Session(it.session.0),
        }
    }
}

/// Only `true`.
#[derive(Debug)]
struct Yes;

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
