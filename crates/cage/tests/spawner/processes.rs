//! Processes as /proc shows them, and waiting for what they do.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until it is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that is held: its number cannot become another's unnoticed.
pub(crate) struct Held {
    pub(crate) pid: i32,
    process: OwnedFd,
}

impl Held {
    /// None when it is gone already.
    pub(crate) fn open(pid: i32) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, process })
    }

    pub(crate) fn kill(&self) {
        rustix::process::pidfd_send_signal(&self.process, rustix::process::Signal::KILL).unwrap();
    }

    fn ended_within(&self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).unwrap();
        let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).unwrap() == 1
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.ended_within(Duration::ZERO)
    }

    #[track_caller]
    pub(crate) fn wait(&self) {
        let name = comm(self.pid);
        assert!(self.ended_within(PATIENCE), "{} `{name}` goes on", self.pid);
    }
}

pub(crate) fn comm(pid: i32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    text.trim_end().to_owned()
}

pub(crate) fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let numbers = text.split_whitespace().filter_map(|it| it.parse().ok());
    numbers.collect()
}

/// It and everything below it.
pub(crate) fn tree(pid: i32) -> Vec<i32> {
    let below = children(pid).into_iter().flat_map(tree);
    std::iter::once(pid).chain(below).collect()
}

/// Where its descriptors lead, by number.
pub(crate) fn descriptors(pid: i32) -> Vec<(i32, PathBuf)> {
    let mut found: Vec<(i32, PathBuf)> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, fs::read_link(entry.path()).ok()?))
        })
        .collect();
    found.sort();
    found
}

/// The sockets among them.
pub(crate) fn sockets(pid: i32) -> Vec<PathBuf> {
    let all = descriptors(pid).into_iter().map(|(_, target)| target);
    all.filter(|target| target.to_string_lossy().starts_with("socket:"))
        .collect()
}

/// The spawner's keepers that are prepared: the last thing they do is to write their name over the
/// arguments.
pub(crate) fn keepers(spawner: i32) -> Vec<i32> {
    let is_ready = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).next() == Some(b"glovebox-keeper")
    };
    children(spawner).into_iter().filter(is_ready).collect()
}
