//! What a file is, without ever following a link to find out.

use std::ffi::CStr;
use std::fmt;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
    Unknown,
}

impl Kind {
    pub(crate) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::BlockDevice | FileType::CharacterDevice => Self::Device,
            FileType::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "of an unknown kind",
        })
    }
}

/// Two handles with the same identity are the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    pub dev: (u32, u32),
    pub ino: u64,
}

/// A moment by the file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileTime {
    pub sec: i64,
    pub nsec: u32,
}

impl FileTime {
    /// Files are stamped from the coarse clock, which runs behind the precise one by up to a tick:
    /// a precise "now" would be later than what a file made right after it is stamped with.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self {
            sec: now.tv_sec,
            nsec: u32::try_from(now.tv_nsec).unwrap_or(0),
        }
    }
}

impl From<StatxTimestamp> for FileTime {
    fn from(time: StatxTimestamp) -> Self {
        Self {
            sec: time.tv_sec,
            nsec: time.tv_nsec,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub kind: Kind,
    /// Of a symbolic link: the length of its text, never of what it points at.
    pub size: u64,
    /// What it takes on disk.
    pub allocated: u64,
    /// Permission bits only: set-id and sticky bits are not passed on.
    pub mode: u32,
    pub links: u32,
    pub modified: FileTime,
    pub changed: FileTime,
    /// Not every file system remembers it.
    pub born: Option<FileTime>,
    pub id: FileId,
}

impl From<Statx> for Stat {
    fn from(raw: Statx) -> Self {
        let mode = u32::from(raw.stx_mode);
        let knows_birth = StatxFlags::from_bits_retain(raw.stx_mask).contains(StatxFlags::BTIME);
        Self {
            kind: Kind::of(FileType::from_raw_mode(mode)),
            size: raw.stx_size,
            // `st_blocks` counts units of 512 bytes whatever the file system's block is.
            allocated: raw.stx_blocks.saturating_mul(512),
            mode: mode & 0o777,
            links: raw.stx_nlink,
            modified: raw.stx_mtime.into(),
            changed: raw.stx_ctime.into(),
            born: knows_birth.then(|| raw.stx_btime.into()),
            id: FileId {
                dev: (raw.stx_dev_major, raw.stx_dev_minor),
                ino: raw.stx_ino,
            },
        }
    }
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

pub(crate) fn stat_fd(fd: impl AsFd) -> rustix::io::Result<Stat> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, WANTED).map(Stat::from)
}

/// `name` is one name in `dir`, or an empty answer about somebody else's file would be possible.
pub(crate) fn stat_name(dir: impl AsFd, name: &CStr) -> rustix::io::Result<Stat> {
    rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, WANTED).map(Stat::from)
}
