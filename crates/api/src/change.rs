//! Changes of an exec that wait to be kept or discarded.

use glovebox_model::{ByteString, ChangeCount, ExecId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::FileKind;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitingAnswer {
    pub exec_id: ExecId,
    pub count: ChangeCount,
    /// A directory before what lies in it.
    pub changes: Vec<WaitingChange>,
    /// Files that were opened for writing and are as they were.
    pub unchanged: u64,
    /// FIFOs, sockets and devices, which are never carried over.
    pub skipped: Vec<ByteString>,
    /// Of the files that are text; not more than a megabyte.
    pub texts: Vec<ChangeText>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitingChange {
    pub path: ByteString,
    pub what: ChangeWhat,
    /// As it stands in the workspace now.
    pub before: Option<ChangeSide>,
    /// As the exec left it.
    pub after: Option<ChangeSide>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeWhat {
    Created,
    /// The bytes of a file, or the text of a link.
    Modified,
    /// Something of another kind stands there now.
    Replaced,
    Removed,
    /// The same contents with another mode, other attributes or another time.
    Touched,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeSide {
    #[serde(rename = "type")]
    pub kind: FileKind,
    pub size: u64,
    /// Permissions, octal.
    pub mode: String,
    /// BLAKE3 of a file's bytes, unless there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The text of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ByteString>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeText {
    pub path: ByteString,
    pub unified: String,
}

/// What became of changes that waited.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DecidedAnswer {
    pub exec_id: ExecId,
    pub count: ChangeCount,
}
