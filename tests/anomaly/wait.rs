//! Waiting for a condition, never for a time.

use std::fmt;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Far more than anything here takes, on a loaded machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that stays the same one even when its number is used again.
pub(crate) struct Watched {
    pid: i32,
    handle: OwnedFd,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

impl Watched {
    /// `None` when it is gone already.
    pub(crate) fn new(pid: i32) -> Option<Self> {
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        // It may have ended by itself, which is fine.
        let _ = rustix::process::pidfd_send_signal(&self.handle, signal);
    }

    /// Readable from the moment it has ended, reaped or not.
    pub(crate) fn has_ended_within(&self, patience: Duration) -> bool {
        let mut watched = [PollFd::new(&self.handle, PollFlags::IN)];
        let timeout = Timespec::try_from(patience).unwrap();
        poll(&mut watched, Some(&timeout)).unwrap() > 0
    }
}
