//! One name in a snapshot.

use serde::{Deserialize, Serialize};

use crate::bytes::Raw;
use crate::hash::ChunkHash;
use crate::stamp::Stamp;

/// A file's attributes are for small notes; a guest must not hide a store in them.
pub(crate) const XATTRS_MAX: usize = 64;
pub(crate) const XATTR_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: Raw,
    pub(crate) meta: Meta,
    pub(crate) node: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// Permission bits and the sticky bit.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) modified: Stamp,
    /// `user.*` only, by name.
    pub(crate) xattrs: Vec<(Raw, Raw)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Node {
    Directory,
    File(Content),
    /// A further name of a file that stands earlier in the manifest.
    Link {
        to: Raw,
    },
    Symlink {
        target: Raw,
    },
    Fifo,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) size: u64,
    /// How many names it has in this snapshot.
    pub(crate) names: u32,
    /// None when it did not hold still, so that nobody takes it for unchanged.
    pub(crate) seen: Option<Seen>,
    pub(crate) pieces: Vec<Piece>,
}

/// By what an untouched file is recognised, with its size and the time of its last change of
/// contents. The change time is the kernel's alone: no program can set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) ino: u64,
    pub(crate) changed: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Piece {
    Chunk { hash: ChunkHash, length: u32 },
    Hole { length: u64 },
}

impl Piece {
    pub(crate) fn length(self) -> u64 {
        match self {
            Self::Chunk { length, .. } => u64::from(length),
            Self::Hole { length } => length,
        }
    }
}

impl Content {
    pub(crate) fn hashes(&self) -> impl Iterator<Item = ChunkHash> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Chunk { hash, .. } => Some(*hash),
            Piece::Hole { .. } => None,
        })
    }

    /// The same bytes, whatever was noted about the file they came from.
    pub(crate) fn same_pieces(&self, other: &Self) -> bool {
        self.size == other.size && self.pieces == other.pieces
    }
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory)
    }
}
