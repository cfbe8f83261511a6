//! What changes in a tree, as it happens. Events can be asked for again by their number as long as
//! they are remembered, and whoever was too slow is told so.

mod batch;
mod pump;
mod ring;
mod tree;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glovebox_model::ByteString;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use super::fault::{FileError, FileResult};
use super::tour::until;
use crate::dir::Dir;
use crate::relpath::RelPath;
use pump::Pump;
use ring::Ring;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// Directories that are watched; each takes some memory of the kernel's.
    pub directories: usize,
    /// Events that are remembered.
    pub events: usize,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            directories: 8192,
            events: 10_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    /// Its contents or its mode; also a file that was replaced whole, or made that way.
    Modified,
    Removed,
    Moved,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Grows by one, and is larger than every number of an earlier watch on this host.
    pub seq: u64,
    pub kind: ChangeKind,
    pub path: ByteString,
    pub is_dir: bool,
    /// Where it was, when it moved.
    pub from: Option<ByteString>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub events: Vec<Change>,
    /// To be given with the next question.
    pub seq: u64,
    /// Some events between the number that was given and these are lost: look at the tree anew.
    pub overflow: bool,
    /// There are more directories than are watched.
    pub partial: bool,
    /// The directory is gone; nothing will follow.
    pub ended: bool,
}

/// Runs until it is dropped, with a thread of its own. The kernel allows a user few of these (128
/// by default), so those who look at one directory should share one.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    ring: Ring,
    partial: bool,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there can be half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// When it returns, everything that happens from now on is seen.
    pub fn start(dir: &Dir, under: Option<&RelPath>, limits: WatchLimits) -> FileResult<Self> {
        let fault = |errno: rustix::io::Errno| FileError::new("watch", b"", errno.into());
        let root = dir.under(under)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                ring: Ring::new(limits.events),
                partial: false,
                ended: false,
            }),
            news: Condvar::new(),
        });
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(fault)?);
        let pump = Pump::start(root, limits, Arc::clone(&shared), Arc::clone(&stop))?;
        let thread = std::thread::Builder::new()
            .name("glovebox-watch".to_owned())
            .spawn(move || pump.run())
            .map_err(|_| fault(rustix::io::Errno::AGAIN))?;
        Ok(Self {
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// The number to begin with.
    pub fn now(&self) -> u64 {
        self.shared.state().ring.last()
    }

    /// At most `most` events behind `seq`; waits up to `wait` for the first one.
    pub fn after(&self, seq: u64, most: usize, wait: Duration) -> Changes {
        let until = until(wait);
        let mut state = self.shared.state();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.ended || state.ring.last() != seq || left.is_zero() {
                break;
            }
            let waited = self.shared.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (events, overflow, seq) = state.ring.after(seq, most);
        Changes {
            ended: state.ended && seq == state.ring.last(),
            partial: state.partial,
            events,
            seq,
            overflow,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread waits for this descriptor too; a write to it cannot fail while it is empty.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
