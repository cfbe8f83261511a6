//! Paths with no link and no other mount anywhere on them: for code that listed a tree itself and
//! wants exactly what it listed, or nothing.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;

use super::{Dir, open};
use crate::fault::{FsError, FsResult};

impl Dir {
    /// An empty path is the directory itself. The last part is not followed either.
    pub fn open_plain(&self, path: &[u8], flags: OFlags) -> FsResult<OwnedFd> {
        let named = if path.is_empty() { b"." } else { path };
        open::single(self.as_fd(), named, flags | OFlags::NOFOLLOW)
            .map_err(|kind| FsError::new("open", path, kind))
    }

    /// A directory below, or this one again when the path is empty.
    pub fn enter(&self, path: &[u8]) -> FsResult<Self> {
        self.open_plain(path, OFlags::PATH | OFlags::DIRECTORY)
            .map(Self)
    }
}
