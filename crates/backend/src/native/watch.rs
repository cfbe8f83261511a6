//! Limits that somebody has to look at: processor time in sum, memory and processes where the
//! kernel gives us no control group, and the workspace's disk, which no kernel counts per sandbox.

use std::time::{Duration, Instant};

use glovebox_cage::cgroup;
use glovebox_model::{LimitKind, Profile};
use glovebox_workspace::Dir;

use super::baseline::Baseline;
use super::processes::{self, Count, Sum};
use crate::disk::{Disk, Filled};

/// Short runs are never looked at; a bomb gets about this long.
const INTERVAL: Duration = Duration::from_millis(25);

/// So many single processes are ended for memory before the whole sandbox is.
const MEMORY_KILLS: u32 = 16;

#[derive(Debug)]
pub(super) struct Watch<'run> {
    profile: &'run Profile,
    baseline: Baseline,
    disk: Option<Disk<'run>>,
    next: Instant,
    init: Option<i32>,
    peak: Sum,
    pids_reached: bool,
    memory_kills: u32,
}

impl<'run> Watch<'run> {
    pub(super) fn new(
        profile: &'run Profile,
        watched: &[&'run Dir],
        started: Instant,
        baseline: Baseline,
    ) -> Self {
        Self {
            profile,
            baseline,
            disk: Disk::new(watched, &profile.limits),
            next: started + INTERVAL,
            init: None,
            peak: Sum::default(),
            pids_reached: false,
            memory_kills: 0,
        }
    }

    pub(super) fn born(&mut self, init: i32) {
        self.init = Some(init);
    }

    pub(super) fn init(&self) -> Option<i32> {
        self.init
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn max_memory(&self) -> u64 {
        self.peak.memory_bytes
    }

    pub(super) fn cpu_ms(&self) -> u64 {
        self.peak.cpu_ms
    }

    pub(super) fn max_pids(&self) -> u64 {
        self.peak.pids
    }

    /// Processes that were ended here, where no control group does it.
    pub(super) fn memory_kills(&self) -> u64 {
        u64::from(self.memory_kills)
    }

    /// Only known where processes are looked at one by one.
    pub(super) fn pids_reached(&self) -> bool {
        self.pids_reached
    }

    pub(super) fn disk_taken(&self) -> Filled {
        self.disk.as_ref().map(Disk::at_the_end).unwrap_or_default()
    }

    /// The first limit that is passed, if it is time to look.
    pub(super) fn look(
        &mut self,
        now: Instant,
        group: Option<&cgroup::Group>,
    ) -> Option<LimitKind> {
        if now < self.next {
            return None;
        }
        let passed = match group {
            Some(group) => self.look_at_group(group),
            None => self.look_at_processes(),
        };
        let processes = || self.init.map(processes::of).unwrap_or_default();
        let passed = passed.or_else(|| self.disk.as_mut().and_then(|disk| disk.look(processes)));
        self.next = Instant::now() + INTERVAL;
        passed
    }

    fn look_at_group(&self, group: &cgroup::Group) -> Option<LimitKind> {
        let cpu_us = self.baseline.cpu_us(&group.stats())?;
        (cpu_us / 1000 > self.profile.limits.cpu_ms.get()).then_some(LimitKind::Cpu)
    }

    fn look_at_processes(&mut self) -> Option<LimitKind> {
        let limits = &self.profile.limits;
        let mut sum = processes::below(self.init?, Count::Upper);
        if sum.memory_bytes > limits.memory_bytes.get() {
            sum = processes::below(self.init?, Count::Exact);
        }
        sum.cpu_ms = sum.cpu_ms.saturating_sub(self.baseline.watched_cpu_ms());
        self.peak = self.peak.max(sum);
        self.pids_reached |= sum.pids >= limits.pids.get();
        if sum.memory_bytes > limits.memory_bytes.get() {
            self.memory_kills += 1;
            let enough = self.memory_kills > MEMORY_KILLS || !sum.end_largest(self.init?);
            return enough.then_some(LimitKind::Memory);
        }
        (sum.cpu_ms > limits.cpu_ms.get()).then_some(LimitKind::Cpu)
    }
}
