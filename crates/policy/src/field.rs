//! The fields that a layer may speak about, each with the one name that the configuration, the
//! messages and the reports use.

use std::fmt;

use glovebox_model::{Bytes, Count, Cpus, EnvKey, Limits, Millis, PartialLimits, UnitError};

/// A quantity as a plain number, so that every limit is folded by the same code.
trait Raw {
    fn of(raw: u64) -> Self;
    fn raw(self) -> u64;
}

macro_rules! raw {
    ($($unit:ident),+) => {
        $(impl Raw for $unit {
            fn of(raw: u64) -> Self {
                Self(raw)
            }
            fn raw(self) -> u64 {
                self.0
            }
        })+
    };
}

raw!(Bytes, Count, Millis);

impl Raw for Cpus {
    fn of(raw: u64) -> Self {
        Self(u32::try_from(raw).unwrap_or(u32::MAX))
    }
    fn raw(self) -> u64 {
        u64::from(self.0)
    }
}

macro_rules! limit_fields {
    ($($variant:ident = $key:literal, $field:ident: $unit:ident;)+) => {
        /// One limit. `key` is its friendly name; `path` is its name in a serialised profile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LimitField { $($variant,)+ }

        impl LimitField {
            pub const COUNT: usize = [$(Self::$variant),+].len();
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            pub const fn key(self) -> &'static str {
                match self { $(Self::$variant => $key,)+ }
            }

            pub const fn path(self) -> &'static str {
                match self { $(Self::$variant => concat!("limits.", stringify!($field)),)+ }
            }

            /// Reads what a person wrote: `512M`, `30s`, `0.5`.
            pub fn parse(self, text: &str) -> Result<u64, UnitError> {
                match self { $(Self::$variant => text.parse::<$unit>().map(Raw::raw),)+ }
            }

            pub fn show(self, raw: u64) -> String {
                match self { $(Self::$variant => <$unit as Raw>::of(raw).to_string(),)+ }
            }

            pub fn get(self, limits: &Limits) -> u64 {
                match self { $(Self::$variant => limits.$field.raw(),)+ }
            }

            pub fn opinion(self, limits: &PartialLimits) -> Option<u64> {
                match self { $(Self::$variant => limits.$field.map(Raw::raw),)+ }
            }

            pub fn set(self, limits: &mut PartialLimits, raw: u64) {
                match self { $(Self::$variant => limits.$field = Some(Raw::of(raw)),)+ }
            }

            /// Written as a struct literal so that a new limit does not compile until it is here.
            pub(crate) fn gather(mut raw: impl FnMut(Self) -> u64) -> Limits {
                Limits { $($field: Raw::of(raw(Self::$variant)),)+ }
            }
        }
    };
}

limit_fields! {
    Wall = "timeout", wall_ms: Millis;
    CpuTime = "cpu_time", cpu_ms: Millis;
    Memory = "memory", memory_bytes: Bytes;
    Pids = "pids", pids: Count;
    Cpus = "cpus", cpus_milli: Cpus;
    Disk = "disk", disk_bytes: Bytes;
    Files = "files", disk_files: Count;
    Stdout = "stdout", stdout_bytes: Bytes;
    Stderr = "stderr", stderr_bytes: Bytes;
    Artifacts = "artifacts", artifacts_bytes: Bytes;
    OpenFiles = "open_files", open_files: Count;
    Gpus = "gpus", gpus: Count;
    Tpus = "tpus", tpus: Count;
    EgressBytes = "egress_bytes", egress_bytes: Bytes;
    EgressConnections = "egress_connections", egress_connections: Count;
    NetworkTime = "network_time", network_ms: Millis;
}

impl LimitField {
    /// Means nothing to an exec without a network.
    pub const fn is_of_network(self) -> bool {
        matches!(
            self,
            Self::EgressBytes | Self::EgressConnections | Self::NetworkTime
        )
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_of_the_model_has_a_friendly_name() {
        let paths: Vec<_> = LimitField::ALL.iter().map(|field| field.path()).collect();
        let model: Vec<_> = Limits::FIELDS
            .iter()
            .map(|name| format!("limits.{name}"))
            .collect();
        assert_eq!(paths, model);
    }

    #[test]
    fn what_is_set_is_what_is_read() {
        for field in LimitField::ALL {
            let mut partial = PartialLimits::default();
            assert_eq!(field.opinion(&partial), None);
            field.set(&mut partial, 7000);
            assert_eq!(field.opinion(&partial), Some(7000));
            for other in LimitField::ALL.into_iter().filter(|other| *other != field) {
                assert_eq!(other.opinion(&partial), None);
            }
            assert_eq!(field.parse(&field.show(7000)), Ok(7000));
        }
    }
}
