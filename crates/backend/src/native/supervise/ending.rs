//! What the end of a run means: the program's own, a limit's, a cancellation's, or ours.

use std::time::Duration;

use glovebox_cage::cgroup;
use glovebox_model::{LimitKind, Result, Usage};

use super::{Reason, Run, SIGKILL, SIGXCPU, SIGXFSZ};
use crate::ended::{Ended, Ending};
use crate::native::sandbox::broken;

impl Run<'_> {
    pub(super) fn conclude(self) -> Result<Ended> {
        let duration = match (self.started, self.ended) {
            (Some(started), Some(ended)) => ended.saturating_duration_since(started),
            _ => Duration::ZERO,
        };
        self.heard_by_interpreter()?;
        if let Some(refusal) = self.report.refusal {
            return Err(refusal);
        }
        let stats = self.seat.group.as_ref().map(cgroup::Group::stats);
        let stats = self.baseline.since(&stats.unwrap_or_default());
        let signal = self
            .report
            .status
            .filter(|status| status & 0x7f != 0)
            .map(|it| it & 0x7f);
        let code = self
            .report
            .status
            .filter(|status| status & 0x7f == 0)
            .map(|it| it >> 8 & 0xff);
        let oom = stats.oom_kills + self.watch.memory_kills() > 0;
        let ran_into = self.ran_into(&stats, signal, code);
        let (ending, limit_hit) = match (self.stopping.map(|it| it.reason), code, signal) {
            (Some(Reason::Canceled), _, _) => (Ending::Canceled, None),
            // What it ran into says more than that its time was up, which the ending says.
            (Some(Reason::Limit(LimitKind::Wall)), _, _) => {
                (Ending::TimedOut, Some(ran_into.unwrap_or(LimitKind::Wall)))
            }
            (Some(Reason::Limit(LimitKind::Idle)), _, _) => {
                (Ending::TimedOut, Some(LimitKind::Idle))
            }
            (Some(Reason::Limit(limit)), _, _) => (Ending::LimitKilled, Some(limit)),
            (None, Some(code), _) => (Ending::Exited { code }, ran_into),
            (None, None, Some(SIGKILL)) if oom => (Ending::LimitKilled, Some(LimitKind::Memory)),
            (None, None, Some(SIGKILL | SIGXCPU | SIGXFSZ)) if ran_into.is_some() => {
                (Ending::LimitKilled, ran_into)
            }
            (None, None, Some(signal)) => (Ending::Signaled { signal }, ran_into),
            // Pid 1 itself was ended: by the kernel for memory, or by somebody outside.
            (None, None, None) if oom => (Ending::LimitKilled, Some(LimitKind::Memory)),
            (None, None, None) => return Err(broken(&"pid 1 of the sandbox was killed")),
        };
        let usage = Usage {
            cpu_ms: self.cpu_ms(&stats),
            max_memory_bytes: stats
                .max_memory_bytes
                .unwrap_or(0)
                .max(self.usage.max_rss)
                .max(self.watch.max_memory()),
            max_pids: self.max_pids(&stats),
        };
        Ok(Ended {
            ending,
            signal,
            limit_hit,
            duration,
            usage,
            notices_dropped: self.notices.dropped(),
        })
    }

    /// Killed children that nobody waited for are missing from pid 1's own account.
    fn cpu_ms(&self, stats: &cgroup::Stats) -> u64 {
        let used = stats.cpu_us.unwrap_or(self.usage.cpu_us) / 1000;
        let used = used.saturating_sub(self.baseline.watched_cpu_ms());
        used.max(self.watch.cpu_ms())
    }

    /// A peak of earlier processes hides this run's; there was at least one.
    fn max_pids(&self, stats: &cgroup::Stats) -> u64 {
        let ran = u64::from(self.report.status.is_some());
        let counted = stats.max_pids.unwrap_or(0).max(self.watch.max_pids());
        counted.max(ran)
    }

    /// A limit that the program met and ended by itself, one way or another.
    fn ran_into(
        &self,
        stats: &cgroup::Stats,
        signal: Option<i32>,
        code: Option<i32>,
    ) -> Option<LimitKind> {
        let limits = &self.profile.limits;
        let full = self.report.scratch;
        // The kernel's own limit is later than ours, so whoever met it has used all of it. A shell
        // passes on how its last command ended.
        let burnt = self.cpu_ms(stats) >= limits.cpu_ms.get();
        match signal.or(code.filter(|code| *code > 128).map(|code| code - 128)) {
            Some(SIGXCPU | SIGKILL) if burnt => return Some(LimitKind::Cpu),
            Some(SIGXFSZ) if signal.is_some() => return Some(LimitKind::Disk),
            _ => {}
        }
        // One process that the kernel ended for memory need not end the others.
        if stats.oom_kills + self.watch.memory_kills() > 0 {
            return Some(LimitKind::Memory);
        }
        if stats.pids_refused > 0 || self.watch.pids_reached() {
            return Some(LimitKind::Pids);
        }
        if code == Some(0) {
            return self.watch.disk_taken().met_by(true);
        }
        if full.is_some_and(|scratch| scratch.bytes_free < 4096) {
            return Some(LimitKind::Disk);
        }
        if full.is_some_and(|scratch| scratch.files_free == 0) {
            return Some(LimitKind::Inodes);
        }
        if let Some(limit) = self.watch.disk_taken().met_by(false) {
            return Some(limit);
        }
        let over = self.watch.max_memory() > limits.memory_bytes.get();
        over.then_some(LimitKind::Memory)
    }
}
