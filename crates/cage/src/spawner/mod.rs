//! Keepers for a process with threads: a small process, forked while there were none, forks them
//! and hands them over by descriptor.

mod process;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::handle::Handle;
use crate::keeper::Ends;
use crate::lease::Lease;
use crate::moment::Moment;
use crate::stat;
use crate::sys::{self, Forked};
use crate::wire::{self, FromSpawner, ToSpawner};

/// A fork takes a millisecond; a host that is out of breath must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    #[error("threads are running already")]
    Threads,
    #[error("the process that starts sandboxes is gone")]
    Gone,
    #[error("the process that starts sandboxes did not answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("no process could be started: {0}")]
    Failed(#[from] Errno),
}

/// The caller's end of the process that forks keepers. It ends with this value, or when the caller
/// is killed; keepers that were handed over belong to their [`Handle`].
#[derive(Debug)]
pub struct Spawner {
    pid: Pid,
    process: OwnedFd,
    requests: OwnedFd,
    lease: Lease,
}

impl Spawner {
    /// Forks it. Call it first of all: what is in memory now stays in its memory.
    pub fn fork() -> Result<Self, SpawnError> {
        // A lock that another thread holds would stay locked in the child for ever.
        if stat::threads()? != 1 {
            return Err(SpawnError::Threads);
        }
        let (requests, theirs) = wire::pair()?;
        rustix::io::ioctl_fionbio(&requests, true)?;
        let (lease, read) = Lease::ends()?;
        match sys::fork()? {
            Forked::Child => process::run(&theirs, &read),
            Forked::Parent(pid) => Ok(Self {
                pid,
                process: pidfd_open(pid, PidfdFlags::empty())?,
                requests,
                lease,
            }),
        }
    }

    /// Until when everything that was started by this one's keepers may go on, without another word
    /// from here. Said before the first of them is started, or it does not hold for those.
    pub fn lease_until(&self, end: Moment) -> Result<(), SpawnError> {
        Ok(self.lease.set(end)?)
    }

    /// Whether what was said last still holds.
    pub fn is_leased(&self) -> bool {
        !self.lease.end().is_over()
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it is still there. Without it nothing more can be started.
    pub fn is_alive(&self) -> bool {
        // Its socket may stay open for a moment longer, in a keeper that it has just forked.
        ready(&self.process, PollFlags::IN, Instant::now()) == Ok(false)
    }

    /// A keeper, mostly one that is prepared already. From any thread, at any time.
    pub fn spawn(&self) -> Result<Handle, SpawnError> {
        self.spawn_by(Instant::now() + PATIENCE)
    }

    fn spawn_by(&self, deadline: Instant) -> Result<Handle, SpawnError> {
        // An answer has a socket of its own: one that comes too late falls back into nothing, and
        // its keeper ends; and nobody waits for a spawner that is gone.
        let (answer, theirs) = wire::pair()?;
        self.ask(&theirs, deadline)?;
        drop(theirs);
        if !ready(&answer, PollFlags::IN, deadline)? {
            return Err(SpawnError::Late);
        }
        let (message, descriptors) = wire::receive(&answer)?.ok_or(SpawnError::Gone)?;
        match message {
            FromSpawner::Failed { errno } => Err(Errno::from_raw_os_error(errno).into()),
            FromSpawner::Spawned { pid } => {
                // Fewer arrive when this process may open no more files.
                let [control, init, process]: [OwnedFd; 3] =
                    descriptors.try_into().map_err(|_| Errno::MFILE)?;
                let pid = Pid::from_raw(pid).ok_or(Errno::BADMSG)?;
                Ok(Handle::spawned(pid, process, Ends { control, init }))
            }
        }
    }

    fn ask(&self, answer: &OwnedFd, deadline: Instant) -> Result<(), SpawnError> {
        loop {
            match wire::send(&self.requests, &ToSpawner::Spawn, &[answer.as_fd()]) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return Err(SpawnError::Gone);
                }
                Err(errno) => return Err(errno.into()),
            }
            if !ready(&self.requests, PollFlags::OUT, deadline)? {
                return Err(SpawnError::Late);
            }
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.requests, rustix::net::Shutdown::Both);
        while matches!(sys::reap(self.pid(), 0), Err(Errno::INTR)) {}
    }
}

/// Waits until it is ready or at its end; false when the time is up.
fn ready(descriptor: &OwnedFd, wanted: PollFlags, deadline: Instant) -> Result<bool, Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(descriptor, wanted)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            other => return other.map(|count| count != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that nobody answers for.
    fn deaf() -> (Spawner, OwnedFd) {
        let (requests, other) = wire::pair().unwrap();
        rustix::io::ioctl_fionbio(&requests, true).unwrap();
        let spawner = Spawner {
            pid: Pid::from_raw(i32::MAX).unwrap(),
            process: pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap(),
            requests,
            lease: Lease::ends().unwrap().0,
        };
        (spawner, other)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(5)
    }

    #[test]
    fn a_spawner_that_does_not_answer_is_not_waited_for() {
        let (spawner, _other) = deaf();
        assert_eq!(spawner.spawn_by(soon()).unwrap_err(), SpawnError::Late);
    }

    #[test]
    fn neither_is_one_that_takes_no_more_requests() {
        let (spawner, _other) = deaf();
        let ask = || wire::send(&spawner.requests, &ToSpawner::Spawn, &[]);
        while ask().is_ok() {}
        assert_eq!(ask(), Err(Errno::AGAIN));
        assert_eq!(spawner.spawn_by(soon()).unwrap_err(), SpawnError::Late);
    }

    #[test]
    fn one_that_goes_with_the_request_in_hand_is_gone() {
        let (spawner, other) = deaf();
        let going = std::thread::spawn(move || {
            let request = wire::receive::<ToSpawner>(&other);
            drop((request, other));
        });
        assert_eq!(spawner.spawn().unwrap_err(), SpawnError::Gone);
        going.join().unwrap();
        assert_eq!(spawner.spawn().unwrap_err(), SpawnError::Gone);
    }
}
