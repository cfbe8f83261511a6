//! What holds before anybody said anything, and how far an operator's settings may go.

use glovebox_model::{
    Call, Code, Cpus, Error, LimitField, LimitValue, Limits, Millis, NetworkMode, PartialLimits,
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
/// The numbers are in the table of limits, `model::limits`.
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
        let pair = |field: LimitField| match surface {
            Surface::Server => field.on_server(),
            Surface::Local => field.on_local(),
        };
        let all = |of: &dyn Fn(LimitField) -> LimitValue| {
            LimitField::gather(|field| amount(field, of, host))
        };
        let defaults = all(&|field| pair(field).default);
        let ceilings = all(&|field| pair(field).ceiling);
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

    /// A session's time is not an exec's, so a ceiling that only follows from that of an exec is not
    /// the session's. One that was stated is.
    pub(crate) fn cpu_ceiling(&self, clock: Clock) -> Millis {
        let Limits {
            wall_ms,
            session_ms,
            cpus_milli,
            cpu_ms,
            ..
        } = self.ceilings;
        match clock {
            Clock::Session if cpu_ms == cpu_time(wall_ms, cpus_milli) => {
                cpu_time(session_ms, cpus_milli)
            }
            Clock::Session | Clock::Exec => cpu_ms,
        }
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

/// Which limit on time a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Exec,
    Session,
}

impl Clock {
    pub(crate) fn of(call: &Call) -> Self {
        match call.session {
            Some(_) => Self::Session,
            None => Self::Exec,
        }
    }

    pub(crate) const fn field(self) -> LimitField {
        match self {
            Self::Exec => LimitField::Wall,
            Self::Session => LimitField::SessionTime,
        }
    }
}

/// Processor time that runs out no earlier than the clock on the wall does.
pub(crate) fn cpu_time(wall: Millis, cpus: Cpus) -> Millis {
    Millis((wall.0.saturating_mul(u64::from(cpus.0)) / 1000).max(1))
}

fn amount(field: LimitField, of: &dyn Fn(LimitField) -> LimitValue, host: HostFacts) -> u64 {
    // Whole mebibytes, so that the number reads well. A host that reports next to nothing has been
    // misread, and still gets something usable.
    let mebibytes = (host.memory_bytes >> 20).clamp(64, 64 << 20);
    match of(field) {
        LimitValue::Fixed(raw) => raw,
        LimitValue::HostMemory { parts } => (mebibytes / parts) << 20,
        LimitValue::HostCpus => u64::from(host.cpus.clamp(1, 1024)) * 1000,
        LimitValue::TimeOfAllCpus => {
            let cpus = amount(LimitField::Cpus, of, host);
            let wall = Millis(amount(LimitField::Wall, of, host));
            cpu_time(wall, Cpus(u32::try_from(cpus).unwrap_or(u32::MAX))).0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::check_limits;
    use glovebox_model::{Bytes, Count};
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
                "session_time 1h 24h",
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
