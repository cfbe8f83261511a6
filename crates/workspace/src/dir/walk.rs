//! A tree's entries, depth first, without following anything. Memory and descriptors are bounded
//! whatever the tree looks like.

use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Dir, open, scan};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::{FileId, Kind, Stat, stat_fd, stat_name};

/// Directories above the deepest ones are closed, and found again through `..` on the way back.
const OPEN_LEVELS: usize = 24;

#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    /// Levels below the start; what is deeper is reported as skipped.
    pub depth: usize,
    /// Bytes of one path; a directory with a longer one is skipped.
    pub path_bytes: usize,
    pub entries: u64,
    pub deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By name. A directory whose entries do not fit in what is left of the limit is skipped whole,
    /// so that the same tree always gives the same answer.
    ByName,
    /// As read, for sums: nothing but directories is remembered.
    AsRead,
}

/// Where an entry stands: a name in a directory that is held open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
}

#[derive(Debug, Clone, Copy)]
pub struct WalkEntry<'a> {
    /// Relative to the start, any bytes.
    pub path: &'a [u8],
    pub stat: Stat,
    pub(crate) at: At<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    TooDeep,
    TooManyEntries,
    Unreadable,
    OtherFileSystem,
}

#[derive(Debug, Clone, Copy)]
pub enum Visit<'a> {
    Entry(WalkEntry<'a>),
    /// A directory that was not entered. An empty path is the start itself.
    Skipped {
        entry: WalkEntry<'a>,
        why: Skip,
    },
}

/// Whether everything was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    Complete,
    /// The visitor had enough.
    Stopped,
    EntryLimit,
    Deadline,
    /// A directory was moved away under the walk, so its place could not be found again.
    Moved,
}

impl Dir {
    /// Visits everything below, by name, each entry as it is itself.
    pub fn walk(
        &self,
        limits: WalkLimits,
        mut visit: impl FnMut(Visit<'_>) -> ControlFlow<()>,
    ) -> FsResult<WalkEnd> {
        walk(self, limits, Order::ByName, &mut visit)
            .map_err(|kind| FsError::new("walk", b"", kind))
    }
}

pub(crate) type Visitor<'v> = dyn FnMut(Visit<'_>) -> ControlFlow<()> + 'v;

pub(crate) fn walk(
    start: &Dir,
    limits: WalkLimits,
    order: Order,
    visit: &mut Visitor<'_>,
) -> Result<WalkEnd, FsErrorKind> {
    let mut walk = Walk {
        limits,
        order,
        visit,
        path: Vec::new(),
        levels: Vec::new(),
        left: limits.entries,
    };
    match walk.run(start)? {
        ControlFlow::Continue(()) => Ok(WalkEnd::Complete),
        ControlFlow::Break(end) => Ok(end),
    }
}

struct Level {
    /// None while a deeper part of the tree is walked.
    fd: Option<OwnedFd>,
    id: FileId,
    path_bytes: usize,
    /// Directories still to enter, last first.
    pending: Vec<CString>,
}

struct Walk<'w, 'v> {
    limits: WalkLimits,
    order: Order,
    visit: &'w mut Visitor<'v>,
    path: Vec<u8>,
    levels: Vec<Level>,
    left: u64,
}

type Flow = Result<ControlFlow<WalkEnd>, FsErrorKind>;

