//! What a file is, and a mark that changes whenever the file does.

use std::fmt;

use glovebox_model::ByteString;
use sha2::{Digest, Sha256};

use super::fault::FileResult;
use crate::dir::Dir;
use crate::hex::hex;
use crate::relpath::RelPath;
use crate::stat::{FileTime, Kind, Stat};

/// Half of a SHA-256 is enough for a mark that only its own file is compared with.
const ETAG_BYTES: usize = 16;

/// Opaque. Made from the inode, its size and its times; the time of the last change of the inode
/// cannot be set by anybody. Two writes in place within one tick of the file system's clock (some
/// milliseconds) that leave the size alone look the same; whatever replaces the file does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Etag(String);

impl Etag {
    /// As somebody gave it back; one that was never given out matches no file.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of(stat: &Stat) -> Self {
        let mut hash = Sha256::new();
        let time = |time: FileTime| (time.sec.to_le_bytes(), time.nsec.to_le_bytes());
        hash.update(stat.id.dev.0.to_le_bytes());
        hash.update(stat.id.dev.1.to_le_bytes());
        hash.update(stat.id.ino.to_le_bytes());
        hash.update(stat.size.to_le_bytes());
        for (sec, nsec) in [time(stat.modified), time(stat.changed)] {
            hash.update(sec);
            hash.update(nsec);
        }
        Self(hex(&hash.finalize()[..ETAG_BYTES]))
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    pub kind: Kind,
    /// Of a link: the length of its text.
    pub size: u64,
    pub mode: u32,
    pub modified: FileTime,
    pub etag: Etag,
    /// The text of a link, which may lead anywhere and is never followed.
    pub target: Option<ByteString>,
}

impl FileStat {
    pub(super) fn new(stat: &Stat, target: Option<Vec<u8>>) -> Self {
        Self {
            kind: stat.kind,
            size: stat.size,
            mode: stat.mode,
            modified: stat.modified,
            etag: Etag::of(stat),
            target: target.and_then(ByteString::new),
        }
    }
}

/// The same answer whether what a link points at exists or not.
pub fn stat(dir: &Dir, path: Option<&RelPath>) -> FileResult<FileStat> {
    Ok(match path {
        None => FileStat::new(&dir.stat_self()?, None),
        Some(path) => {
            let (stat, target) = dir.look(path)?;
            FileStat::new(&stat, target)
        }
    })
}
