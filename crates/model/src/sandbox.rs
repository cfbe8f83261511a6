//! Sandboxes that outlive an exec: whose they are, what they were made with, how they stand.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::docker::DockerConfig;
use crate::id::{ExecId, ProjectId, SandboxId, SpaceId};
use crate::limits::Limits;
use crate::profile::{Access, BackendName, NetworkMode, PartialProfile};
use crate::units::Millis;

/// How long a sandbox lives. `Exec` is made for one run and gone with it; the others are kept for
/// whoever they are named after.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    #[default]
    Exec,
    Session,
    Agent,
    Shared,
}

impl Lifetime {
    pub const ALL: [Self; 4] = [Self::Exec, Self::Session, Self::Agent, Self::Shared];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which sandbox a call runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// A fresh one, for this run alone.
    #[default]
    Fresh,
    /// The one of the call's session or agent, or the one that all share; made when it is not there.
    Scope(Lifetime),
    /// One that is there already, by its id or its name.
    Named(String),
}

/// How a kept sandbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Nothing of it runs: it is built again, from the same configuration, when it is next used.
    Down,
    Idle,
    /// Being built, or being given to an exec.
    Acquiring,
    Busy,
}

impl SandboxState {
    pub const ALL: [Self; 4] = [Self::Down, Self::Idle, Self::Acquiring, Self::Busy];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Idle => "idle",
            Self::Acquiring => "acquiring",
            Self::Busy => "busy",
        }
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Everything that a sandbox is made with and cannot be changed while it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxConfig {
    pub backend: BackendName,
    pub image: Option<String>,
    pub workspace: Access,
    pub network: NetworkMode,
    pub limits: Limits,
    /// Whether what programs change outside the workspace is there for the next exec, and after a
    /// restart: the home directory on `native`, the whole root on `docker`.
    pub keep_root: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerConfig>,
}

/// A port inside a container, and where on this machine's loopback it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Published {
    pub port: u16,
    /// `127.0.0.1:49153`.
    pub address: String,
}

/// One row of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sandbox {
    pub sandbox_id: SandboxId,
    /// Lower case letters, digits and `-`, at most 63: also the name of its container.
    pub name: String,
    pub space_id: SpaceId,
    pub project_id: ProjectId,
    pub lifetime: Lifetime,
    /// The session or agent it is kept for.
    pub scope: Option<String>,
    /// The agent whose session it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub config: SandboxConfig,
    /// What was asked for when it was made, beside what policy says; it holds for every exec that
    /// comes to it by its scope, and when it is made anew.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub asked: PartialProfile,
    /// SHA-256 of the canonical configuration, hexadecimal: what it was really made with.
    pub config_hash: String,
    pub state: SandboxState,
    /// Who is in it.
    pub exec_id: Option<ExecId>,
    /// What the container engine calls it.
    pub container_id: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_used_at: Timestamp,
    pub uses: u64,
    /// Why it is down, when that was not planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Looked up when one sandbox is asked for, never stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Published>,
}

impl Sandbox {
    /// The agent that it is kept for, by itself or for a session of its own.
    pub fn agent(&self) -> Option<&str> {
        match self.lifetime {
            Lifetime::Agent => self.scope.as_deref(),
            Lifetime::Exec | Lifetime::Session => self.agent_id.as_deref(),
            Lifetime::Shared => None,
        }
    }
}

fn is_nothing(asked: &PartialProfile) -> bool {
    *asked == PartialProfile::default()
}

/// How sandboxes are kept, for one agent or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Of calls that do not say where they run.
    pub lifetime: Lifetime,
    /// See [`SandboxConfig::keep_root`].
    pub keep_root: bool,
    /// One that nobody used for so long is removed; never, when unset.
    pub prune_idle: Option<Millis>,
    /// One that was made so long ago is removed when nobody is in it; never, when unset.
    pub prune_age: Option<Millis>,
    /// One that was used within this time is kept when its configuration changed, and not built
    /// anew.
    pub hot_window: Millis,
    /// How long an exec waits for its turn in a kept one; whoever removes it waits as long, within
    /// bounds.
    pub acquire_timeout: Millis,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        const HOUR: u64 = 3600;
        Self {
            lifetime: Lifetime::Exec,
            keep_root: false,
            prune_idle: Some(Millis::secs(24 * HOUR)),
            prune_age: Some(Millis::secs(7 * 24 * HOUR)),
            hot_window: Millis::secs(5 * 60),
            acquire_timeout: Millis::secs(30),
        }
    }
}
