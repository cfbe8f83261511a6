//! The effective policy of one exec, and what one layer may say about it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::HostPort;
use crate::id::EnvKey;
use crate::isolation::Guarantee;
use crate::limits::{Limits, PartialLimits};
use crate::permit::ApprovalMode;

/// How dangerous an action is. Ordered: the strictest of two tiers is their maximum.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    #[default]
    Safe,
    Low,
    Medium,
    High,
    Critical,
}

impl Tier {
    pub const ALL: [Self; 5] = [
        Self::Safe,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Critical,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Ordered from least to most reach: combining layers takes the minimum.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    #[default]
    None,
    Retrieval,
    Allowlist,
    Unrestricted,
}

impl NetworkMode {
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Retrieval,
        Self::Allowlist,
        Self::Unrestricted,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Retrieval => "retrieval",
            Self::Allowlist => "allowlist",
            Self::Unrestricted => "unrestricted",
        }
    }
}

impl fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the sandbox may do with the workspace. Ordered from least to most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    None,
    Ro,
    #[default]
    Rw,
}

/// `Strict` (default): isolation for everything. `Permissive` follows the assessed suggestion.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecurityMode {
    Permissive,
    #[default]
    Strict,
}

/// Whether limits that are watched and enforced by us, not by the kernel, are good enough.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitsDemand {
    #[default]
    Supervised,
    Kernel,
}

/// The backends that this build knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BackendName {
    Native,
    /// Containers, through the docker or podman command.
    Docker,
    /// No sandbox at all. Only ever by name, and only with a person's approval of each exec.
    Host,
}

impl BackendName {
    pub const ALL: [Self; 3] = [Self::Native, Self::Docker, Self::Host];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The effective policy: every field decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Profile {
    pub limits: Limits,
    pub network: NetworkMode,
    /// Only meaningful with `NetworkMode::Allowlist`.
    pub allow_net: BTreeSet<HostPort>,
    pub workspace: Access,
    /// Environment keys a call may set; `*` at the end of a pattern matches any rest.
    pub env_allow: BTreeSet<String>,
    pub tier: Tier,
    pub security: SecurityMode,
    pub limits_demand: LimitsDemand,
    /// How much is done without asking a person.
    #[serde(default)]
    pub approval: ApprovalMode,
    /// Guarantees that must be the kernel's, beside what strict security demands anyway.
    #[serde(default)]
    pub require: BTreeSet<Guarantee>,
    pub backend: Option<BackendName>,
    /// The container runtime, such as `runsc`.
    #[serde(default)]
    pub runtime: Option<String>,
    pub image: Option<String>,
}

/// What one layer says. An unset field has no opinion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartialProfile {
    #[serde(skip_serializing_if = "is_default")]
    pub limits: PartialLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_net: Option<BTreeSet<HostPort>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Access>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_allow: Option<BTreeSet<String>>,
    /// Values the layer sets for every exec below it; a nearer layer wins key by key.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub env: std::collections::BTreeMap<EnvKey, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_demand: Option<LimitsDemand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMode>,
    /// United over the layers.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub require: BTreeSet<Guarantee>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

impl PartialProfile {
    /// What this layer says, and where it says nothing what the other does. Requirements unite.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut env = other.env;
        env.extend(self.env);
        let mut require = other.require;
        require.extend(self.require);
        Self {
            limits: self.limits.or(other.limits),
            network: self.network.or(other.network),
            allow_net: self.allow_net.or(other.allow_net),
            workspace: self.workspace.or(other.workspace),
            env_allow: self.env_allow.or(other.env_allow),
            env,
            tier: self.tier.or(other.tier),
            security: self.security.or(other.security),
            limits_demand: self.limits_demand.or(other.limits_demand),
            approval: self.approval.or(other.approval),
            require,
            backend: self.backend.or(other.backend),
            runtime: self.runtime.or(other.runtime),
            image: self.image.or(other.image),
        }
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A field that a request wanted wider than a layer allows, brought down because it said `cap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capped {
    pub field: String,
    pub asked: String,
    pub granted: String,
    pub layer: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stricter_is_ordered() {
        assert!(Tier::Critical > Tier::High);
        assert!(NetworkMode::None < NetworkMode::Unrestricted);
        assert!(Access::Ro < Access::Rw);
        assert!(SecurityMode::Strict > SecurityMode::Permissive);
        assert!(LimitsDemand::Kernel > LimitsDemand::Supervised);
    }
}
