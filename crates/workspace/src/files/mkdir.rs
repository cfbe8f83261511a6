//! Making directories, and those on the way to something else.

use super::fault::FileResult;
use super::stat::{FileStat, stat};
use crate::dir::Dir;
use crate::fault::FsErrorKind;
use crate::relpath::RelPath;

pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// What happens to directories that are missing on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Make,
    Require,
}

impl Parents {
    pub(super) fn of(self, dir: &Dir, path: &RelPath) -> FileResult<()> {
        if let (Self::Make, Ok((Some(parent), _))) = (self, path.split())
            && let Ok(parent) = RelPath::new(parent)
        {
            dir.mkdir_all(&parent, DIRECTORY_MODE)?;
        }
        Ok(())
    }
}

/// With `Parents::Make` it is no error that the directory itself is there already.
pub fn mkdir(dir: &Dir, path: &RelPath, parents: Parents) -> FileResult<FileStat> {
    parents.of(dir, path)?;
    match dir.mkdir(path, DIRECTORY_MODE) {
        Err(error) if error.kind() == FsErrorKind::Exists && parents == Parents::Make => {
            // A file or a link of that name is still an error.
            dir.open_dir(path)?;
        }
        made => made?,
    }
    stat(dir, Some(path))
}
