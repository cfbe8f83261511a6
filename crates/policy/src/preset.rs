//! What declaring a tier narrows.

use std::collections::BTreeSet;

use glovebox_model::{
    Access, Bytes, Count, Cpus, Millis, NetworkMode, PartialLimits, PartialProfile, Tier,
};
use serde::Serialize;

use crate::word::Word;

/// How much of a tier's preset applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TierPresets {
    /// Memory and network.
    #[default]
    Basic,
    /// Also time, processors, processes, disk, files, the workspace and the environment.
    Full,
}

impl Word for TierPresets {
    const ALL: &'static [Self] = &[Self::Basic, Self::Full];
    fn word(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Full => "full",
        }
    }
}

/// The preset as a layer's opinion. It depends on the *declared* tier only: an assessed tier asks
/// for stronger isolation and for approval, and never starves a program of memory.
pub(crate) fn preset(tier: Tier, presets: TierPresets) -> PartialProfile {
    match (tier, presets) {
        (Tier::Safe, _) => PartialProfile::default(),
        (Tier::Low | Tier::Medium, TierPresets::Basic) => PartialProfile {
            limits: PartialLimits {
                memory_bytes: Some(Bytes::mib(512)),
                ..PartialLimits::default()
            },
            ..PartialProfile::default()
        },
        (Tier::High | Tier::Critical, TierPresets::Basic) => PartialProfile {
            limits: PartialLimits {
                memory_bytes: Some(Bytes::mib(256)),
                ..PartialLimits::default()
            },
            network: Some(NetworkMode::None),
            ..PartialProfile::default()
        },
        (Tier::Low | Tier::Medium, TierPresets::Full) => PartialProfile {
            limits: PartialLimits {
                wall_ms: Some(Millis::secs(60)),
                memory_bytes: Some(Bytes::mib(512)),
                pids: Some(Count(20)),
                cpus_milli: Some(Cpus::whole(2)),
                disk_bytes: Some(Bytes::mib(500)),
                disk_files: Some(Count(500)),
                ..PartialLimits::default()
            },
            network: Some(NetworkMode::Allowlist),
            env_allow: Some(keys(&["HOME", "PATH", "USER"])),
            ..PartialProfile::default()
        },
        (Tier::High | Tier::Critical, TierPresets::Full) => PartialProfile {
            limits: PartialLimits {
                wall_ms: Some(Millis::secs(30)),
                memory_bytes: Some(Bytes::mib(256)),
                pids: Some(Count(10)),
                cpus_milli: Some(Cpus::whole(1)),
                disk_bytes: Some(Bytes::mib(100)),
                disk_files: Some(Count(100)),
                ..PartialLimits::default()
            },
            network: Some(NetworkMode::None),
            workspace: Some(Access::Ro),
            env_allow: Some(keys(&["HOME", "PATH"])),
            ..PartialProfile::default()
        },
    }
}

fn keys(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|key| (*key).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::check_limits;

    #[test]
    fn the_basic_preset_is_memory_and_network_only() {
        for (tier, memory, network) in [
            (Tier::Safe, None, None),
            (Tier::Low, Some(512), None),
            (Tier::Medium, Some(512), None),
            (Tier::High, Some(256), Some(NetworkMode::None)),
            (Tier::Critical, Some(256), Some(NetworkMode::None)),
        ] {
            let expected = PartialProfile {
                limits: PartialLimits {
                    memory_bytes: memory.map(Bytes::mib),
                    ..PartialLimits::default()
                },
                network,
                ..PartialProfile::default()
            };
            assert_eq!(preset(tier, TierPresets::Basic), expected, "{tier}");
        }
    }

    #[test]
    fn presets_hold_only_usable_values() {
        for tier in Tier::ALL {
            assert_eq!(
                check_limits(&preset(tier, TierPresets::Full).limits),
                Ok(())
            );
        }
    }
}
