//! Moving a tree that was made aside into a directory that is in use.

use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::fault::{FileError, FileResult};
use super::tour::{Bounds, Next, Seen, tour, until};
use crate::dir::{Dir, single};
use crate::fault::FsErrorKind;
use crate::stat::{Kind, stat_name};

/// Renames on one file system; only a dying disk takes so long.
const TIME: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Nothing is moved before all of it has found its place.
    Look,
    Move,
}

/// Directories are joined and keep their mode, files and links are replaced; a directory is never replaced by
/// something else, nor something else by a directory.
pub(super) fn merge(made: &Dir, target: &Dir, entries: u64) -> FileResult<()> {
    for pass in [Pass::Look, Pass::Move] {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let top = single(target.as_fd(), b".", flags)
            .map_err(|kind| FileError::new("open", b"", kind))?;
        let mut open: Vec<OwnedFd> = vec![top];
        let bounds = Bounds {
            entries,
            deadline: until(TIME),
        };
        let toured = tour(made, None, bounds, &mut |seen| {
            open.truncate(seen.depth);
            let Some(into) = open.last() else {
                return Ok(Next::Stop);
            };
            match one(seen, into, pass)? {
                Some(deeper) => {
                    open.push(deeper);
                    Ok(Next::Into)
                }
                None => Ok(Next::Past),
            }
        })?;
        if let Some(bound) = toured.cut {
            return Err(FileError::Limit(bound));
        }
    }
    Ok(())
}

/// The directory to go on in, when both sides have one.
fn one(seen: Seen<'_>, into: &OwnedFd, pass: Pass) -> FileResult<Option<OwnedFd>> {
    let fault = |kind| FileError::new("replace", seen.path, kind);
    let there = match stat_name(into, seen.name) {
        Ok(stat) => Some(stat.kind),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(fault(errno.into())),
    };
    let flags = match (seen.stat.kind, there) {
        (Kind::Directory, Some(Kind::Directory)) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let fd = single(into.as_fd(), seen.name.to_bytes(), flags).map_err(fault)?;
            return Ok(Some(fd));
        }
        (_, Some(Kind::Directory)) => return Err(fault(FsErrorKind::IsADirectory)),
        (Kind::Directory, Some(_)) => return Err(fault(FsErrorKind::NotADirectory)),
        (Kind::Directory, None) => RenameFlags::NOREPLACE,
        (_, _) => RenameFlags::empty(),
    };
    if pass == Pass::Move {
        renameat_with(seen.dir, seen.name, into, seen.name, flags)
            .map_err(|errno| fault(errno.into()))?;
    }
    Ok(None)
}
