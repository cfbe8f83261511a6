//! A tree that comes in as an archive.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, unlinkat};

use super::fault::{FileError, FileResult};
use super::merge::merge;
use super::mkdir::{DIRECTORY_MODE, Parents};
use crate::archive::{
    Purpose, Seekable, UnpackLimits, Unpacked, make_directory, unpack_over, unpack_zip_over,
};
use crate::dir::{Dir, from_io, remove_name, temporary_name};
use crate::fault::FsErrorKind;
use crate::relpath::RelPath;

/// Every ZIP that holds something begins so, and an empty one like this.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

pub enum Source<'a> {
    /// Plain, or compressed with gzip or zstd.
    Tar(&'a mut dyn Read),
    /// Its directory is at its end, so it must be there as a whole. Nobody else may write to it.
    Zip(&'a mut dyn Seekable),
}

impl<'a> Source<'a> {
    /// By what the file holds, whatever it is called.
    pub fn of(file: &'a mut File) -> FileResult<Self> {
        let fault = |error: std::io::Error| FileError::new("read", b"", from_io(&error));
        let mut magic = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(fault)?;
        file.take(4).read_to_end(&mut magic).map_err(fault)?;
        file.seek(SeekFrom::Start(0)).map_err(fault)?;
        Ok(match ZIP_MAGIC.contains(&magic.as_slice()) {
            true => Self::Zip(file),
            false => Self::Tar(file),
        })
    }
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tar(_) => "Tar",
            Self::Zip(_) => "Zip",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Unpacked aside, and moved in when all of it was right; a refused archive changes nothing.
    Whole,
    /// Straight into its place; what came before a refusal stays. Needs no second directory.
    Straight,
}

/// What has the same name is replaced, links too; nothing is written through one. Directories that
/// were made for an archive that is refused go again.
pub fn upload(
    dir: &Dir,
    under: Option<&RelPath>,
    source: Source<'_>,
    placement: Placement,
    parents: Parents,
    limits: UnpackLimits,
) -> FileResult<Unpacked> {
    let (Some(path), Parents::Make) = (under, parents) else {
        return fill(&dir.under(under)?, source, placement, limits);
    };
    let missing = missing(dir, path);
    let made = dir.mkdir_all(path, DIRECTORY_MODE);
    let filled = made.map_err(FileError::from);
    let filled = filled.and_then(|target| fill(&target, source, placement, limits));
    if filled.is_err() {
        for path in missing.iter().rev() {
            remove_empty(dir, path);
        }
    }
    filled
}

/// Directories on the way that are not there, the outermost first. Where a path with `..` leads, only
/// the kernel knows.
fn missing(dir: &Dir, path: &RelPath) -> Vec<RelPath> {
    if path.climbs() {
        return Vec::new();
    }
    let prefixes = path.prefixes().filter_map(|it| RelPath::new(it).ok());
    let is_missing =
        |it: &RelPath| matches!(dir.lstat(it), Err(error) if error.kind() == FsErrorKind::NotFound);
    prefixes.filter(is_missing).collect()
}

/// One that somebody has put something into meanwhile stays.
fn remove_empty(dir: &Dir, path: &RelPath) {
    if let Ok((parent, name)) = dir.parent("remove", path) {
        let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

fn fill(
    target: &Dir,
    source: Source<'_>,
    placement: Placement,
    limits: UnpackLimits,
) -> FileResult<Unpacked> {
    if placement == Placement::Straight {
        return unpack(source, target, limits);
    }
    let fault = |kind: FsErrorKind| FileError::new("unpack to", b"", kind);
    let temporary = temporary_name().map_err(fault)?;
    let made = make_directory(target.as_fd(), &temporary, 0o700)
        .map_err(|errno| fault(errno.into()))
        .and_then(|_| Ok(target.open_name(&temporary.to_string_lossy())?))
        .and_then(|aside| {
            let unpacked = unpack(source, &aside, limits)?;
            merge(&aside, target, most_entries(limits))?;
            Ok(unpacked)
        });
    let removed = remove_name(target.as_fd(), &temporary);
    let unpacked = made?;
    removed.map_err(fault)?;
    Ok(unpacked)
}

/// Directories that no entry names are made too.
fn most_entries(limits: UnpackLimits) -> u64 {
    limits.entries.saturating_mul(limits.depth as u64)
}

fn unpack(source: Source<'_>, target: &Dir, limits: UnpackLimits) -> FileResult<Unpacked> {
    Ok(match source {
        Source::Tar(stream) => unpack_over(stream, target, Purpose::Files, limits)?,
        Source::Zip(file) => unpack_zip_over(file, target, limits)?,
    })
}
