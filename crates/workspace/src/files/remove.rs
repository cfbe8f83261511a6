//! Removing.

use super::fault::{FileError, FileResult};
use crate::dir::Dir;
use crate::fault::FsErrorKind;
use crate::relpath::{RelPath, shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recursive {
    No,
    /// A directory goes with everything in it.
    Yes,
}

/// A link goes, what it points at stays.
pub fn remove(dir: &Dir, path: &RelPath, recursive: Recursive) -> FileResult<()> {
    match (dir.remove_file(path), recursive) {
        (Err(error), Recursive::Yes) if error.kind() == FsErrorKind::IsADirectory => {
            Ok(dir.remove_all(path)?)
        }
        (Err(error), Recursive::No) if error.kind() == FsErrorKind::IsADirectory => {
            Err(FileError::NeedsRecursive {
                path: shown(path.as_bytes()),
            })
        }
        (removed, _) => Ok(removed?),
    }
}
