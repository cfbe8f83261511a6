//! What holds before anybody said anything, and how far an operator's settings may go.

use glovebox_model::{
    Bytes, Code, Count, Cpus, Error, LimitField, Limits, Millis, NetworkMode, PartialLimits,
    Result, Stage,
};

use crate::field::Field;
use crate::layer::{Layer, LayerName};
use crate::preset::TierPresets;

/// Where a call comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Many callers share one machine.
    Server,
    /// One developer, on their own machine, in-process.
    Local,
}

/// What the caller read from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFacts {
    pub memory_bytes: u64,
    pub cpus: u32,
}

/// The system layer. For each limit a default, which holds when no settings layer speaks, and a
/// ceiling, which no settings layer may pass. A request never passes either: what the settings
/// say, or else the default, is the most it gets.
///
/// | limit | server | ceiling | local | ceiling | reason |
/// |---|---|---|---|---|---|
/// | timeout | 60 s | 5 min | 1 h | 7 d | a shared worker is not to be held; a build on a laptop takes its time |
/// | cpu_time | timeout × cpus | same | same | same | never bites before the time-out unless somebody sets it |
/// | memory | 1 GiB | 4 GiB | half the host | the host | two local execs at once still fit beside the desktop |
/// | pids | 256 | 512 | 4096 | 32 768 | a parallel build forks widely; a fork bomb still ends quickly |
/// | cpus | 1 | 4 | all | all | a developer wants the machine they paid for |
/// | disk | 1 GiB | 10 GiB | 32 GiB | 1 TiB | dependencies and build products of a large project |
/// | files | 100 000 | 1 000 000 | 1 000 000 | 10 000 000 | one `node_modules` holds 30 000 to 60 000 |
/// | stdout, stderr | 1 MiB each | 10 MiB | 10 MiB | 1 GiB | what a model reads; what a person scrolls |
/// | artifacts | 50 MiB | 200 MiB | 1 GiB | 64 GiB | reports and images; binaries |
/// | open_files | 1024 | 65 536 | 4096 | 524 288 | the usual soft limit; below the hard limit of an ordinary login |
/// | gpus, tpus | 0 | 0 | 0 | 0 | a device is shared with the host's own driver: only an operator gives one |
/// | egress_bytes | 256 MiB | 1 GiB | 1 GiB | 64 GiB | a set of packages; a model's weights |
/// | egress_connections | 2000 | 10 000 | 10 000 | 1 000 000 | one for each file of a large install |
/// | network_time | 1 h | 24 h | 24 h | 24 h | no way out stays open for longer than a day |
///
/// The network is `none`, the workspace `rw`, every environment key may be set (credentials
/// excepted), security is `strict`, limits may be supervised and no tier is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    surface: Surface,
    defaults: Limits,
    ceilings: Limits,
    /// The most network that a person may give by approval.
    network_ceiling: NetworkMode,
    presets: TierPresets,
}

impl System {
    pub fn new(surface: Surface, host: HostFacts) -> Self {
        let (defaults, ceilings) = match surface {
            Surface::Server => server(),
            Surface::Local => local(host),
        };
        Self {
            surface,
            defaults,
            ceilings,
            network_ceiling: NetworkMode::None,
            presets: TierPresets::Basic,
        }
    }

    /// Replaces ceilings. A default above its new ceiling comes down to it.
    #[must_use]
    pub fn with_ceilings(mut self, stated: &PartialLimits) -> Self {
        let ceilings = self.ceilings;
        let mut raised = LimitField::gather(|field| {
            field
                .opinion(stated)
                .unwrap_or_else(|| field.get(&ceilings))
        });
        if stated.cpu_ms.is_none() {
            raised.cpu_ms = cpu_time(raised.wall_ms, raised.cpus_milli);
        }
        self.defaults = self.defaults.narrowed_by(&raised.into());
        self.ceilings = raised;
        self
    }

    #[must_use]
    pub fn with_network_ceiling(mut self, most: NetworkMode) -> Self {
        self.network_ceiling = most;
        self
    }

    #[must_use]
    pub fn with_presets(mut self, presets: TierPresets) -> Self {
        self.presets = presets;
        self
    }

    pub fn surface(&self) -> Surface {
        self.surface
    }

