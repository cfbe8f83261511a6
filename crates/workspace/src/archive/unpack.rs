//! From a stream to a directory.

use std::ffi::CString;
use std::io::Read;

use rustix::fd::AsFd;
use rustix::fs::{RenameFlags, renameat_with, syncfs};

use super::member::{Entry, Member, Members};
use super::purge::Whiteout;
use super::refusal::{Limit, Refusal};
use super::root::{Root, make_directory};
use super::stream::{Flow, from_reading};
use super::{Purpose, UnpackError, UnpackLimits, UnpackResult};
use crate::dir::{Dir, remove_name, temporary_name};
use crate::fault::{FsError, FsErrorKind};
use crate::relpath::{PathError, RelPath};

/// What an archive brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    pub entries: u64,
    pub files: u64,
    /// Of the files' contents.
    pub bytes: u64,
    /// Devices and FIFOs that were left out.
    pub skipped: u64,
    pub whiteouts: u64,
}

/// Unpacks into the new directory `path` of `dir`: it is there whole and on disk, or not at all.
pub fn unpack_new(
    source: impl Read,
    dir: &Dir,
    path: &RelPath,
    purpose: Purpose,
    limits: UnpackLimits,
) -> UnpackResult<Unpacked> {
    let fault = |kind| making(path, kind);
    let (parent, name) = path
        .split()
        .map_err(|error| fault(FsErrorKind::Path(error)))?;
    let name = CString::new(name).map_err(|_| fault(FsErrorKind::Path(PathError::Nul)))?;
    let parent = match parent {
        None => dir.try_clone(),
        Some(parent) => {
            let parent = RelPath::new(parent);
            dir.open_dir(&parent.map_err(|error| fault(FsErrorKind::Path(error)))?)
        }
    };
    let parent = parent.map_err(|error| fault(error.kind()))?;
    let temporary = temporary_name().map_err(fault)?;
    let unpacked = fill(source, &parent, &temporary, purpose, limits).and_then(|unpacked| {
        renameat_with(&parent, &temporary, &parent, &name, RenameFlags::NOREPLACE)
            .map_err(|errno| fault(errno.into()))?;
        Ok(unpacked)
    });
    if unpacked.is_err() {
        // Best effort: the first fault is the one to report.
        let _ = remove_name(parent.as_fd(), &temporary);
    }
    unpacked
}

fn fill(
    source: impl Read,
    parent: &Dir,
    name: &CString,
    purpose: Purpose,
    limits: UnpackLimits,
) -> UnpackResult<Unpacked> {
    let fault = |errno: rustix::io::Errno| {
        let error = FsError::os("make the directory", name.as_bytes(), errno);
        UnpackError::of_archive(Refusal::Files(error))
    };
    let top = make_directory(parent.as_fd(), name, 0o755).map_err(fault)?;
    let target = parent
        .open_name(&name.to_string_lossy())
        .map_err(|error| UnpackError::of_archive(Refusal::Files(error)))?;
    let unpacked = unpack_over(source, &target, purpose, limits)?;
    // One call for all files, however many there are.
    syncfs(&top).map_err(fault)?;
    Ok(unpacked)
}

/// Unpacks over what is in `dir`. Nothing that stands there is written through or followed; what
/// has the same name is replaced, and what was unpacked before a refusal stays.
pub fn unpack_over(
    source: impl Read,
    dir: &Dir,
    purpose: Purpose,
    limits: UnpackLimits,
) -> UnpackResult<Unpacked> {
    let mut flow = Flow::new(source, limits)?;
    let mut unpacking = Unpacking::new(limits);
    unpacking.apply(&mut flow, &mut Root::new(dir, purpose), &mut |_| ())?;
    // To the end, since the checksum of compressed data stands there.
    std::io::copy(&mut flow, &mut std::io::sink())
        .map_err(|error| UnpackError::of_archive(from_reading(&error)))?;
    Ok(unpacking.done())
}

/// The counts of one archive, or of all layers of one image.
#[derive(Debug)]
pub(crate) struct Unpacking {
    limits: UnpackLimits,
    so_far: Unpacked,
}

