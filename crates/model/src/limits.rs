//! What an exec may use. Combining layers takes the minimum of each field.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Count, Cpus, Millis, UnitError};

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
    /// Nothing was written to a session or read from it for as long as it may be silent.
    Idle,
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
            Self::Idle => "idle",
        })
    }
}

/// A quantity as a plain number, so that every limit is folded by the same code.
trait Raw {
    /// `0.5` and `1.5h` make sense, as plain numbers too.
    const HAS_FRACTIONS: bool;
    fn of(raw: u64) -> Self;
    fn raw(self) -> u64;
}

macro_rules! raw {
    ($($unit:ident: $has_fractions:literal),+) => {
        $(impl Raw for $unit {
            const HAS_FRACTIONS: bool = $has_fractions;
            fn of(raw: u64) -> Self {
                Self(raw)
            }
            fn raw(self) -> u64 {
                self.0
            }
        })+
    };
}

raw!(Bytes: false, Count: false, Millis: true);

impl Raw for Cpus {
    const HAS_FRACTIONS: bool = true;
    fn of(raw: u64) -> Self {
        Self(u32::try_from(raw).unwrap_or(u32::MAX))
    }
    fn raw(self) -> u64 {
        u64::from(self.0)
    }
}

/// What a limit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitScope {
    /// Built into the sandbox that it runs in.
    Sandbox,
    /// Each exec's own.
    Exec,
    /// Each exec's own, and nothing without a network.
    Network,
}

/// A default or a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitValue {
    Fixed(u64),
    /// The memory of the host, divided by this.
    HostMemory {
        parts: u64,
    },
    HostCpus,
    /// Time times processors: it runs out no earlier than the clock on the wall does.
    TimeOfAllCpus,
}

/// What holds when no settings speak, and what no settings may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitPair {
    pub default: LimitValue,
    pub ceiling: LimitValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LimitRow {
    scope: LimitScope,
    /// The least and the most that make sense at all.
    range: (u64, u64),
    server: LimitPair,
    local: LimitPair,
}

const fn fixed(default: u64, ceiling: u64) -> LimitPair {
    LimitPair {
        default: LimitValue::Fixed(default),
        ceiling: LimitValue::Fixed(ceiling),
    }
}

const CPU_TIME: LimitPair = LimitPair {
    default: LimitValue::TimeOfAllCpus,
    ceiling: LimitValue::TimeOfAllCpus,
};

const ALL_CPUS: LimitPair = LimitPair {
    default: LimitValue::HostCpus,
    ceiling: LimitValue::HostCpus,
};

const HALF_THE_MEMORY: LimitPair = LimitPair {
    default: LimitValue::HostMemory { parts: 2 },
    ceiling: LimitValue::HostMemory { parts: 1 },
};

/// Declares every limit once. From it come the struct, its partial form for layers, access by field,
/// and with them configuration, explanation, defaults and ceilings. `or "function"` gives what a record
/// means that was written before the limit was there.
macro_rules! limits {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $key:literal, $field:ident: $unit:ident $(or $absent:literal)?, $scope:ident {
            range: $range:expr,
            server: $server:expr,
            local: $local:expr,
        }
    )+) => {
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

            const fn row(self) -> LimitRow {
                match self {
                    $(Self::$variant => LimitRow {
                        scope: LimitScope::$scope,
                        range: $range,
                        server: $server,
                        local: $local,
                    },)+
                }
            }

            /// Whether a plain number with a fraction makes sense.
            pub const fn has_fractions(self) -> bool {
                match self { $(Self::$variant => <$unit as Raw>::HAS_FRACTIONS,)+ }
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
            pub fn gather(mut raw: impl FnMut(Self) -> u64) -> Limits {
                Limits { $($field: Raw::of(raw(Self::$variant)),)+ }
            }
        }
    };
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

