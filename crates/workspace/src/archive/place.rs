//! Making one entry. Whatever stands at its name goes first, so nothing is ever opened that is
//! already there: not a file to write through a hard link, not a link to write through.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, futimens, linkat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::Purpose;
use super::refusal::Refusal;
use super::root::{Root, files, make_directory, open_single};
use super::stream::from_reading;
use crate::dir::{from_io, remove_name};
use crate::fault::FsError;
use crate::relpath::{PATH_MAX, RelPath};
use crate::stat::{Kind, stat_name};

const CHUNK: usize = 128 << 10;

/// Permission bits without set-id and sticky. The owner can always read a file and enter a
/// directory, or an ordinary user could neither use nor remove what was unpacked.
fn permissions(purpose: Purpose, kind: Kind, mode: u32) -> Mode {
    let mask = match purpose {
        Purpose::Files => 0o777,
        // An image is everybody's to read and nobody's to change.
        Purpose::Image => 0o755,
    };
    let owner = match kind {
        Kind::Directory => 0o700,
        _ => 0o400,
    };
    Mode::from_raw_mode(mode & mask | owner)
}

impl Root<'_> {
    pub(super) fn place_directory(&mut self, path: &RelPath, mode: u32) -> Result<(), Refusal> {
        let (parent, name) = self.parent(path)?;
        let fault = |errno| files("make the directory", path, errno);
        let mode = permissions(self.purpose, Kind::Directory, mode);
        match self.clear(&parent, &name, path, Wanted::Directory)? {
            Cleared::Free => {
                make_directory(parent.as_fd(), &name, mode.as_raw_mode()).map_err(fault)?;
            }
            Cleared::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let fd = open_single(parent.as_fd(), &name, flags, Mode::empty());
                fchmod(fd.map_err(fault)?, mode).map_err(fault)?;
            }
        }
        self.note_made(parent.as_fd(), &name).map_err(fault)
    }

    pub(super) fn place_file(
        &mut self,
        path: &RelPath,
        mode: u32,
        modified: i64,
        contents: &mut dyn Read,
    ) -> Result<(), Refusal> {
        let (parent, name) = self.parent(path)?;
        self.clear(&parent, &name, path, Wanted::Other)?;
        let fault = |errno| files("write", path, errno);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let fd = open_single(parent.as_fd(), &name, flags, private).map_err(fault)?;
        self.note_made(parent.as_fd(), &name).map_err(fault)?;
        let mut file = File::from(fd);
        copy(contents, &mut file, path)?;
        // After the contents: a write by another id would take bits away.
        fchmod(&file, permissions(self.purpose, Kind::File, mode)).map_err(fault)?;
        // Interpreters compare the times of sources with those of what they compiled from them.
        let at = Timespec {
            tv_sec: modified,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: at,
            last_modification: at,
        };
        match futimens(&file, &times) {
            // A time that the file system cannot hold.
            Err(Errno::INVAL | Errno::RANGE | Errno::OVERFLOW) => Ok(()),
            done => done.map_err(fault),
        }
    }

    pub(super) fn place_symlink(&mut self, path: &RelPath, target: &[u8]) -> Result<(), Refusal> {
        check_target(self.purpose, path, target)?;
        let text = CString::new(target).map_err(|_| Refusal::LinkText)?;
        let (parent, name) = self.parent(path)?;
        self.clear(&parent, &name, path, Wanted::Other)?;
        let fault = |errno| files("make the link", path, errno);
        symlinkat(&text, &parent, &name).map_err(fault)?;
        self.note_made(parent.as_fd(), &name).map_err(fault)
    }

    /// `target` is a path of the same archive, or of a layer before it.
    pub(super) fn place_hard_link(
        &mut self,
        path: &RelPath,
        target: &RelPath,
    ) -> Result<(), Refusal> {
        let fault = |errno| files("make the link", path, errno);
        let Some((from, from_name)) = self.existing_parent(target)? else {
            return Err(Refusal::HardLinkMissing);
        };
        let found = match stat_name(&from, &from_name) {
            Err(Errno::NOENT) => return Err(Refusal::HardLinkMissing),
            found => found.map_err(fault)?,
        };
        match (found.kind, self.purpose) {
            (Kind::File, _) | (Kind::Symlink, Purpose::Image) => {}
            // Moved to another depth, a link leads elsewhere than where it was checked for.
            _ => return Err(Refusal::HardLinkNotAFile),
        }
        let (parent, name) = self.parent(path)?;
        if stat_name(&parent, &name).is_ok_and(|there| there.id == found.id) {
            return self.note_made(parent.as_fd(), &name).map_err(fault);
        }
        self.clear(&parent, &name, path, Wanted::Other)?;
        // Without AT_SYMLINK_FOLLOW, so a link is linked itself.
        match linkat(&from, &from_name, &parent, &name, AtFlags::empty()) {
            // It stood in what had to make room.
            Err(Errno::NOENT) => return Err(Refusal::HardLinkMissing),
            done => done.map_err(fault)?,
        }
        self.note_made(parent.as_fd(), &name).map_err(fault)
    }

    fn clear(
        &mut self,
        parent: &OwnedFd,
        name: &CString,
        path: &RelPath,
        wanted: Wanted,
    ) -> Result<Cleared, Refusal> {
        let kind = match stat_name(parent, name) {
            Err(Errno::NOENT) => return Ok(Cleared::Free),
            found => found.map_err(|errno| files("look at", path, errno))?.kind,
        };
        if kind == Kind::Directory && wanted == Wanted::Directory {
            return Ok(Cleared::Directory);
        }
        self.forget_place();
        let fault = |errno| files("replace", path, errno);
        match (kind, self.purpose) {
            (Kind::Directory, Purpose::Image) => remove_name(parent.as_fd(), name)
                .map_err(|kind| Refusal::Files(FsError::new("replace", path.as_bytes(), kind)))?,
            (Kind::Directory, Purpose::Files) => match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Refusal::Occupied),
                done => done.map_err(fault)?,
            },
            _ => unlinkat(parent, name, AtFlags::empty()).map_err(fault)?,
        }
        Ok(Cleared::Free)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Directory,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cleared {
    Free,
    /// A directory that may stay.
    Directory,
}

/// In an archive of files `..` may only lead a link, and never above the top. After a name it
/// would depend on where that name leads, which may itself be a link to a shallower place.
fn check_target(purpose: Purpose, path: &RelPath, target: &[u8]) -> Result<(), Refusal> {
    if target.is_empty() || target.len() > PATH_MAX || target.contains(&0) {
        return Err(Refusal::LinkText);
    }
    match purpose {
        Purpose::Image => return Ok(()),
        Purpose::Files if target.starts_with(b"/") => return Err(Refusal::LinkLeaves),
        Purpose::Files => {}
    }
    let mut above = path.components().count() - 1;
    let mut named = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named || above == 0 => return Err(Refusal::LinkLeaves),
            b".." => above -= 1,
            _ => named = true,
        }
    }
    Ok(())
}

fn copy(contents: &mut dyn Read, file: &mut File, path: &RelPath) -> Result<(), Refusal> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match contents.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(from_reading(&error)),
        };
        file.write_all(&buffer[..read]).map_err(|error| {
            Refusal::Files(FsError::new("write", path.as_bytes(), from_io(&error)))
        })?;
    }
}
