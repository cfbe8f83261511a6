//! Every process that a program on the host started, found without any help of the kernel's.
//!
//! A process belongs to it by its session, by its parent, or by a mark in its environment that no
//! other run has. One that leaves the session, outlives its parent *and* clears its environment
//! between two looks is not found: only a sandbox ends that one too.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::native::processes::{Count, Kin, used_by};

/// An environment has a megabyte or two at most; what is longer is read so far.
const ENVIRONMENT: u64 = 8 << 20;
/// How long to wait for the end of those that were killed before looking again.
const MOMENT: Duration = Duration::from_millis(20);
/// So many looks in a row must find nobody: one that is about to be born as its parent ends may be
/// missed by the first.
const CLEAN_LOOKS: u32 = 2;

#[derive(Debug)]
pub(super) struct Family {
    /// The program itself, which leads the session. Not buried while the family is looked for, so
    /// that its number is nobody else's.
    root: i32,
    /// `NAME=value`, as it stands in an environment.
    mark: Vec<u8>,
    /// Members by number, each with the moment it was started.
    known: BTreeMap<i32, u64>,
    /// Others whose environment was looked at.
    strangers: BTreeMap<i32, u64>,
}

/// What all members use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Used {
    pub(super) memory_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) pids: u64,
}

impl Used {
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            cpu_ms: self.cpu_ms.max(other.cpu_ms),
            pids: self.pids.max(other.pids),
        }
    }
}

impl Family {
    pub(super) fn new(root: Pid, mark: Vec<u8>) -> Self {
        let root = root.as_raw_nonzero().get();
        let started = Kin::of(root).map(|kin| (root, kin.started));
        Self {
            root,
            mark,
            known: started.into_iter().collect(),
            strangers: BTreeMap::new(),
        }
    }

    /// Looks through all processes of the host.
    pub(super) fn search(&mut self) {
        let ours = i32::try_from(std::process::id()).unwrap_or(0);
        let all: BTreeMap<i32, Kin> = numbers()
            .filter(|pid| *pid > 1 && *pid != ours)
            .filter_map(|pid| Some((pid, Kin::of(pid)?)))
            .collect();
        let is_same =
            |pid: &i32, started: &mut u64| all.get(pid).is_some_and(|kin| kin.started == *started);
        self.known.retain(is_same);
        self.strangers.retain(is_same);
        self.join_kin(&all);
        let mut found = false;
        for (pid, kin) in &all {
            if self.known.contains_key(pid) || self.strangers.contains_key(pid) {
                continue;
            }
            let is_ours = self.has_mark(*pid);
            found |= is_ours;
            match is_ours {
                true => self.known.insert(*pid, kin.started),
                false => self.strangers.insert(*pid, kin.started),
            };
        }
        if found {
            self.join_kin(&all);
        }
    }

    /// Those of the session, and children of members, until there are no more.
    fn join_kin(&mut self, all: &BTreeMap<i32, Kin>) {
        loop {
            let before = self.known.len();
            for (pid, kin) in all {
                if kin.session == self.root || self.known.contains_key(&kin.parent) {
                    self.known.insert(*pid, kin.started);
                    self.strangers.remove(pid);
                }
            }
            if self.known.len() == before {
                return;
            }
        }
    }

    fn has_mark(&self, pid: i32) -> bool {
        let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else {
            return false;
        };
        let mut environment = Vec::new();
        // Somebody who ends meanwhile has no environment.
        let _ = file.take(ENVIRONMENT).read_to_end(&mut environment);
        environment
            .split(|byte| *byte == 0)
            .any(|pair| pair == self.mark)
    }

    /// Members by number, each with the moment it was started.
    pub(super) fn members(&self) -> Vec<(i32, u64)> {
        self.living().collect()
    }

    fn living(&self) -> impl Iterator<Item = (i32, u64)> {
        self.known
            .iter()
            .map(|(pid, started)| (*pid, *started))
            .filter(|(pid, started)| {
                Kin::of(*pid).is_some_and(|kin| kin.started == *started && !kin.is_over)
            })
    }

    pub(super) fn used(&self, count: Count) -> Used {
        let mut sum = Used::default();
        for pid in self.known.keys() {
            let (memory_bytes, cpu_ms, threads) = used_by(*pid, count);
            sum.memory_bytes = sum.memory_bytes.saturating_add(memory_bytes);
            sum.cpu_ms = sum.cpu_ms.saturating_add(cpu_ms);
            sum.pids = sum.pids.saturating_add(threads);
        }
        sum
    }

    /// To everybody: at once to the program's own group, then to whoever left it.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.signal_group(signal);
        self.search();
        for (pid, started) in self.living() {
            // Its group has heard; who left it heard nothing.
            if rustix::process::getpgid(Pid::from_raw(pid)).ok() != Pid::from_raw(self.root) {
                drop(signal_one(pid, started, signal));
            }
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(root) = Pid::from_raw(self.root) {
            let _ = kill_process_group(root, signal);
        }
    }

    /// Kills until nobody is left who could do anything. False when somebody is left after all.
    pub(super) fn end(&mut self, deadline: Instant) -> bool {
        // A stranger may have become somebody else's program meanwhile.
        self.strangers.clear();
        let mut clean = 0;
        while clean < CLEAN_LOOKS {
            self.signal_group(Signal::KILL);
            self.search();
            let living: Vec<(i32, u64)> = self.living().collect();
            if living.is_empty() {
                clean += 1;
                continue;
            }
            clean = 0;
            let killed: Vec<OwnedFd> = living
                .into_iter()
                .filter_map(|(pid, started)| signal_one(pid, started, Signal::KILL))
                .collect();
            if Instant::now() >= deadline {
                return false;
            }
            await_one(&killed);
        }
        true
    }
}

/// Only to the very process that was found: its number may have a new owner by now.
fn signal_one(pid: i32, started: u64, signal: Signal) -> Option<OwnedFd> {
    let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let is_same = Kin::of(pid).is_some_and(|kin| kin.started == started);
    is_same.then(|| {
        let _ = pidfd_send_signal(&held, signal);
        held
    })
}

fn await_one(processes: &[OwnedFd]) {
    let mut fds: Vec<PollFd<'_>> = processes
        .iter()
        .map(|process| PollFd::new(process, PollFlags::IN))
        .collect();
    if let Ok(moment) = Timespec::try_from(MOMENT) {
        let _ = poll(&mut fds, Some(&moment));
    }
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
