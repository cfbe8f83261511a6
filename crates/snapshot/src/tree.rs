//! A directory's tree as it stands, by path. Each directory is opened from the top by its whole
//! path, with no link and no mount on it: depth costs no descriptors, and whatever is swapped in
//! meanwhile is refused by the kernel.

use std::ffi::CStr;

use glovebox_model::Result;
use glovebox_workspace::{Dir, FsErrorKind, Kind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, OFlags, RawDir, Statx, StatxAttributes, StatxFlags, readlinkat, statx,
};
use rustix::io::Errno;

use crate::bytes::shown;
use crate::fault::{os, storing, too_much};
use crate::manifest::{Content, Meta, Seen};
use crate::progress::{Progress, Watch, tell};
use crate::reach::{Locked, open_directory};
use crate::stamp::Stamp;

const PATH_MAX: usize = 4095;
const LISTING_BUFFER: usize = 64 << 10;
/// How often somebody is told.
const STRIDE: usize = 256;

/// What the kernel says about one name, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    /// With set-id and sticky bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) allocated: u64,
    pub(crate) links: u32,
    pub(crate) device: (u32, u32),
    pub(crate) ino: u64,
    pub(crate) modified: Stamp,
    pub(crate) changed: Stamp,
    pub(crate) is_mount: bool,
}

#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    pub(crate) facts: Facts,
    /// Of a symbolic link.
    pub(crate) target: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) entries: usize,
    pub(crate) depth: usize,
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS;

impl Facts {
    pub(crate) fn of(fd: impl AsFd) -> Result<Self, Errno> {
        statx(fd, c"", AtFlags::EMPTY_PATH, WANTED).map(Self::from)
    }

    /// `name` is one name in `dir`.
    pub(crate) fn at(dir: impl AsFd, name: &CStr) -> Result<Self, Errno> {
        statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, WANTED).map(Self::from)
    }

    pub(crate) fn same_file(&self, other: &Self) -> bool {
        (self.device, self.ino) == (other.device, other.ino)
    }

    /// What is stored of the mode.
    pub(crate) fn kept_mode(&self) -> u32 {
        self.mode & 0o1777
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen {
            ino: self.ino,
            changed: self.changed,
        }
    }

    /// Whether this is the very file that was stored, untouched since.
    pub(crate) fn is_still(&self, content: &Content, meta: &Meta, started: Stamp) -> bool {
        self.kind == Kind::File
            && content.seen == Some(self.seen())
            && content.size == self.size
            && meta.modified == self.modified
            && self.changed.is_settled(started)
    }
}

impl From<Statx> for Facts {
    fn from(raw: Statx) -> Self {
        let mode = u32::from(raw.stx_mode);
        Self {
            kind: kind_of(FileType::from_raw_mode(mode)),
            mode: mode & 0o7777,
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            size: raw.stx_size,
            allocated: raw.stx_blocks.saturating_mul(512),
            links: raw.stx_nlink,
            device: (raw.stx_dev_major, raw.stx_dev_minor),
            ino: raw.stx_ino,
            modified: raw.stx_mtime.into(),
            changed: raw.stx_ctime.into(),
            is_mount: raw.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        }
    }
}

fn kind_of(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::BlockDevice | FileType::CharacterDevice => Kind::Device,
        FileType::Unknown => Kind::Unknown,
    }
}

/// Everything below `dir`, in the order of the paths' bytes; of a directory that is not to be
/// entered, only the directory itself.
pub(crate) fn walk(
    dir: &Dir,
    bounds: Bounds,
    locked: Locked,
    enters: &dyn Fn(&[u8]) -> bool,
    watch: &mut dyn Watch,
) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    let mut told = 0;
    while let Some(path) = waiting.pop() {
        let reader = match open_directory(dir, &path, locked) {
            Ok(reader) => reader,
            // Removed or replaced since it was listed.
            Err(error)
                if !path.is_empty()
                    && matches!(
                        error.kind(),
                        FsErrorKind::NotFound | FsErrorKind::NotADirectory | FsErrorKind::Loop
                    ) =>
            {
                continue;
            }
            Err(error) => return Err(storing(error)),
        };
        let from = found.len();
        list(&reader, &path, bounds.entries, &mut found)?;
        for entry in &found[from..] {
            let is_directory = entry.facts.kind == Kind::Directory && !entry.facts.is_mount;
            if is_directory && enters(&entry.path) {
                check_depth(&entry.path, bounds.depth)?;
                waiting.push(entry.path.clone());
            }
        }
        if found.len() - told >= STRIDE {
            told = found.len();
            let entries = found.len() as u64;
            tell(watch, Progress { entries, bytes: 0 })?;
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn list(reader: &OwnedFd, path: &[u8], most: usize, found: &mut Vec<Found>) -> Result<()> {
    let reading = |errno| os("list", path, errno);
    let mut buffer = Vec::with_capacity(LISTING_BUFFER);
    let mut raw = RawDir::new(reader, buffer.spare_capacity_mut());
    while let Some(entry) = raw.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // Removed since it was opened, so it was empty.
            Err(Errno::NOENT) if !path.is_empty() => break,
            Err(errno) => return Err(reading(errno)),
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let facts = match Facts::at(reader, name) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(reading(errno)),
        };
        let target = match facts.kind {
            Kind::Symlink => match readlinkat(reader, name, Vec::new()) {
                Ok(target) => Some(target.into_bytes()),
                // Gone, or another thing by now.
                Err(Errno::NOENT | Errno::INVAL) => continue,
                Err(errno) => return Err(reading(errno)),
            },
            _ => None,
        };
        if found.len() >= most {
            let message = format!("the workspace has more than {most} files and directories");
            return Err(too_much(message, "remove some, or raise the limit"));
        }
        found.push(Found {
            path: join(path, name.to_bytes()),
            facts,
            target,
        });
    }
    Ok(())
}

fn check_depth(path: &[u8], most: usize) -> Result<()> {
    let depth = path.iter().filter(|byte| **byte == b'/').count() + 1;
    // A name of 255 bytes and its slash must still fit behind it.
    if depth < most && path.len() + 256 <= PATH_MAX {
        return Ok(());
    }
    let message = format!("directory `{}` lies too deep", shown(path));
    Err(too_much(
        message,
        "paths may have 3,839 bytes for directories, and a bounded number of parts",
    ))
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    if !path.is_empty() {
        joined.extend_from_slice(path);
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The directory part, empty at the top, and the name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// For reading: a FIFO swapped in must not hold us, a terminal not become ours.
pub(crate) const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOATIME);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_removed_while_it_is_open_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let opened = OwnedFd::from(std::fs::File::open(dir.path()).unwrap());
        dir.close().unwrap();
        let mut found = Vec::new();
        list(&opened, b"inside", 1, &mut found).unwrap();
        assert!(found.is_empty());
        // The workspace itself is not to go away.
        assert!(list(&opened, b"", 1, &mut found).is_err());
    }
}
