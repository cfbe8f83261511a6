//! Writing files: whole or not at all, and never through a link.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, renameat, unlinkat};
use rustix::io::Errno;

use super::make::permissions;
use super::read::from_io;
use super::{Dir, open};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::RelPath;
use crate::stat::{Kind, stat_name};

pub(crate) const FRESH: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW);

impl Dir {
    /// Readers see the old contents or the new, nothing between. Only a regular file is replaced.
    /// `mode` is cut to the permission bits; nothing else of an old file is carried over.
    pub fn write(&self, path: &RelPath, contents: &[u8], mode: u32) -> FsResult<()> {
        let fault = |kind| FsError::new("write", path.as_bytes(), kind);
        let (parent, name) = self.parent("write", path)?;
        // A courtesy to the caller. What counts is that `rename` replaces a link and never follows
        // it, should one appear after this look.
        match stat_name(&parent, &name).map(|stat| stat.kind) {
            Ok(Kind::File) | Err(Errno::NOENT) => {}
            Ok(Kind::Directory) => return Err(fault(FsErrorKind::IsADirectory)),
            Ok(Kind::Symlink) => return Err(fault(FsErrorKind::Symlink)),
            Ok(kind) => return Err(fault(FsErrorKind::NotRegular(kind))),
            Err(errno) => return Err(fault(errno.into())),
        }
        let temporary = temporary_name().map_err(fault)?;
        let written = fill(&parent, &temporary, contents, mode).and_then(|()| {
            renameat(&parent, &temporary, &parent, &name).map_err(FsErrorKind::from)
        });
        written.map_err(|kind| {
            // Best effort: the first fault is the one to report.
            let _ = unlinkat(&parent, &temporary, AtFlags::empty());
            fault(kind)
        })
    }

    /// A new file, open for writing; anything that stands there, a dangling link too, is an error.
    pub fn create(&self, path: &RelPath, mode: u32) -> FsResult<File> {
        // Refused here since the kernel's answer to a trailing `..` differs between versions.
        path.split()
            .map_err(|error| FsError::new("create", path.as_bytes(), FsErrorKind::Path(error)))?;
        self.open_bytes("create", path.as_bytes(), FRESH, permissions(mode))
            .map(File::from)
    }
}

fn fill(parent: &impl AsFd, name: &CString, contents: &[u8], mode: u32) -> Result<(), FsErrorKind> {
    let fd = open::beneath(
        parent.as_fd(),
        name.as_bytes(),
        FRESH,
        Mode::from_raw_mode(0o600),
    )?;
    // Not at creation: the process's umask would take bits away.
    fchmod(&fd, permissions(mode))?;
    File::from(fd)
        .write_all(contents)
        .map_err(|error| from_io(&error))
}

const TEMPORARY: &str = ".glovebox-";

/// Whether a name looks like one that [`temporary_name`] gave, or a removal made from it.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(TEMPORARY.as_bytes()) else {
        return false;
    };
    let Some((random, number)) = rest.split_at_checked(16) else {
        return false;
    };
    random
        .iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && (number.is_empty() || number.starts_with(b"-"))
}

/// Nobody guesses it, so nobody waits there.
pub(crate) fn temporary_name() -> Result<CString, FsErrorKind> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|_| FsErrorKind::Os(Errno::IO))?;
    let name = format!("{TEMPORARY}{:016x}", u64::from_ne_bytes(random));
    CString::new(name).map_err(|_| FsErrorKind::Os(Errno::INVAL))
}
