//! A walk in one order that does not depend on what changes meanwhile: each directory before what
//! is in it, names by their bytes. A later walk can go on behind any path, whether that path is
//! still there or not.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::fault::{Bound, FileError, FileResult};
use crate::dir::{Dir, entries, single};
use crate::fault::FsErrorKind;
use crate::stat::{Kind, Stat, stat_name};

/// Each level is held open.
pub(super) const MOST_DEPTH: usize = 128;
/// Names between two looks at the clock.
const NAMES_A_LOOK: usize = 1024;

/// However long somebody may be willing to wait.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn until(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries: u64,
    pub(super) deadline: Instant,
}

/// One entry, by its name in a directory that is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    /// Relative to the start.
    pub(super) path: &'a [u8],
    pub(super) stat: Stat,
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    /// 1 for what lies in the start itself.
    pub(super) depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Into it, when it is a directory.
    Into,
    /// On, without looking into it.
    Past,
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Toured {
    /// A bound ended it; what was seen up to then is right.
    pub(super) cut: Option<Bound>,
    /// Directories that could not be entered.
    pub(super) unread: u64,
}

struct Level {
    fd: OwnedFd,
    path_bytes: usize,
    /// Last first.
    names: Vec<CString>,
    /// There were more names than were to be remembered.
    more: bool,
    /// The rest of the path behind which to go on, when it leads through here.
    after: Option<Vec<u8>>,
}

pub(super) fn tour(
    start: &Dir,
    after: Option<&[u8]>,
    bounds: Bounds,
    visit: &mut dyn FnMut(Seen<'_>) -> FileResult<Next>,
) -> FileResult<Toured> {
    let mut tour = Tour {
        bounds,
        left: bounds.entries,
        path: Vec::new(),
        levels: Vec::new(),
        done: Toured::default(),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let top =
        single(start.as_fd(), b".", flags).map_err(|kind| FileError::new("list", b"", kind))?;
    if let ControlFlow::Break(bound) = tour.enter(top, after.map(<[u8]>::to_vec))? {
        tour.done.cut = Some(bound);
        return Ok(tour.done);
    }
    while !tour.levels.is_empty() {
        match tour.step(visit)? {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(cut) => {
                tour.done.cut = cut;
                return Ok(tour.done);
            }
        }
    }
    Ok(tour.done)
}

struct Tour {
    bounds: Bounds,
    left: u64,
    path: Vec<u8>,
    levels: Vec<Level>,
    done: Toured,
}

impl Tour {
    /// One entry, or one level up.
    fn step(
        &mut self,
        visit: &mut dyn FnMut(Seen<'_>) -> FileResult<Next>,
    ) -> FileResult<ControlFlow<Option<Bound>>> {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut() else {
            return Ok(ControlFlow::Break(None));
        };
        self.path.truncate(level.path_bytes);
        let Some(name) = level.names.pop() else {
            let more = level.more;
            self.levels.pop();
            return Ok(match more {
                true => ControlFlow::Break(Some(Bound::Entries(self.bounds.entries))),
                false => ControlFlow::Continue(()),
            });
        };
        if Instant::now() >= self.bounds.deadline {
            return Ok(ControlFlow::Break(Some(Bound::Time)));
        }
        let stat = match stat_name(&level.fd, &name) {
            Ok(stat) => stat,
            // Gone between the two looks.
            Err(Errno::NOENT) => return Ok(ControlFlow::Continue(())),
            Err(errno) => return Err(FileError::new("look at", &self.path, errno.into())),
        };
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
        let (passed, after) = match &level.after {
            None => (false, None),
            Some(after) => behind(after, name.to_bytes()),
        };
        if !passed {
            let Some(left) = self.left.checked_sub(1) else {
                return Ok(ControlFlow::Break(Some(Bound::Entries(
                    self.bounds.entries,
                ))));
            };
            self.left = left;
            let seen = Seen {
                path: &self.path,
                stat,
                dir: level.fd.as_fd(),
                name: &name,
                depth,
            };
            match visit(seen)? {
                Next::Stop => return Ok(ControlFlow::Break(None)),
                Next::Past => return Ok(ControlFlow::Continue(())),
                Next::Into => {}
            }
        }
        if stat.kind != Kind::Directory {
            return Ok(ControlFlow::Continue(()));
        }
        if depth >= MOST_DEPTH {
            self.done.unread += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = single(level.fd.as_fd(), name.to_bytes(), flags);
        match opened {
            Ok(fd) => Ok(self.enter(fd, after)?.map_break(Some)),
            Err(FsErrorKind::Permission | FsErrorKind::OtherFileSystem) => {
                self.done.unread += 1;
                Ok(ControlFlow::Continue(()))
            }
            // Removed or replaced since it was listed.
            Err(FsErrorKind::NotFound | FsErrorKind::NotADirectory | FsErrorKind::Loop) => {
                Ok(ControlFlow::Continue(()))
            }
            Err(kind) => Err(FileError::new("list", &self.path, kind)),
        }
    }

    /// Remembers the first names by their bytes, and never more than may still be visited.
    fn enter(&mut self, fd: OwnedFd, after: Option<Vec<u8>>) -> FileResult<ControlFlow<Bound>> {
        let first = after.as_deref().map(first_name);
        // One of them may be the one that was passed before.
        let room = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let mut names: BinaryHeap<CString> = BinaryHeap::new();
        let (mut more, mut late, mut scanned) = (false, false, 0usize);
        let read = entries(fd.as_fd(), |name, _| {
            scanned += 1;
            if scanned.is_multiple_of(NAMES_A_LOOK) && Instant::now() >= self.bounds.deadline {
                late = true;
                return ControlFlow::Break(());
            }
            if first.is_some_and(|first| name.to_bytes() < first) {
                return ControlFlow::Continue(());
            }
            if names.len() < room {
                names.push(name.to_owned());
            } else {
                more = true;
                if names.peek().is_some_and(|last| name < last.as_c_str()) {
                    names.pop();
                    names.push(name.to_owned());
                }
            }
            ControlFlow::Continue(())
        });
        match read {
            Ok(()) => {}
            // Removed while it was read.
            Err(Errno::NOENT) => names.clear(),
            Err(errno) => return Err(FileError::new("list", &self.path, errno.into())),
        }
        if late {
            return Ok(ControlFlow::Break(Bound::Time));
        }
        let mut names = names.into_sorted_vec();
        names.reverse();
        self.levels.push(Level {
            fd,
            path_bytes: self.path.len(),
            names,
            more,
            after,
        });
        Ok(ControlFlow::Continue(()))
    }
}

fn first_name(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Whether `name` was passed before, and behind what to go on inside it.
fn behind(after: &[u8], name: &[u8]) -> (bool, Option<Vec<u8>>) {
    match after.strip_prefix(name) {
        Some([]) => (true, None),
        Some([b'/', rest @ ..]) => (true, Some(rest.to_vec())),
        _ => (false, None),
    }
}