impl Walk<'_, '_> {
    fn run(&mut self, start: &Dir) -> Flow {
        let reader = scan::reader(start)?;
        let at = At {
            dir: start.as_fd(),
            name: c".",
        };
        if let ControlFlow::Break(end) = self.enter(reader, at)? {
            return Ok(ControlFlow::Break(end));
        }
        while let Some(level) = self.levels.last_mut() {
            let flow = match level.pending.pop() {
                Some(name) => self.descend(&name)?,
                None => self.ascend()?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn descend(&mut self, name: &CStr) -> Flow {
        let index = self.levels.len().saturating_sub(1);
        self.path.truncate(self.levels[index].path_bytes);
        join(&mut self.path, name);
        // Taken for as long as it is looked at; `ascend` made sure that it is there.
        let Some(parent) = self.levels[index].fd.take() else {
            return Ok(ControlFlow::Break(WalkEnd::Moved));
        };
        let at = At {
            dir: parent.as_fd(),
            name,
        };
        let flow = self.look_into(at);
        self.levels[index].fd = Some(parent);
        flow
    }

    fn look_into(&mut self, at: At<'_>) -> Flow {
        if self.levels.len() > self.limits.depth || self.path.len() > self.limits.path_bytes {
            return self.skip(at, Skip::TooDeep);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match open::single(at.dir, at.name.to_bytes(), flags) {
            Ok(fd) => match self.enter(fd, at) {
                // Removed since it was opened.
                Err(FsErrorKind::NotFound) => Ok(ControlFlow::Continue(())),
                flow => flow,
            },
            Err(FsErrorKind::Permission) => self.skip(at, Skip::Unreadable),
            Err(FsErrorKind::OtherFileSystem) => self.skip(at, Skip::OtherFileSystem),
            // Removed or replaced since it was listed.
            Err(FsErrorKind::NotFound | FsErrorKind::NotADirectory | FsErrorKind::Loop) => {
                Ok(ControlFlow::Continue(()))
            }
            Err(kind) => Err(kind),
        }
    }

    /// Reports a directory's entries and remembers the directories among them.
    fn enter(&mut self, fd: OwnedFd, at: At<'_>) -> Flow {
        let id = stat_fd(&fd)?.id;
        let path_bytes = self.path.len();
        let mut pending = Vec::new();
        let flow = match self.order {
            Order::AsRead => self.report_as_read(&fd, &mut pending)?,
            Order::ByName => match self.names(&fd)? {
                None => return self.skip(at, Skip::TooManyEntries),
                Some(names) => self.report_by_name(&fd, names, &mut pending)?,
            },
        };
        if flow.is_break() {
            return Ok(flow);
        }
        self.levels.push(Level {
            fd: Some(fd),
            id,
            path_bytes,
            pending,
        });
        if let Some(above) = self.levels.len().checked_sub(OPEN_LEVELS + 1) {
            self.levels[above].fd = None;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn report_as_read(&mut self, fd: &OwnedFd, pending: &mut Vec<CString>) -> Flow {
        let mut flow = Ok(ControlFlow::Continue(()));
        scan::entries(fd.as_fd(), |name, _| {
            flow = match self.left.checked_sub(1) {
                None => Ok(ControlFlow::Break(WalkEnd::EntryLimit)),
                Some(left) => {
                    self.left = left;
                    self.report(fd, name, pending)
                }
            };
            match flow {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        flow
    }

    /// None when there are more than what is left of the limit.
    fn names(&mut self, fd: &OwnedFd) -> Result<Option<Vec<CString>>, FsErrorKind> {
        let mut names: Vec<CString> = Vec::new();
        let mut fits = true;
        scan::entries(fd.as_fd(), |name, _| {
            fits = (names.len() as u64) < self.left;
            match fits {
                true => {
                    names.push(name.to_owned());
                    ControlFlow::Continue(())
                }
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(fits.then_some(names))
    }

    fn report_by_name(
        &mut self,
        fd: &OwnedFd,
        mut names: Vec<CString>,
        pending: &mut Vec<CString>,
    ) -> Flow {
        names.sort_unstable();
        self.left -= names.len() as u64;
        for name in &names {
            let flow = self.report(fd, name, pending)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        pending.reverse();
        Ok(ControlFlow::Continue(()))
    }

    fn report(&mut self, fd: &OwnedFd, name: &CStr, pending: &mut Vec<CString>) -> Flow {
        if self.limits.deadline.is_some_and(|at| Instant::now() >= at) {
            return Ok(ControlFlow::Break(WalkEnd::Deadline));
        }
        let stat = match stat_name(fd, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(ControlFlow::Continue(())),
            Err(errno) => return Err(errno.into()),
        };
        if stat.kind == Kind::Directory {
            pending.push(name.to_owned());
        }
        let above = self.path.len();
        join(&mut self.path, name);
        let entry = WalkEntry {
            path: &self.path,
            stat,
            at: At {
                dir: fd.as_fd(),
                name,
            },
        };
        let flow = (self.visit)(Visit::Entry(entry));
        self.path.truncate(above);
        Ok(flow.map_break(|()| WalkEnd::Stopped))
    }

    fn skip(&mut self, at: At<'_>, why: Skip) -> Flow {
        let stat = match stat_name(at.dir, at.name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(ControlFlow::Continue(())),
            Err(errno) => return Err(errno.into()),
        };
        let entry = WalkEntry {
            path: &self.path,
            stat,
            at,
        };
        let flow = (self.visit)(Visit::Skipped { entry, why });
        Ok(flow.map_break(|()| WalkEnd::Stopped))
    }

    fn ascend(&mut self) -> Flow {
        let Some(done) = self.levels.pop() else {
            return Ok(ControlFlow::Continue(()));
        };
        let Some(above) = self.levels.last_mut() else {
            return Ok(ControlFlow::Continue(()));
        };
        if above.fd.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(child) = done.fd else {
            return Ok(ControlFlow::Break(WalkEnd::Moved));
        };
        // `..` leads wherever the directory was moved meanwhile; only the one we came from counts.
        match open::parent_of(child.as_fd()) {
            Ok(fd) if stat_fd(&fd)?.id == above.id => {
                above.fd = Some(fd);
                Ok(ControlFlow::Continue(()))
            }
            _ => Ok(ControlFlow::Break(WalkEnd::Moved)),
        }
    }
}

fn join(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}
