//! What stands at a path, and nothing of what it may point at.

use std::fs::File;

use rustix::fs::{Mode, OFlags, readlinkat};

use super::{Dir, READING, regular};
use crate::fault::{FsError, FsResult};
use crate::relpath::RelPath;
use crate::stat::{Kind, Stat, stat_fd};

impl Dir {
    /// The last part is not followed; a link comes with its text.
    pub(crate) fn look(&self, path: &RelPath) -> FsResult<(Stat, Option<Vec<u8>>)> {
        let fault = |errno| FsError::os("look at", path.as_bytes(), errno);
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let fd = self.open_bytes("look at", path.as_bytes(), flags, Mode::empty())?;
        let stat = stat_fd(&fd).map_err(fault)?;
        let target = match stat.kind {
            // Of the link that is held, whatever has taken its name since.
            Kind::Symlink => Some(
                readlinkat(&fd, c"", Vec::new())
                    .map_err(fault)?
                    .into_bytes(),
            ),
            _ => None,
        };
        Ok((stat, target))
    }

    /// A regular file that is one by its own name: what is to be written back to that name must
    /// not have been read through a link.
    pub(crate) fn open_itself(&self, path: &RelPath) -> FsResult<(File, Stat)> {
        let flags = READING | OFlags::NOFOLLOW;
        let fd = match self.open_bytes("read", path.as_bytes(), flags, Mode::empty()) {
            Err(error) => {
                let link = self
                    .lstat(path)
                    .is_ok_and(|stat| stat.kind == Kind::Symlink);
                return Err(match link {
                    true => FsError::new("read", path.as_bytes(), crate::FsErrorKind::Symlink),
                    false => error,
                });
            }
            Ok(fd) => fd,
        };
        let stat = regular(&fd).map_err(|kind| FsError::new("read", path.as_bytes(), kind))?;
        Ok((File::from(fd), stat))
    }

    /// The directory at `path`, or this one.
    pub(crate) fn under(&self, path: Option<&RelPath>) -> FsResult<Self> {
        path.map_or_else(|| self.try_clone(), |path| self.open_dir(path))
    }
}