    pub fn defaults(&self) -> &Limits {
        &self.defaults
    }

    pub fn ceilings(&self) -> &Limits {
        &self.ceilings
    }

    pub fn network_ceiling(&self) -> NetworkMode {
        self.network_ceiling
    }

    pub fn presets(&self) -> TierPresets {
        self.presets
    }

    /// Refuses settings above a ceiling. `resolve` does the same; this is for telling an operator
    /// when the settings are loaded, not at the first request.
    pub fn check<'a>(&self, layers: impl IntoIterator<Item = &'a Layer>) -> Result<()> {
        let settings = |it: &&Layer| it.name() == LayerName::Settings;
        for layer in layers.into_iter().filter(settings) {
            for field in LimitField::ALL {
                let Some(raw) = field.opinion(&layer.profile().limits) else {
                    continue;
                };
                let most = field.get(&self.ceilings);
                if raw > most {
                    return Err(self.above_ceiling(layer, field, raw, most));
                }
            }
        }
        Ok(())
    }

    fn above_ceiling(&self, layer: &Layer, field: LimitField, raw: u64, most: u64) -> Error {
        let by = layer.decider(&Field::Limit(field));
        let (key, shown, most) = (field.key(), field.show(raw), field.show(most));
        let error = Error::new(
            Code::InvalidConfig,
            Stage::Resolve,
            format!("{by} set `{key}` to `{shown}`, above the ceiling of `{most}`"),
        )
        .hint(format!("set `{key}` to `{most}` or less"))
        .hint(format!(
            "or raise the ceiling: `{key} = \"{shown}\"` under `[ceilings]`"
        ));
        match by.source {
            Some(source) => error.at_rule(source.file, source.line),
            None => error,
        }
    }
}

/// Processor time that runs out no earlier than the clock on the wall does.
pub(crate) fn cpu_time(wall: Millis, cpus: Cpus) -> Millis {
    Millis((wall.0.saturating_mul(u64::from(cpus.0)) / 1000).max(1))
}

const HOUR: u64 = 3600;

fn server() -> (Limits, Limits) {
    let defaults = Limits {
        wall_ms: Millis::secs(60),
        cpu_ms: Millis::secs(60),
        memory_bytes: Bytes::mib(1024),
        pids: Count(256),
        cpus_milli: Cpus::whole(1),
        disk_bytes: Bytes::mib(1024),
        disk_files: Count(100_000),
        stdout_bytes: Bytes::mib(1),
        stderr_bytes: Bytes::mib(1),
        artifacts_bytes: Bytes::mib(50),
        open_files: Count(1024),
        gpus: Count(0),
        tpus: Count(0),
        egress_bytes: Bytes::mib(256),
        egress_connections: Count(2_000),
        network_ms: Millis::secs(HOUR),
    };
    let ceilings = Limits {
        wall_ms: Millis::secs(300),
        cpu_ms: cpu_time(Millis::secs(300), Cpus::whole(4)),
        memory_bytes: Bytes::mib(4096),
        pids: Count(512),
        cpus_milli: Cpus::whole(4),
        disk_bytes: Bytes::mib(10 << 10),
        disk_files: Count(1_000_000),
        stdout_bytes: Bytes::mib(10),
        stderr_bytes: Bytes::mib(10),
        artifacts_bytes: Bytes::mib(200),
        open_files: Count(65_536),
        gpus: Count(0),
        tpus: Count(0),
        egress_bytes: Bytes::mib(1 << 10),
        egress_connections: Count(10_000),
        network_ms: Millis::secs(24 * HOUR),
    };
    (defaults, ceilings)
}

