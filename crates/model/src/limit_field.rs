//! One limit as a value: its name, its unit, and the values that make sense for it at all.

use crate::limits::{Limits, PartialLimits};
use crate::units::{Bytes, Count, Cpus, Millis, UnitError};

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
            pub fn gather(mut raw: impl FnMut(Self) -> u64) -> Limits {
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

/// | limit | least | why | most | why |
/// |---|---|---|---|---|
/// | timeout | 1 ms | zero would end everything | 30 d | longer work belongs in a session |
/// | cpu_time | 1 ms | as above | 30 d × 1024 cpus | as above, on every processor |
/// | memory | 8 MiB | below it the loader is killed and the sandbox looks broken | 64 TiB | beyond any host |
/// | pids | 1 | the program itself | 4 194 304 | the kernel's largest pid |
/// | cpus | 0.1 | below it even start-up crawls past time-outs | 1024 | beyond any host |
/// | disk | 64 KiB | a size of zero means «no limit» to tmpfs | 1 PiB | beyond any host |
/// | files | 16 | zero means «no limit» to tmpfs; directories count too | 2³² | beyond any filesystem |
/// | stdout, stderr | 1 B | an empty stream cannot say that it was cut | 64 GiB | they are kept on disk |
/// | artifacts | 0 | «keep none» is a sensible wish | 1 PiB | beyond any host |
/// | open_files | 16 | stdio, the loader and an interpreter's first files | 1 048 576 | the kernel's default most |
/// | gpus, tpus | 0 | most programs need none | 1024 | beyond any host |
/// | egress_bytes, egress_connections | 1 | to have none is `network = "none"` | 1 PiB, 2³² | beyond any line |
/// | network_time | 1 ms | as above | 24 h | a way out is granted for a day at most |
const fn range(field: LimitField) -> (u64, u64) {
    const DAY_MS: u64 = 86_400_000;
    match field {
        LimitField::Wall => (1, 30 * DAY_MS),
        LimitField::CpuTime => (1, 30 * DAY_MS * 1024),
        LimitField::Memory => (8 << 20, 64 << 40),
        LimitField::Pids => (1, 4_194_304),
        LimitField::Cpus => (100, 1_024_000),
        LimitField::Disk => (64 << 10, 1 << 50),
        LimitField::Files => (16, 1 << 32),
        LimitField::Stdout | LimitField::Stderr => (1, 64 << 30),
        LimitField::Artifacts => (0, 1 << 50),
        LimitField::OpenFiles => (16, 1_048_576),
        LimitField::Gpus | LimitField::Tpus => (0, 1024),
        LimitField::EgressBytes => (1, 1 << 50),
        LimitField::EgressConnections => (1, 1 << 32),
        LimitField::NetworkTime => (1, DAY_MS),
    }
}

impl LimitField {
    /// The least and the most that make sense at all.
    pub const fn range(self) -> (u64, u64) {
        range(self)
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
