//! A name in a directory that is held open, reached without following a link anywhere.

use std::ffi::CString;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::dir::{Dir, READING, regular, single};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::{Stat, stat_name};

pub(super) struct Place {
    pub(super) dir: OwnedFd,
    pub(super) name: CString,
}

impl Place {
    /// The path is one that was read from a directory: relative, without `.` and `..`.
    pub(super) fn below(root: &Dir, path: &[u8]) -> FsResult<Self> {
        let fault = |kind| FsError::new("reach", path, kind);
        let (parent, name) = split(path);
        let dir = directory(root, parent).map_err(fault)?;
        let name = CString::new(name).map_err(|_| fault(FsErrorKind::Os(Errno::INVAL)))?;
        Ok(Self { dir, name })
    }

    pub(super) fn look(&self) -> FsResult<Option<Stat>> {
        match stat_name(&self.dir, &self.name) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::os("look at", self.name.as_bytes(), errno)),
        }
    }

    pub(super) fn open(&self, flags: OFlags) -> FsResult<OwnedFd> {
        single(
            self.dir.as_fd(),
            self.name.as_bytes(),
            flags | OFlags::NOFOLLOW,
        )
        .map_err(|kind| FsError::new("open", self.name.as_bytes(), kind))
    }

    /// A regular file and nothing else, judged by the descriptor.
    pub(super) fn open_file(&self) -> FsResult<(OwnedFd, Stat)> {
        let fd = self.open(READING)?;
        let stat = regular(&fd).map_err(|kind| FsError::new("read", self.name.as_bytes(), kind))?;
        Ok((fd, stat))
    }

    pub(super) fn open_directory(&self) -> FsResult<OwnedFd> {
        self.open(OFlags::RDONLY | OFlags::DIRECTORY)
    }

    pub(super) fn fault(&self, action: &'static str) -> impl Fn(Errno) -> FsError {
        let name = self.name.as_bytes().to_vec();
        move |errno| FsError::os(action, &name, errno)
    }
}

/// What stands there itself. A path that leads through something that is no directory, or through a
/// link, leads nowhere.
pub(super) fn look(root: &Dir, path: &[u8]) -> FsResult<Option<Stat>> {
    match Place::below(root, path) {
        Ok(place) => place.look(),
        Err(error) if leads_nowhere(error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn leads_nowhere(kind: FsErrorKind) -> bool {
    matches!(
        kind,
        FsErrorKind::NotFound | FsErrorKind::NotADirectory | FsErrorKind::Loop
    )
}

pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

pub(super) fn directory(root: &Dir, path: &[u8]) -> Result<OwnedFd, FsErrorKind> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    single(root.as_fd(), path, flags)
}
