//! What the operator says about approvals and about leaving the sandbox.

use glovebox_model::{Correlation, Millis, SecurityMode, Tier};
use serde::{Deserialize, Serialize};

use crate::layer::LayerName;

/// `[approvals]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Commands whose tier reaches it are denied without asking.
    pub deny_from: Option<Tier>,
    /// How long a request waits for people.
    pub expire: Millis,
    /// How long a kind stays allowed when the approver names no end, and at most.
    pub grant_expire: Millis,
    pub grant_expire_max: Millis,
    /// How many people must agree to something critical.
    pub quorum: u32,
    /// For development: what would ask is done and recorded as automatic, but for upgrades.
    pub auto: bool,
    /// Whether an answer that an agent's host brings is a person's. Where nothing is said it is on the
    /// machine of whoever started the host, and is not on a server.
    pub elicitation: Option<bool>,
    pub host: HostSettings,
    pub host_mounts: Vec<AllowedMount>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            deny_from: None,
            expire: Millis::secs(30 * 60),
            grant_expire: Millis::secs(8 * 3600),
            grant_expire_max: Millis::secs(7 * 24 * 3600),
            quorum: 1,
            auto: false,
            elicitation: None,
            host: HostSettings::default(),
            host_mounts: Vec::new(),
        }
    }
}

/// Who may ask to run without a sandbox. Each run is asked about; there is no silent level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostSettings {
    pub enabled: bool,
    pub agents: Vec<String>,
    pub users: Vec<String>,
}

/// A directory of the host's that a call may ask for by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedMount {
    pub source: String,
    pub target: String,
    pub mode: MountMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountMode {
    #[default]
    Ro,
    Rw,
}

/// Whether running without a sandbox may be asked for, and what stands against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Elevated {
    pub enabled: bool,
    pub failures: Vec<Gate>,
}

/// A condition that is not met, and the key of the configuration that would meet it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gate {
    pub gate: String,
    pub key: String,
}

impl HostSettings {
    /// All gates are looked at, so that one answer shows all that is missing.
    pub fn elevated(&self, ids: &Correlation, security: SecurityMode) -> Elevated {
        let mut failures = Vec::new();
        let mut fail = |gate: &str, key: &str| {
            failures.push(Gate {
                gate: gate.to_owned(),
                key: key.to_owned(),
            });
        };
        let listed =
            |list: &[String], id: &Option<String>| id.as_ref().is_some_and(|id| list.contains(id));
        if !self.enabled {
            fail("enabled", "approvals.host.enabled");
        }
        if !listed(&self.agents, &ids.agent_id) {
            fail(LayerName::Agent.as_str(), "approvals.host.agents");
        }
        if !listed(&self.users, &ids.user_id) {
            fail(LayerName::User.as_str(), "approvals.host.users");
        }
        if security == SecurityMode::Strict {
            fail("security", "settings.security");
        }
        Elevated {
            enabled: failures.is_empty(),
            failures,
        }
    }
}
