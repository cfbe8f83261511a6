//! The spawner itself: no thread, two descriptors to the outside, and a few keepers that are forked
//! before anybody asks. What they prepare takes longer than the fork.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, set_child_subreaper, set_dumpable_behavior};

use crate::descriptors;
use crate::keeper::{self, Ends};
use crate::lease::Lease;
use crate::plan::Namespace;
use crate::sys::{self, Cloned, Result};
use crate::wire::{self, FromSpawner, ToSpawner};

/// How many wait when all is calm, and how many at most.
const FEWEST: usize = 4;
const MOST: usize = 16;
/// Between two that nobody asked for yet: preparing costs a millisecond of a processor.
const PACE: Duration = Duration::from_millis(5);
/// After one that ended by itself: this host cannot do it now, and trying harder helps nobody.
const SETBACK: Duration = Duration::from_secs(1);
/// So long after the last request that found none, the extra ones are let go.
const CALM: Duration = Duration::from_secs(60);

pub(super) fn run(requests: &OwnedFd, lease: &Lease) -> ! {
    sys::exit(i32::from(serve(requests, lease).is_err()))
}

fn serve(requests: &OwnedFd, lease: &Lease) -> Result<()> {
    sys::ignore_signals();
    sys::forget_ended_children();
    // What a keeper leaves behind comes here to vanish, not to a server that may be pid 1.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::setsid()?;
    descriptors::detach(&[requests.as_fd(), lease.as_fd()])?;
    let ahead = keeper::ahead();
    sys::forget_start(c"glovebox-spawner");
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut stock = Stock::new(Instant::now());
    loop {
        let asked = stock.wait(requests)?;
        let now = Instant::now();
        stock.calm_down(now);
        if asked {
            let Some((ToSpawner::Spawn, descriptors)) = wire::receive(requests)? else {
                return Ok(());
            };
            let spawned = stock
                .take(now)
                .map_or_else(|| Idle::fork(&ahead, lease), Ok);
            answer(&descriptors, spawned);
        } else if stock.is_due(now) {
            stock.refill(now, Idle::fork(&ahead, lease));
        }
    }
}

/// Whoever asked may be gone; then the keeper goes too, with its sockets.
fn answer(descriptors: &[OwnedFd], spawned: Result<Idle>) {
    let Some(socket) = descriptors.first() else {
        return;
    };
    let _ = match spawned {
        Ok(idle) => {
            let pid = idle.pid.as_raw_nonzero().get();
            let ends = [&idle.ends.control, &idle.ends.init, &idle.process];
            let message = FromSpawner::Spawned { pid };
            wire::send(socket, &message, &ends.map(AsFd::as_fd))
        }
        Err(errno) => {
            let errno = errno.raw_os_error();
            wire::send(socket, &FromSpawner::Failed { errno }, &[])
        }
    };
}

/// A keeper that nobody has yet. It ends when its sockets close.
struct Idle {
    pid: Pid,
    process: OwnedFd,
    ends: Ends,
}

impl Idle {
    fn fork(ahead: &[Namespace], lease: &Lease) -> Result<Self> {
        let (ends, theirs) = keeper::ends()?;
        match sys::clone_into(0, None)? {
            Cloned::Child => {
                // An ordinary user writes the id map of its child only where it may look into it.
                if set_dumpable_behavior(DumpableBehavior::Dumpable).is_err() {
                    sys::exit(1);
                }
                keeper::run(theirs, ahead, Some(lease))
            }
            Cloned::Parent(pid, process) => Ok(Self { pid, process, ends }),
        }
    }
}

/// The keepers that wait, oldest first.
struct Stock {
    idle: VecDeque<Idle>,
    wanted: usize,
    refill_at: Instant,
    /// When the last request came that found none.
    missed_at: Instant,
}

impl Stock {
    fn new(now: Instant) -> Self {
        Self {
            idle: VecDeque::with_capacity(MOST),
            wanted: FEWEST,
            refill_at: now,
            missed_at: now,
        }
    }

    /// Waits for a request or for something to do; lets go of keepers that have ended.
    fn wait(&mut self, requests: &OwnedFd) -> Result<bool> {
        let mut fds = vec![PollFd::new(requests, PollFlags::IN)];
        fds.extend(
            self.idle
                .iter()
                .map(|idle| PollFd::new(&idle.process, PollFlags::IN)),
        );
        let now = Instant::now();
        let timeout = self.alarm().map(|at| at.saturating_duration_since(now));
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(false),
            other => other?,
        };
        let mut ended = fds.iter().map(|fd| !fd.revents().is_empty());
        let asked = ended.next().unwrap_or(false);
        let ended: Vec<bool> = ended.collect();
        if ended.contains(&true) {
            let mut ended = ended.into_iter();
            self.idle.retain(|_| !ended.next().unwrap_or(false));
            self.refill_at = Instant::now() + SETBACK;
        }
        Ok(asked)
    }

    fn alarm(&self) -> Option<Instant> {
        let refill = (self.idle.len() < self.wanted).then_some(self.refill_at);
        let calm = (self.wanted > FEWEST).then(|| self.missed_at + CALM);
        refill.into_iter().chain(calm).min()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.idle.len() < self.wanted && now >= self.refill_at
    }

    fn take(&mut self, now: Instant) -> Option<Idle> {
        let taken = self.idle.pop_front();
        if taken.is_none() {
            self.wanted = (self.wanted * 2).min(MOST);
            self.missed_at = now;
        }
        taken
    }

    fn refill(&mut self, now: Instant, forked: Result<Idle>) {
        self.refill_at = now + if forked.is_ok() { PACE } else { SETBACK };
        self.idle.extend(forked);
    }

    fn calm_down(&mut self, now: Instant) {
        if self.wanted > FEWEST && now >= self.missed_at + CALM {
            self.wanted = FEWEST;
            self.idle.truncate(FEWEST);
        }
    }
}
