//! What an exec may use. Combining layers takes the minimum of each field.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Count, Cpus, Millis};

/// The limit that ended or stopped an exec, as the record names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Wall,
    Cpu,
    Memory,
    Pids,
    Disk,
    Inodes,
    Output,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Inodes => "inodes",
            Self::Output => "output",
        })
    }
}

/// Declares the limits once: the struct, its partial form for layers, and access by field name,
/// so that the resolver, the explanation and the configuration can never disagree on the list.
/// `= "function"` gives what a record means that was written before the limit was there.
macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $unit:ty $(= $absent:literal)?),+ $(,)?) => {
        /// All limits, each set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub struct Limits {
            $($(#[$doc])*
              $(#[serde(default = $absent)]
                #[cfg_attr(feature = "openapi", schema(required))])?
              pub $field: $unit,)+
        }

        /// What one layer says about limits; an unset field has no opinion.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct PartialLimits {
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")]
              pub $field: Option<$unit>,)+
        }

        impl Limits {
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

            /// The minimum of each field: combining can only narrow.
            #[must_use]
            pub fn narrowed_by(self, other: &PartialLimits) -> Self {
                Self { $($field: other.$field.map_or(self.$field, |it| it.min(self.$field)),)+ }
            }

            /// Every field as name, raw number (bytes, milliseconds, count, thousandths) and text.
            pub fn entries(&self) -> Vec<(&'static str, u64, String)> {
                vec![$((stringify!($field), u64::from(self.$field.0), self.$field.to_string())),+]
            }
        }

        impl PartialLimits {
            /// Each field of this, or else of the other.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)+ }
            }

            pub fn entries(&self) -> Vec<(&'static str, Option<u64>)> {
                vec![$((stringify!($field), self.$field.map(|it| u64::from(it.0)))),+]
            }

            pub fn clear(&mut self, field: &str) {
                $(if field == stringify!($field) { self.$field = None; })+
            }
        }

        impl From<Limits> for PartialLimits {
            fn from(all: Limits) -> Self {
                Self { $($field: Some(all.$field),)+ }
            }
        }
    };
}

limits! {
    /// Time from start to end.
    wall_ms: Millis,
    /// Processor time of all processes together.
    cpu_ms: Millis,
    memory_bytes: Bytes,
    pids: Count,
    /// Rate of processor use, in thousandths.
    cpus_milli: Cpus,
    /// New bytes on disk: the workspace and the temporary directories.
    disk_bytes: Bytes,
    /// New files: the workspace and the temporary directories.
    disk_files: Count,
    stdout_bytes: Bytes,
    stderr_bytes: Bytes,
    artifacts_bytes: Bytes,
    open_files: Count,
    /// Graphics processors that the sandbox is given.
    gpus: Count = "no_devices",
    /// Tensor processors that the sandbox is given.
    tpus: Count = "no_devices",
    /// Bytes in both directions together, where there is a network.
    egress_bytes: Bytes = "no_bytes",
    /// Connections over the whole run.
    egress_connections: Count = "no_devices",
    /// The network is closed this long after the start.
    network_ms: Millis = "no_time",
}

const fn no_bytes() -> Bytes {
    Bytes(0)
}

const fn no_time() -> Millis {
    Millis(0)
}

const fn no_devices() -> Count {
    Count(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Limits {
        Limits {
            wall_ms: Millis::secs(60),
            cpu_ms: Millis::secs(60),
            memory_bytes: Bytes::mib(1024),
            pids: Count(256),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(1024),
            disk_files: Count(10_000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(50),
            open_files: Count(1024),
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(64),
            egress_connections: Count(100),
            network_ms: Millis::secs(60),
        }
    }

    #[test]
    fn narrowing_takes_the_minimum_and_never_widens() {
        let layer = PartialLimits {
            pids: Some(Count(10)),
            memory_bytes: Some(Bytes::mib(9999)),
            ..PartialLimits::default()
        };
        let narrowed = some().narrowed_by(&layer);
        assert_eq!(
            narrowed,
            Limits {
                pids: Count(10),
                ..some()
            }
        );
    }

    #[test]
    fn the_field_list_is_the_serialised_list() {
        let json = serde_json::to_value(some()).unwrap();
        let mut names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        let mut fields: Vec<_> = Limits::FIELDS.iter().map(|f| (*f).to_owned()).collect();
        names.sort();
        fields.sort();
        assert_eq!(names, fields);
    }

    #[test]
    fn a_record_from_before_devices_were_limited_gave_none() {
        let mut json = serde_json::to_value(some()).unwrap();
        let fields = json.as_object_mut().unwrap();
        assert!(fields.remove("gpus").is_some() && fields.remove("tpus").is_some());
        assert_eq!(
            serde_json::from_value::<Limits>(json.clone()).unwrap(),
            some()
        );
        json.as_object_mut().unwrap().remove("pids");
        assert!(serde_json::from_value::<Limits>(json).is_err());
    }
}