fn local(host: HostFacts) -> (Limits, Limits) {
    // Whole mebibytes, so that the number reads well. A host that reports next to nothing has
    // been misread, and still gets something usable.
    let mebibytes = (host.memory_bytes >> 20).clamp(64, 64 << 20);
    let cpus = Cpus::whole(host.cpus.clamp(1, 1024));
    let defaults = Limits {
        wall_ms: Millis::secs(HOUR),
        cpu_ms: cpu_time(Millis::secs(HOUR), cpus),
        memory_bytes: Bytes::mib(mebibytes / 2),
        pids: Count(4096),
        cpus_milli: cpus,
        disk_bytes: Bytes::mib(32 << 10),
        disk_files: Count(1_000_000),
        stdout_bytes: Bytes::mib(10),
        stderr_bytes: Bytes::mib(10),
        artifacts_bytes: Bytes::mib(1 << 10),
        open_files: Count(4096),
        gpus: Count(0),
        tpus: Count(0),
        egress_bytes: Bytes::mib(1 << 10),
        egress_connections: Count(10_000),
        network_ms: Millis::secs(24 * HOUR),
    };
    let ceilings = Limits {
        wall_ms: Millis::secs(7 * 24 * HOUR),
        cpu_ms: cpu_time(Millis::secs(7 * 24 * HOUR), cpus),
        memory_bytes: Bytes::mib(mebibytes),
        pids: Count(32_768),
        cpus_milli: cpus,
        disk_bytes: Bytes::mib(1 << 20),
        disk_files: Count(10_000_000),
        stdout_bytes: Bytes::mib(1 << 10),
        stderr_bytes: Bytes::mib(1 << 10),
        artifacts_bytes: Bytes::mib(64 << 10),
        open_files: Count(524_288),
        gpus: Count(0),
        tpus: Count(0),
        egress_bytes: Bytes::mib(64 << 10),
        egress_connections: Count(1_000_000),
        network_ms: Millis::secs(24 * HOUR),
    };
    (defaults, ceilings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::check_limits;
    use proptest::prelude::*;

    const LAPTOP: HostFacts = HostFacts {
        memory_bytes: 16 << 30,
        cpus: 8,
    };

    #[test]
    fn a_server_gives_the_documented_defaults() {
        let system = System::new(Surface::Server, LAPTOP);
        let shown: Vec<_> = LimitField::ALL
            .iter()
            .map(|it| {
                format!(
                    "{} {} {}",
                    it.key(),
                    it.show(it.get(system.defaults())),
                    it.show(it.get(system.ceilings()))
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "timeout 1m 5m",
                "cpu_time 1m 20m",
                "memory 1G 4G",
                "pids 256 512",
                "cpus 1 4",
                "disk 1G 10G",
                "files 100000 1000000",
                "stdout 1M 10M",
                "stderr 1M 10M",
                "artifacts 50M 200M",
                "open_files 1024 65536",
                "gpus 0 0",
                "tpus 0 0",
                "egress_bytes 256M 1G",
                "egress_connections 2000 10000",
                "network_time 1h 24h",
            ]
        );
    }

    #[test]
    fn a_developers_machine_is_sized_by_the_host() {
        let system = System::new(Surface::Local, LAPTOP);
        assert_eq!(system.defaults().wall_ms, Millis::secs(3600));
        assert_eq!(system.defaults().cpu_ms, Millis::secs(8 * 3600));
        assert_eq!(system.defaults().memory_bytes, Bytes::mib(8 << 10));
        assert_eq!(system.defaults().cpus_milli, Cpus::whole(8));
        assert_eq!(system.ceilings().memory_bytes, Bytes::mib(16 << 10));
    }

    #[test]
    fn a_raised_ceiling_takes_cpu_time_along_and_a_lowered_one_the_default() {
        let system = System::new(Surface::Server, LAPTOP).with_ceilings(&PartialLimits {
            wall_ms: Some(Millis::secs(3600)),
            pids: Some(Count(100)),
            ..PartialLimits::default()
        });
        assert_eq!(system.ceilings().cpu_ms, Millis::secs(4 * 3600));
        assert_eq!(system.defaults().pids, Count(100));
    }

    proptest! {
        #[test]
        fn defaults_are_usable_and_below_their_ceilings_on_any_host(
            memory_bytes in any::<u64>(), cpus in any::<u32>(),
        ) {
            for surface in [Surface::Server, Surface::Local] {
                let system = System::new(surface, HostFacts { memory_bytes, cpus });
                prop_assert_eq!(check_limits(&(*system.defaults()).into()), Ok(()));
                prop_assert_eq!(check_limits(&(*system.ceilings()).into()), Ok(()));
                for field in LimitField::ALL {
                    prop_assert!(field.get(system.defaults()) <= field.get(system.ceilings()));
                }
            }
        }
    }
}