impl Unpacking {
    pub(crate) fn new(limits: UnpackLimits) -> Self {
        Self {
            limits,
            so_far: Unpacked::default(),
        }
    }

    pub(crate) fn done(&self) -> Unpacked {
        self.so_far
    }

    /// One archive, up to its end mark. `each` hears of the counts after every entry.
    pub(crate) fn apply(
        &mut self,
        plain: &mut dyn Read,
        root: &mut Root<'_>,
        each: &mut dyn FnMut(&Unpacked),
    ) -> UnpackResult<()> {
        let mut members = Members::new(plain);
        while let Some(member) = members.advance()? {
            self.member(&member, root, &mut members)
                .map_err(|why| UnpackError::of_entry(&member.path, why))?;
            each(&self.so_far);
        }
        Ok(())
    }

    pub(super) fn member(
        &mut self,
        member: &Member,
        root: &mut Root<'_>,
        contents: &mut dyn Read,
    ) -> Result<(), Refusal> {
        let limits = self.limits;
        self.so_far.entries += 1;
        if self.so_far.entries > limits.entries {
            return Err(Refusal::Limit(Limit::Entries(limits.entries)));
        }
        let Some(path) = entry_path(&member.path, root.purpose, limits)? else {
            return match member.entry {
                // The top is there, with the mode that its maker gave it.
                Entry::Directory => Ok(()),
                _ => Err(Refusal::Path(PathError::Itself)),
            };
        };
        if root.purpose == Purpose::Image
            && let Some(whiteout) = Whiteout::of(&path)?
        {
            self.so_far.whiteouts += 1;
            return root.take_away(&whiteout);
        }
        match &member.entry {
            Entry::Directory => root.place_directory(&path, member.mode),
            Entry::Symlink(target) => root.place_symlink(&path, target),
            Entry::HardLink(target) => match entry_path(target, root.purpose, limits) {
                Ok(Some(target)) => root.place_hard_link(&path, &target),
                Ok(None) => Err(Refusal::HardLinkNotAFile),
                Err(Refusal::Climbs | Refusal::Path(PathError::Absolute)) => {
                    Err(Refusal::HardLinkLeaves)
                }
                // Longer or deeper than anything that was unpacked.
                Err(_) => Err(Refusal::HardLinkMissing),
            },
            Entry::Special(what) => match root.purpose {
                Purpose::Files => Err(Refusal::Special(what)),
                Purpose::Image => {
                    self.so_far.skipped += 1;
                    Ok(())
                }
            },
            Entry::File => {
                if member.size > limits.file_bytes {
                    return Err(Refusal::Limit(Limit::FileBytes(limits.file_bytes)));
                }
                root.place_file(&path, member.mode, member.modified, contents)?;
                self.so_far.files += 1;
                self.so_far.bytes = self.so_far.bytes.saturating_add(member.size);
                Ok(())
            }
        }
    }
}

/// Where an entry goes; None is the top itself.
pub(crate) fn entry_path(
    raw: &[u8],
    purpose: Purpose,
    limits: UnpackLimits,
) -> Result<Option<RelPath>, Refusal> {
    let start = match purpose {
        Purpose::Files => 0,
        Purpose::Image => raw.iter().take_while(|byte| **byte == b'/').count(),
    };
    let raw = &raw[start..];
    if raw.is_empty() && start > 0 {
        return Ok(None);
    }
    // Refused even where it would come back: `a/../b` means something else once `a` is a link.
    if raw.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return Err(Refusal::Climbs);
    }
    let path = match RelPath::new(raw) {
        Err(PathError::Itself) => return Ok(None),
        path => path.map_err(Refusal::Path)?,
    };
    if path.as_bytes().len() > limits.path_bytes {
        return Err(Refusal::Limit(Limit::PathBytes(limits.path_bytes)));
    }
    if path.components().count() > limits.depth {
        return Err(Refusal::Limit(Limit::Depth(limits.depth)));
    }
    Ok(Some(path))
}

fn making(path: &RelPath, kind: FsErrorKind) -> UnpackError {
    let error = FsError::new("make the directory", path.as_bytes(), kind);
    UnpackError::of_archive(Refusal::Files(error))
}
