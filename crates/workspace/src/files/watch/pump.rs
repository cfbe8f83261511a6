//! From the kernel's queue to the ring.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;

use super::super::fault::{FileError, FileResult};
use super::batch::Batch;
use super::tree::{Detached, Tell, Tree, join};
use super::{ChangeKind, Shared, WatchLimits};
use crate::dir::{Dir, is_temporary};

const BUFFER: usize = 64 << 10;
/// Events of one action come together; this long after the last one it is over.
const QUIET: Duration = Duration::from_millis(10);
/// Who never stops is told about all the same.
const LONGEST_BATCH: Duration = Duration::from_millis(100);
/// The kernel does not tell that a directory is gone while somebody holds it, as we do.
const LOOK_AT_ROOT: Duration = Duration::from_secs(1);

struct Event {
    watch: i32,
    what: ReadFlags,
    cookie: u32,
    name: Option<Vec<u8>>,
}

/// The first half of a move; the second comes at once, or never when it leads out of the tree.
struct Leaving {
    path: Vec<u8>,
    is_dir: bool,
    detached: Detached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Events,
    Quiet,
    Stop,
}

pub(super) struct Pump {
    tree: Option<Tree>,
    shared: Arc<Shared>,
    stop: Arc<OwnedFd>,
    batch: Batch,
    leaving: HashMap<u32, Leaving>,
    /// Directories whose place another one took, until their own move is told.
    displaced: HashMap<Vec<u8>, Detached>,
    /// Watches without a place, and whether one of them had something to tell.
    adrift: HashSet<i32>,
    missed: bool,
}

impl Pump {
    pub(super) fn start(
        root: Dir,
        limits: WatchLimits,
        shared: Arc<Shared>,
        stop: Arc<OwnedFd>,
    ) -> FileResult<Self> {
        let tree = Tree::new(root, limits.directories);
        let tree = tree.map_err(|kind| FileError::new("watch", b"", kind))?;
        shared.state().partial = tree.partial;
        Ok(Self {
            tree: Some(tree),
            shared,
            stop,
            batch: Batch::default(),
            leaving: HashMap::new(),
            displaced: HashMap::new(),
            adrift: HashSet::new(),
            missed: false,
        })
    }

    pub(super) fn run(mut self) {
        loop {
            match self.wait(LOOK_AT_ROOT) {
                Woken::Stop => return,
                Woken::Events if !self.gather() => return,
                Woken::Events | Woken::Quiet => {}
            }
            if self.tree.as_ref().is_none_or(Tree::root_is_gone) {
                self.shared.state().ended = true;
                self.shared.news.notify_all();
                return;
            }
        }
    }

