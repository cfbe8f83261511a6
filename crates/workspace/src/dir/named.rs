//! The same operations for single names that this crate makes itself: ids, and its own files.

use std::ffi::CString;
use std::fs::File;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::Errno;

use super::make::permissions;
use super::write::FRESH;
use super::{Dir, open, read, remove};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::PathError;

impl Dir {
    pub(crate) fn open_name(&self, name: &str) -> FsResult<Self> {
        self.open_dir_bytes("open", name.as_bytes())
    }

    /// Opens `name`, making it if it is not there: one call in the common case. That another
    /// process makes it first is no error.
    pub(crate) fn ensure_dir(&self, name: &str, mode: u32) -> FsResult<Self> {
        match self.open_name(name) {
            Err(error) if error.kind() == FsErrorKind::NotFound => {}
            done => return done,
        }
        match mkdirat(self, name, permissions(mode)) {
            Ok(()) | Err(Errno::EXIST) => self.open_name(name),
            Err(errno) => Err(making(name, errno)),
        }
    }

    /// Makes `name`, which must not be there.
    pub(crate) fn make_new_dir(&self, name: &str, mode: u32) -> FsResult<Self> {
        mkdirat(self, name, permissions(mode)).map_err(|errno| making(name, errno))?;
        self.open_name(name)
    }

    pub(crate) fn create_name(&self, name: &str, mode: u32) -> FsResult<File> {
        self.open_bytes("create", name.as_bytes(), FRESH, permissions(mode))
            .map(File::from)
    }

    /// A file of ours that is there already, to be written further.
    pub(crate) fn reopen_name(&self, name: &str) -> FsResult<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        self.open_bytes("open", name.as_bytes(), flags, Mode::empty())
            .map(File::from)
    }

    /// A regular file and nothing else: not through a link either.
    pub(crate) fn open_file_name(&self, name: &str) -> FsResult<File> {
        let fault = |kind| FsError::new("read", name.as_bytes(), kind);
        let flags = read::READING | OFlags::NOFOLLOW;
        let fd = open::beneath(self.as_fd(), name.as_bytes(), flags, Mode::empty());
        let fd = fd.map_err(fault)?;
        read::regular(&fd).map_err(fault)?;
        Ok(File::from(fd))
    }

    /// Removes `name` and everything below it.
    pub(crate) fn remove_entry(&self, name: &str) -> FsResult<()> {
        let fault = |kind| FsError::new("remove", name.as_bytes(), kind);
        let c_name = CString::new(name).map_err(|_| fault(FsErrorKind::Path(PathError::Nul)))?;
        remove::remove_name(self.as_fd(), &c_name).map_err(fault)
    }
}

fn making(name: &str, errno: Errno) -> FsError {
    FsError::os("make the directory", name.as_bytes(), errno)
}
