//! Removing files and trees. A tree is flattened while it is removed: directories inside are moved
//! up to its top before they are emptied, so that depth costs neither stack nor descriptors and no
//! step ever looks at `..`.

use std::ffi::{CStr, CString};
use std::ops::ControlFlow;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, fchmod, renameat, seek, unlinkat};
use rustix::io::Errno;

use super::{Dir, open, scan, temporary_name};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::RelPath;
use crate::stat::stat_fd;

/// Only reached when somebody makes files as fast as they are removed.
const MOST_REMOVALS: u64 = 50_000_000;
/// A directory that was read empty and then is not: somebody writes to it.
const MOST_REFILLS: u32 = 64;

impl Dir {
    /// Unlinks a file, a link or a special file; a directory is an error.
    pub fn remove_file(&self, path: &RelPath) -> FsResult<()> {
        let (parent, name) = self.parent("remove", path)?;
        unlinkat(parent, name, AtFlags::empty())
            .map_err(|errno| FsError::os("remove", path.as_bytes(), errno))
    }

    /// Removes whatever stands there. A link goes, its target stays; another file system mounted
    /// inside stops it.
    pub fn remove_all(&self, path: &RelPath) -> FsResult<()> {
        let (parent, name) = self.parent("remove", path)?;
        remove_name(parent.as_fd(), &name)
            .map_err(|kind| FsError::new("remove", path.as_bytes(), kind))
    }

    /// Removes everything inside and keeps the directory itself.
    pub fn clear(&self) -> FsResult<()> {
        let fault = |kind| FsError::new("clear", b"", kind);
        let top = scan::reader(self).map_err(fault)?;
        Removal::new(top)
            .and_then(|mut removal| removal.empty_top())
            .map_err(fault)
    }
}

/// `remove_all` for one name in a directory that is held.
pub(crate) fn remove_name(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), FsErrorKind> {
    for _ in 0..MOST_REFILLS {
        match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => {}
            done => return Ok(done?),
        }
        let top = match open_unlocked(parent, name) {
            Err(kind) if became_another(kind) => continue,
            opened => opened?,
        };
        Removal::new(top)?.empty_top()?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::NOTDIR) => {}
            done => return Ok(done?),
        }
    }
    Err(FsErrorKind::Contended)
}

/// What was a directory a moment ago is now a file or a link: somebody swaps them.
fn became_another(kind: FsErrorKind) -> bool {
    matches!(kind, FsErrorKind::NotADirectory | FsErrorKind::Loop)
}

struct Removal {
    top: OwnedFd,
    /// Unguessable, so that no name of the tree's owner collides with ours.
    prefix: CString,
    moved: u64,
    removed: u64,
}

impl Removal {
    fn new(top: OwnedFd) -> Result<Self, FsErrorKind> {
        Ok(Self {
            top,
            prefix: temporary_name()?,
            moved: 0,
            removed: 0,
        })
    }

    fn empty_top(&mut self) -> Result<(), FsErrorKind> {
        loop {
            let top = self.top.try_clone().map_err(|_| Errno::MFILE)?;
            let seen = each_entry(&top, |name, hint| self.remove_from_top(name, hint))?;
            if seen == 0 {
                return Ok(());
            }
        }
    }

    fn remove_from_top(&mut self, name: &CStr, mut hint: FileType) -> Result<(), FsErrorKind> {
        self.count()?;
        for _ in 0..MOST_REFILLS {
            if unlink_unless_dir(self.top.as_fd(), name, hint)? {
                return Ok(());
            }
            // A hint is only good for the first look.
            hint = FileType::Unknown;
            match unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {}
                Err(Errno::NOTDIR) => continue,
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
            let child = match open_unlocked(self.top.as_fd(), name) {
                Err(FsErrorKind::NotFound) => return Ok(()),
                Err(kind) if became_another(kind) => continue,
                opened => opened?,
            };
            while each_entry(&child, |inner, hint| self.flatten(&child, inner, hint))? > 0 {}
        }
        Err(FsErrorKind::Contended)
    }

    /// Removes one entry of a directory in the top, or moves it up to be removed later.
    fn flatten(&mut self, child: &OwnedFd, name: &CStr, hint: FileType) -> Result<(), FsErrorKind> {
        self.count()?;
        if unlink_unless_dir(child.as_fd(), name, hint)? {
            return Ok(());
        }
        match unlinkat(child, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Not empty, or no directory any more: either is dealt with at the top.
            Err(_) => {}
        }
        self.moved += 1;
        let place = format!("{}-{}", self.prefix.to_string_lossy(), self.moved);
        match renameat(child, name, &self.top, place.as_str()) {
            // To move a directory one must be able to write it, since its `..` changes.
            Err(Errno::ACCESS) => {
                unlock(child.as_fd(), name)?;
                Ok(renameat(child, name, &self.top, place.as_str())?)
            }
            Err(Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    fn count(&mut self) -> Result<(), FsErrorKind> {
        self.removed += 1;
        if self.removed > MOST_REMOVALS {
            return Err(FsErrorKind::TooManyEntries { cap: MOST_REMOVALS });
        }
        Ok(())
    }
}

/// One pass over a directory from its start; says how many entries it saw.
fn each_entry(
    dir: &OwnedFd,
    mut each: impl FnMut(&CStr, FileType) -> Result<(), FsErrorKind>,
) -> Result<u64, FsErrorKind> {
    seek(dir, SeekFrom::Start(0))?;
    let mut seen = 0;
    let mut fault = None;
    scan::entries(dir.as_fd(), |name, hint| {
        seen += 1;
        match each(name, hint) {
            Ok(()) => ControlFlow::Continue(()),
            Err(kind) => {
                fault = Some(kind);
                ControlFlow::Break(())
            }
        }
    })?;
    fault.map_or(Ok(seen), Err)
}

/// False when it is a directory.
fn unlink_unless_dir(
    dir: BorrowedFd<'_>,
    name: &CStr,
    hint: FileType,
) -> Result<bool, FsErrorKind> {
    if hint == FileType::Directory {
        return Ok(false);
    }
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A directory's owner may have taken its own permissions away; we give them back to empty it.
fn open_unlocked(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, FsErrorKind> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let fd = match open::single(parent, name.to_bytes(), flags) {
        Err(FsErrorKind::Permission) => {
            unlock(parent, name)?;
            open::single(parent, name.to_bytes(), flags)?
        }
        opened => opened?,
    };
    if stat_fd(&fd)?.mode & 0o700 != 0o700 {
        // Root does not need it, and for anybody else the removal itself will say so.
        let _ = fchmod(&fd, Mode::RWXU);
    }
    Ok(fd)
}

fn unlock(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), FsErrorKind> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let fd = open::single(parent, name.to_bytes(), flags)?;
    // `fchmod` takes no path-only descriptor, and `fchmodat` would follow a link swapped in. Our
    // own entry in `/proc` leads to exactly the directory that is held.
    let own = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(own.as_str(), Mode::RWXU)?)
}
