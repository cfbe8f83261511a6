//! A directory held by descriptor. Everything below it is reached through the descriptor, so it
//! does not matter what is renamed or linked around it meanwhile.

mod list;
mod look;
mod make;
mod named;
mod open;
mod plain;
mod read;
mod remove;
mod scan;
mod usage;
mod walk;
mod write;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};

use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::RelPath;
use crate::stat::{FileId, Stat, stat_fd};

pub use list::{Entry, Listing};
pub(crate) use make::permissions;
pub(crate) use open::single;
pub(crate) use read::{READING, from_io, regular};
pub(crate) use remove::remove_name;
pub(crate) use scan::entries;
pub use usage::{DiskUsage, UsageLimits};
pub(crate) use walk::{At, Order, walk};
pub use walk::{Skip, Visit, WalkEnd, WalkEntry, WalkLimits};
pub(crate) use write::{FRESH, is_temporary, temporary_name};

#[derive(Debug)]
pub struct Dir(OwnedFd);

/// What happens to something that already stands at the new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Replace,
    Refuse,
}

impl Dir {
    /// Opens a root that the operator or the person at the terminal named: the state directory, a
    /// directory to adopt. The only function that takes a path of the host; links in it are
    /// followed this once, and the handle stays on what they led to.
    pub fn open_trusted(path: &Path) -> FsResult<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map(Self)
            .map_err(|errno| FsError::os("open", path.as_os_str().as_bytes(), errno))
    }

    pub fn id(&self) -> FsResult<FileId> {
        self.stat_self().map(|stat| stat.id)
    }

    pub fn try_clone(&self) -> FsResult<Self> {
        let copy = self.0.try_clone();
        copy.map(Self).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error);
            FsError::os("open", b"", errno.unwrap_or(rustix::io::Errno::BADF))
        })
    }

    pub fn open_dir(&self, path: &RelPath) -> FsResult<Self> {
        self.open_dir_bytes("open", path.as_bytes())
    }

    /// What stands there, links not followed.
    pub fn lstat(&self, path: &RelPath) -> FsResult<Stat> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let fd = self.open_bytes("look at", path.as_bytes(), flags, Mode::empty())?;
        stat_fd(fd).map_err(|errno| FsError::os("look at", path.as_bytes(), errno))
    }

    /// Neither end can lie outside, and a link at either end is moved or replaced, not followed.
    pub fn rename(&self, from: &RelPath, to: &RelPath, existing: Existing) -> FsResult<()> {
        let (from_dir, from_name) = self.parent("rename", from)?;
        let (to_dir, to_name) = self.parent("rename", to)?;
        let flags = match existing {
            Existing::Replace => RenameFlags::empty(),
            Existing::Refuse => RenameFlags::NOREPLACE,
        };
        rustix::fs::renameat_with(from_dir, from_name, to_dir, to_name, flags)
            .map_err(|errno| FsError::os("rename", from.as_bytes(), errno))
    }

    pub(crate) fn stat_self(&self) -> FsResult<Stat> {
        stat_fd(self).map_err(|errno| FsError::os("look at", b"", errno))
    }

    fn open_dir_bytes(&self, action: &'static str, path: &[u8]) -> FsResult<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.open_bytes(action, path, flags, Mode::empty())
            .map(Self)
    }

    fn open_bytes(
        &self,
        action: &'static str,
        path: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> FsResult<OwnedFd> {
        open::beneath(self.as_fd(), path, flags, mode)
            .map_err(|kind| FsError::new(action, path, kind))
    }

    /// The directory that holds `path`, and the name in it: what the calls need that have no
    /// `openat2` of their own. One name cannot leave a directory that is held open.
    pub(crate) fn parent(
        &self,
        action: &'static str,
        path: &RelPath,
    ) -> FsResult<(Held<'_>, CString)> {
        let fault = |kind| FsError::new(action, path.as_bytes(), kind);
        let (parent, name) = path
            .split()
            .map_err(|error| fault(FsErrorKind::Path(error)))?;
        let held = match parent {
            None => Held::Here(self.as_fd()),
            Some(parent) => Held::Opened(self.open_dir_bytes(action, parent)?),
        };
        let name = CString::new(name)
            .map_err(|_| fault(FsErrorKind::Path(crate::relpath::PathError::Nul)))?;
        Ok((held, name))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> Self {
        dir.0
    }
}

#[derive(Debug)]
pub(crate) enum Held<'a> {
    Here(BorrowedFd<'a>),
    Opened(Dir),
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Here(fd) => *fd,
            Self::Opened(dir) => dir.as_fd(),
        }
    }
}
