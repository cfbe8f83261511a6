//! Making directories.

use rustix::fs::{Mode, mkdirat};

use super::Dir;
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::RelPath;

pub(crate) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

impl Dir {
    /// Makes one directory in a directory that is there.
    pub fn mkdir(&self, path: &RelPath, mode: u32) -> FsResult<()> {
        let (parent, name) = self.parent("make the directory", path)?;
        mkdirat(parent, name, permissions(mode))
            .map_err(|errno| FsError::os("make the directory", path.as_bytes(), errno))
    }

    /// Makes what is missing, one part at a time, each resolved from here: a link on the way that
    /// leads outside stops it before anything is made there.
    pub fn mkdir_all(&self, path: &RelPath, mode: u32) -> FsResult<Self> {
        match self.open_dir(path) {
            Err(error) if error.kind() == FsErrorKind::NotFound => {}
            done => return done,
        }
        for prefix in path.prefixes() {
            let prefix = RelPath::new(prefix);
            // A prefix that comes back to the start, or to a directory above, is already there.
            let Ok(prefix) = prefix else { continue };
            if prefix.split().is_err() {
                continue;
            }
            match self.mkdir(&prefix, mode) {
                Err(error) if error.kind() != FsErrorKind::Exists => return Err(error),
                _ => {}
            }
        }
        self.open_dir(path)
    }
}
