//! Reading files: regular ones only, and never more than asked.

use std::fs::File;
use std::io::Read;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Dir;
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::RelPath;
use crate::stat::{Kind, Stat, stat_fd};

/// Without `O_NONBLOCK` a FIFO would hold the caller until somebody writes to it.
pub(crate) const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Dir {
    /// Opens a regular file for reading. A link that stays inside is followed; one that is absolute
    /// or leads out is refused, even if its target would be inside the sandbox's own view.
    pub fn open_file(&self, path: &RelPath) -> FsResult<(File, Stat)> {
        let fault = |kind| FsError::new("read", path.as_bytes(), kind);
        let fd = self.open_bytes("read", path.as_bytes(), READING, Mode::empty())?;
        let stat = regular(&fd).map_err(fault)?;
        Ok((File::from(fd), stat))
    }

    /// The whole file, or an error when it is larger than `cap`.
    pub fn read(&self, path: &RelPath, cap: u64) -> FsResult<Vec<u8>> {
        let (file, stat) = self.open_file(path)?;
        let fault = |kind| FsError::new("read", path.as_bytes(), kind);
        if stat.size > cap {
            return Err(fault(FsErrorKind::TooLarge { cap }));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or(0));
        // The size was true a moment ago; a file that grows meanwhile must not fill the memory.
        let read = file.take(cap.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| fault(from_io(&error)))?;
        if bytes.len() as u64 > cap {
            return Err(fault(FsErrorKind::TooLarge { cap }));
        }
        Ok(bytes)
    }
}

/// Judges the descriptor, not the name: nobody can swap it any more.
pub(crate) fn regular(fd: &OwnedFd) -> Result<Stat, FsErrorKind> {
    let stat = stat_fd(fd)?;
    match stat.kind {
        Kind::File => Ok(stat),
        Kind::Directory => Err(FsErrorKind::IsADirectory),
        kind => Err(FsErrorKind::NotRegular(kind)),
    }
}

pub(crate) fn from_io(error: &std::io::Error) -> FsErrorKind {
    Errno::from_io_error(error).unwrap_or(Errno::IO).into()
}