    fn wait(&self, time: Duration) -> Woken {
        let Some(tree) = &self.tree else {
            return Woken::Stop;
        };
        let mut fds = [
            PollFd::new(&*self.stop, PollFlags::IN),
            PollFd::new(tree.inotify(), PollFlags::IN),
        ];
        let timeout = Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => Woken::Quiet,
            Err(_) => Woken::Stop,
            Ok(_) if !fds[0].revents().is_empty() => Woken::Stop,
            Ok(_) => Woken::Events,
        }
    }

    /// Reads until it is quiet; false when it is to stop.
    fn gather(&mut self) -> bool {
        let until = Instant::now() + LONGEST_BATCH;
        loop {
            let Some(events) = self.tree.as_ref().and_then(read) else {
                return false;
            };
            if events
                .iter()
                .any(|event| event.what.contains(ReadFlags::QUEUE_OVERFLOW))
            {
                return self.begin_again();
            }
            for event in events {
                self.take(event);
            }
            if Instant::now() >= until {
                break;
            }
            match self.wait(QUIET) {
                Woken::Events => {}
                Woken::Quiet => break,
                Woken::Stop => return false,
            }
        }
        self.flush();
        true
    }

    fn take(&mut self, event: Event) {
        let Some(tree) = &mut self.tree else { return };
        if event.what.contains(ReadFlags::IGNORED) {
            tree.dropped(event.watch);
            self.adrift.remove(&event.watch);
            return;
        }
        // Without a name it is about the directory itself, which its parent told already.
        let Some(name) = event.name else { return };
        let Some(parent) = tree.path(event.watch) else {
            self.missed |= self.adrift.contains(&event.watch);
            return;
        };
        let path = join(parent, &name);
        let ours = is_temporary(&name);
        let is_dir = event.what.contains(ReadFlags::ISDIR);
        if event.what.contains(ReadFlags::MOVED_FROM) {
            self.moved_from(event.cookie, path, is_dir);
        } else if event.what.contains(ReadFlags::MOVED_TO) {
            self.moved_to(event.cookie, path, is_dir, ours);
        } else if ours {
            // A write or a removal that is not done yet.
        } else if event.what.contains(ReadFlags::CREATE) {
            self.appeared(&path, is_dir);
        } else if event.what.contains(ReadFlags::DELETE) {
            if is_dir {
                let gone = tree.detach(&path);
                tree.forget(gone);
            }
            self.batch.add(ChangeKind::Removed, &path, is_dir);
        } else if event.what.intersects(ReadFlags::MODIFY | ReadFlags::ATTRIB) {
            self.batch.add(ChangeKind::Modified, &path, is_dir);
        }
    }

    fn appeared(&mut self, path: &[u8], is_dir: bool) {
        self.batch.add(ChangeKind::Created, path, is_dir);
        if let (true, Some(tree)) = (is_dir, &mut self.tree) {
            tree.add(path, Tell::Created, &mut self.batch);
        }
    }

    fn moved_from(&mut self, cookie: u32, path: Vec<u8>, is_dir: bool) {
        let Some(tree) = &mut self.tree else { return };
        let detached = match self.displaced.remove(&path) {
            Some(detached) => detached,
            None if is_dir => tree.detach(&path),
            None => Vec::new(),
        };
        self.adrift.extend(detached.iter().map(|(_, watch)| *watch));
        let leaving = Leaving {
            path,
            is_dir,
            detached,
        };
        self.leaving.insert(cookie, leaving);
    }

    fn moved_to(&mut self, cookie: u32, path: Vec<u8>, is_dir: bool, ours: bool) {
        let Some(leaving) = self.leaving.remove(&cookie) else {
            if !ours {
                self.appeared(&path, is_dir);
            }
            return;
        };
        for (_, watch) in &leaving.detached {
            self.adrift.remove(watch);
        }
        let Some(tree) = &mut self.tree else { return };
        let was_ours = leaving
            .path
            .rsplit(|byte| *byte == b'/')
            .next()
            .is_some_and(is_temporary);
        if ours {
            tree.forget(leaving.detached);
            if !was_ours {
                self.batch.take(&leaving.path, is_dir);
            }
            return;
        }
        let stood = tree.detach(&path);
        if !stood.is_empty() {
            self.adrift.extend(stood.iter().map(|(_, watch)| *watch));
            self.displaced.insert(path.clone(), stood);
        }
        match (was_ours, is_dir) {
            (true, true) => self.appeared(&path, true),
            (true, false) => self.batch.replace(&path),
            (false, _) => {
                let known = !leaving.detached.is_empty();
                tree.attach(&path, leaving.detached);
                self.batch.moved(&leaving.path, &path, is_dir);
                if is_dir && !known {
                    // It came faster than it could be watched at its old place.
                    tree.add(&path, Tell::Created, &mut self.batch);
                }
            }
        }
    }

    fn flush(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        for (_, leaving) in self.leaving.drain() {
            tree.forget(leaving.detached);
            let name = leaving.path.rsplit(|byte| *byte == b'/').next();
            if !name.is_some_and(is_temporary) {
                self.batch
                    .add(ChangeKind::Removed, &leaving.path, leaving.is_dir);
            }
        }
        for (_, detached) in self.displaced.drain() {
            tree.forget(detached);
        }
        self.adrift.clear();
        let missed = std::mem::take(&mut self.missed);
        if self.batch.is_empty() && !missed {
            return;
        }
        let mut state = self.shared.state();
        if missed {
            state.ring.gap();
        }
        state.partial |= tree.partial;
        for change in self.batch.drain() {
            state.ring.push(change);
        }
        drop(state);
        self.shared.news.notify_all();
    }

    /// The kernel's queue was full.
    fn begin_again(&mut self) -> bool {
        self.leaving.clear();
        self.displaced.clear();
        self.adrift.clear();
        self.missed = false;
        self.batch.drain();
        let Some(tree) = self.tree.take() else {
            return false;
        };
        let renewed = tree.renew();
        let mut state = self.shared.state();
        state.ring.gap();
        match renewed {
            Ok(tree) => {
                state.partial = tree.partial;
                self.tree = Some(tree);
            }
            // Nothing can be seen any more, and whoever asks is told.
            Err(_) => state.ended = true,
        }
        let goes_on = !state.ended;
        drop(state);
        self.shared.news.notify_all();
        goes_on
    }
}

/// What is in the queue now; None when it cannot be read.
fn read(tree: &Tree) -> Option<Vec<Event>> {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    let mut reader = Reader::new(tree.inotify(), &mut buffer);
    let mut events = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => events.push(Event {
                watch: event.wd(),
                what: event.events(),
                cookie: event.cookie(),
                name: event.file_name().map(|name| name.to_bytes().to_vec()),
            }),
            Err(Errno::AGAIN | Errno::INTR) => return Some(events),
            Err(_) => return None,
        }
        // One buffer at a time, or a fast writer would keep us here.
        if reader.is_buffer_empty() {
            return Some(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use rustix::event::{EventfdFlags, eventfd};

    use super::super::State;
    use super::super::ring::Ring;
    use super::*;

    #[test]
    fn a_full_queue_of_the_kernel_is_a_gap_and_everything_is_watched_anew() {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let memory = memory.unwrap();
        let shared = Arc::new(Shared {
            // So large that only the kernel can lose something.
            state: Mutex::new(State {
                ring: Ring::new(usize::MAX),
                partial: false,
                ended: false,
            }),
            news: Condvar::new(),
        });
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let root = Dir::open_trusted(memory.path()).unwrap();
        let mut pump =
            Pump::start(root, WatchLimits::default(), Arc::clone(&shared), stop).unwrap();
        let start = shared.state().ring.last();
        std::fs::create_dir(memory.path().join("unseen")).unwrap();
        // Two names in turn: the same event twice in a row would be one in the queue.
        for round in 0..limit {
            let path = memory.path().join(["a", "b"][round % 2]);
            std::fs::write(&path, b"").unwrap();
            std::fs::remove_file(&path).unwrap();
        }
        while pump.wait(QUIET) == Woken::Events {
            assert!(pump.gather());
        }
        let (_, overflow, seq) = shared.state().ring.after(start, usize::MAX);
        assert!(overflow, "the gap is told");
        std::fs::write(memory.path().join("unseen/f"), b"").unwrap();
        assert!(pump.gather());
        let (events, overflow, _) = shared.state().ring.after(seq, 10);
        let paths: Vec<_> = events.iter().map(|event| event.path.display()).collect();
        assert_eq!((paths, overflow), (vec!["unseen/f".to_owned()], false));
    }
}
