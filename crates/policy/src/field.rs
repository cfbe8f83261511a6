//! The fields that a layer may speak about, each with the one name that the configuration, the
//! messages and the reports use.

use std::fmt;

use glovebox_model::{EnvKey, LimitField};

/// Anything that is decided for an exec.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    Limit(LimitField),
    Network,
    AllowNet,
    Workspace,
    EnvAllow,
    Tier,
    Security,
    LimitsDemand,
    Approval,
    Require,
    Backend,
    Runtime,
    Image,
    Env(EnvKey),
}

impl Field {
    /// Where the field stands in the serialised profile or request.
    pub fn path(&self) -> String {
        match self {
            Self::Limit(limit) => limit.path().to_owned(),
            Self::Network
            | Self::AllowNet
            | Self::Workspace
            | Self::EnvAllow
            | Self::Tier
            | Self::Security
            | Self::LimitsDemand
            | Self::Approval
            | Self::Require
            | Self::Backend
            | Self::Runtime
            | Self::Image
            | Self::Env(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => f.pad(limit.key()),
            Self::Network => f.pad("network"),
            Self::AllowNet => f.pad("allow_net"),
            Self::Workspace => f.pad("workspace"),
            Self::EnvAllow => f.pad("env_allow"),
            Self::Tier => f.pad("tier"),
            Self::Security => f.pad("security"),
            Self::LimitsDemand => f.pad("limits_demand"),
            Self::Approval => f.pad("approval"),
            Self::Require => f.pad("require"),
            Self::Backend => f.pad("backend"),
            Self::Runtime => f.pad("runtime"),
            Self::Image => f.pad("image"),
            Self::Env(key) => write!(f, "env.{key}"),
        }
    }
}
