//! Moving.

use rustix::io::Errno;

use super::fault::{FileError, FileResult};
use super::mkdir::Parents;
use crate::dir::{Dir, Existing};
use crate::fault::FsErrorKind;
use crate::relpath::{RelPath, shown};

/// A link is moved itself. A directory that is not empty is never replaced.
pub fn rename(
    dir: &Dir,
    from: &RelPath,
    to: &RelPath,
    existing: Existing,
    parents: Parents,
) -> FileResult<()> {
    // Before anything is made for something that is not there.
    dir.lstat(from)?;
    parents.of(dir, to)?;
    dir.rename(from, to, existing)
        .map_err(|error| match error.kind() {
            FsErrorKind::Os(Errno::INVAL) => FileError::IntoItself {
                path: shown(from.as_bytes()),
            },
            _ => error.into(),
        })
}