// For each: the least and the most that make sense at all; what a server gives, and a machine of one's
// own; in pairs of a default and the ceiling that no setting may pass.
limits! {
    // Zero would end everything; work of more than a month belongs in a session. A server's worker is
    // not to be held; a build on a laptop takes its time.
    /// Time from start to end.
    Wall = "timeout", wall_ms: Millis, Exec {
        range: (1, 30 * DAY),
        server: fixed(MINUTE, 5 * MINUTE),
        local: fixed(HOUR, 7 * DAY),
    }
    // A terminal or a development server outlives a job many times over.
    /// Time from start to end of a session, in place of `timeout`.
    SessionTime = "session_time", session_ms: Millis or "no_time", Exec {
        range: (1, 30 * DAY),
        server: fixed(HOUR, DAY),
        local: fixed(DAY, 30 * DAY),
    }
    // It never bites before the time-out unless somebody sets it.
    /// Processor time of all processes together.
    CpuTime = "cpu_time", cpu_ms: Millis, Sandbox {
        range: (1, 30 * DAY * 1024),
        server: CPU_TIME,
        local: CPU_TIME,
    }
    // Below 8 MiB the loader is killed and the sandbox looks broken. Two local execs at once still fit
    // beside the desktop.
    Memory = "memory", memory_bytes: Bytes, Sandbox {
        range: (8 * MIB, 64 * TIB),
        server: fixed(GIB, 4 * GIB),
        local: HALF_THE_MEMORY,
    }
    // The program itself is one; the kernel's largest pid. A parallel build forks widely; a fork bomb
    // still ends quickly.
    Pids = "pids", pids: Count, Sandbox {
        range: (1, 4_194_304),
        server: fixed(256, 512),
        local: fixed(4096, 32_768),
    }
    // Below a tenth even start-up crawls past time-outs.
    /// Rate of processor use, in thousandths.
    Cpus = "cpus", cpus_milli: Cpus, Sandbox {
        range: (100, 1_024_000),
        server: fixed(1000, 4000),
        local: ALL_CPUS,
    }
    // A size of zero means no limit to tmpfs. Dependencies and build products of a large project.
    /// New bytes on disk: the workspace and the temporary directories.
    Disk = "disk", disk_bytes: Bytes, Sandbox {
        range: (64 << 10, 1024 * TIB),
        server: fixed(GIB, 10 * GIB),
        local: fixed(32 * GIB, TIB),
    }
    // Zero means no limit to tmpfs; directories count too. One `node_modules` holds 30,000 to 60,000.
    /// New files: the workspace and the temporary directories.
    Files = "files", disk_files: Count, Sandbox {
        range: (16, 1 << 32),
        server: fixed(100_000, 1_000_000),
        local: fixed(1_000_000, 10_000_000),
    }
    // An empty stream cannot say that it was cut. What a model reads; what a person scrolls.
    Stdout = "stdout", stdout_bytes: Bytes, Exec {
        range: (1, 64 * GIB),
        server: fixed(MIB, 10 * MIB),
        local: fixed(10 * MIB, GIB),
    }
    Stderr = "stderr", stderr_bytes: Bytes, Exec {
        range: (1, 64 * GIB),
        server: fixed(MIB, 10 * MIB),
        local: fixed(10 * MIB, GIB),
    }
    // To keep none is a sensible wish. Reports and images; binaries.
    Artifacts = "artifacts", artifacts_bytes: Bytes, Exec {
        range: (0, 1024 * TIB),
        server: fixed(50 * MIB, 200 * MIB),
        local: fixed(GIB, 64 * GIB),
    }
    // Standard streams, the loader and an interpreter's first files; the kernel's default most. The
    // usual soft limit; below the hard limit of an ordinary login.
    OpenFiles = "open_files", open_files: Count, Sandbox {
        range: (16, 1_048_576),
        server: fixed(1024, 65_536),
        local: fixed(4096, 524_288),
    }
    // A device is shared with the host's own driver: only an operator gives one.
    /// Graphics processors that the sandbox is given.
    Gpus = "gpus", gpus: Count or "no_devices", Sandbox {
        range: (0, 1024),
        server: fixed(0, 0),
        local: fixed(0, 0),
    }
    /// Tensor processors that the sandbox is given.
    Tpus = "tpus", tpus: Count or "no_devices", Sandbox {
        range: (0, 1024),
        server: fixed(0, 0),
        local: fixed(0, 0),
    }
    // To have none is `network = "none"`. A set of packages; a model's weights.
    /// Bytes in both directions together, where there is a network.
    EgressBytes = "egress_bytes", egress_bytes: Bytes or "no_bytes", Network {
        range: (1, 1024 * TIB),
        server: fixed(256 * MIB, GIB),
        local: fixed(GIB, 64 * GIB),
    }
    // One for each file of a large install.
    /// Connections over the whole run.
    EgressConnections = "egress_connections", egress_connections: Count or "no_devices", Network {
        range: (1, 1 << 32),
        server: fixed(2000, 10_000),
        local: fixed(10_000, 1_000_000),
    }
    // No way out stays open for longer than a day.
    /// The network is closed this long after the start.
    NetworkTime = "network_time", network_ms: Millis or "no_time", Network {
        range: (1, DAY),
        server: fixed(HOUR, DAY),
        local: fixed(DAY, DAY),
    }
}

impl LimitField {
    /// The least and the most that make sense at all.
    pub const fn range(self) -> (u64, u64) {
        self.row().range
    }

    pub const fn scope(self) -> LimitScope {
        self.row().scope
    }

    /// What a server gives.
    pub const fn on_server(self) -> LimitPair {
        self.row().server
    }

    /// What a machine of one's own gives.
    pub const fn on_local(self) -> LimitPair {
        self.row().local
    }
}

impl Limits {
    /// As far as they are built into a sandbox.
    #[must_use]
    pub fn built_in(&self) -> Self {
        LimitField::gather(|field| match field.scope() {
            LimitScope::Sandbox => field.get(self),
            LimitScope::Exec | LimitScope::Network => 0,
        })
    }
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
            session_ms: Millis::secs(60),
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
