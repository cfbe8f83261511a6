//! What a sandbox had used and run into before an exec was given to it. A fresh one had not.

use glovebox_cage::cgroup::{Group, Stats};

use super::processes::{self, Count};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Baseline {
    stats: Stats,
    /// Whether the memory peak started anew with it.
    peak_reset: bool,
    /// Where no group counts.
    cpu_ms: u64,
}

impl Baseline {
    /// Of a sandbox that is at rest.
    pub(super) fn take(group: Option<&mut Group>, init: i32) -> Self {
        match group {
            Some(group) => Self {
                peak_reset: group.reset_peak(),
                stats: group.stats(),
                cpu_ms: 0,
            },
            None => Self {
                cpu_ms: processes::below(init, Count::Upper).cpu_ms,
                ..Self::default()
            },
        }
    }

    pub(super) fn cpu_us(&self, now: &Stats) -> Option<u64> {
        let before = self.stats.cpu_us.unwrap_or(0);
        now.cpu_us.map(|us| us.saturating_sub(before))
    }

    pub(super) fn watched_cpu_ms(&self) -> u64 {
        self.cpu_ms
    }

    /// What came since. A peak that cannot be reset and did not rise says nothing.
    pub(super) fn since(&self, now: &Stats) -> Stats {
        let risen = |now: Option<u64>, before: Option<u64>| now.filter(|it| Some(*it) > before);
        let max_memory_bytes = match self.peak_reset {
            true => now.max_memory_bytes,
            false => risen(now.max_memory_bytes, self.stats.max_memory_bytes),
        };
        Stats {
            cpu_us: self.cpu_us(now),
            max_memory_bytes,
            max_pids: risen(now.max_pids, self.stats.max_pids),
            oom_kills: now.oom_kills.saturating_sub(self.stats.oom_kills),
            pids_refused: now.pids_refused.saturating_sub(self.stats.pids_refused),
        }
    }
}
