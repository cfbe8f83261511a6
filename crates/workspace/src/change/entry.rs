//! The changes as data.

use glovebox_model::ByteString;
use serde::{Deserialize, Serialize};

use super::intent::Mark;
use crate::stat::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryChange {
    Created,
    /// The bytes of a file, or the text of a link.
    Modified,
    /// Something of another kind stands there now.
    Replaced,
    Removed,
    /// The same contents with another mode, other attributes, another time or other names.
    Touched,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub kind: Kind,
    pub size: u64,
    pub mode: u32,
    /// BLAKE3 of a file's bytes; none when there were more than may be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// BLAKE3 of the attributes that are carried over; none when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
    /// The text of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ByteString>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub path: ByteString,
    pub what: EntryChange,
    /// As it stands in the workspace now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Facts>,
    /// As the exec left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Facts>,
    /// What exactly stood in the workspace when this was read.
    #[serde(skip)]
    pub(super) mark: Option<Mark>,
    /// It came from below: it was there when the exec first wrote it, at this name or another.
    #[serde(skip)]
    pub(super) copied_up: bool,
    /// It went with the directory that it lay in, and needs nothing done for itself.
    #[serde(skip)]
    pub(super) with_parent: bool,
}

/// Something that is never carried over: a FIFO, a socket or a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub path: ByteString,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Changes {
    /// A directory before what lies in it.
    pub entries: Vec<Change>,
    /// Files that were opened for writing and are as they were.
    pub unchanged: u64,
    pub skipped: Vec<Skipped>,
    /// Attributes in a name space that belongs to the kernel's layers; they are never carried over.
    pub dropped_attributes: u64,
    /// Parts of removed directories that could not be looked at.
    #[serde(skip)]
    pub unseen: u64,
    /// The modes of the workspace's own directory before and after, when they differ. It is never
    /// carried over.
    #[serde(skip)]
    pub top: Option<(u32, u32)>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
