//! What a program did, or would have done: one entry for each thing it would leave behind.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bytestring::ByteString;
use crate::network::{Approach, NetCode, Spoken};
use crate::profile::is_default;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    FilesystemWrite,
    FilesystemRead,
    NetworkRequest,
    StateMutation,
    ExternalApiCall,
    ProcessSpawn,
}

impl EffectKind {
    pub const ALL: [Self; 6] = [
        Self::FilesystemWrite,
        Self::FilesystemRead,
        Self::NetworkRequest,
        Self::StateMutation,
        Self::ExternalApiCall,
        Self::ProcessSpawn,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FilesystemWrite => "filesystem_write",
            Self::FilesystemRead => "filesystem_read",
            Self::NetworkRequest => "network_request",
            Self::StateMutation => "state_mutation",
            Self::ExternalApiCall => "external_api_call",
            Self::ProcessSpawn => "process_spawn",
        }
    }
}

impl fmt::Display for EffectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One effect, in the order in which it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Effect {
    /// Counts within the exec, from 1.
    pub seq: u64,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    #[serde(flatten)]
    pub deed: Deed,
    /// Whether policy lets it happen when it is run for real.
    pub would_succeed: bool,
    /// Why not, and the way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Told while the program ran, before anybody knew what would come of it; the last word is told
    /// at its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub provisional: bool,
    /// What the program was told instead of what would have come of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub simulated_result: Option<serde_json::Value>,
}

impl Effect {
    pub fn kind(&self) -> EffectKind {
        self.deed.kind()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", content = "details", rename_all = "snake_case")]
pub enum Deed {
    FilesystemWrite(FileWrite),
    FilesystemRead(FileRead),
    NetworkRequest(NetworkRequest),
    StateMutation(Reported),
    ExternalApiCall(Reported),
    ProcessSpawn(ProcessSpawn),
}

impl Deed {
    pub const fn kind(&self) -> EffectKind {
        match self {
            Self::FilesystemWrite(_) => EffectKind::FilesystemWrite,
            Self::FilesystemRead(_) => EffectKind::FilesystemRead,
            Self::NetworkRequest(_) => EffectKind::NetworkRequest,
            Self::StateMutation(_) => EffectKind::StateMutation,
            Self::ExternalApiCall(_) => EffectKind::ExternalApiCall,
            Self::ProcessSpawn(_) => EffectKind::ProcessSpawn,
        }
    }
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileOp {
    Created,
    Modified,
    /// Something of another kind stands there now.
    Replaced,
    Removed,
    Renamed,
    /// The same contents with another mode, other attributes, another time or other names.
    Touched,
    /// It was tried, and refused: what exactly would have come of it nobody knows.
    Attempted,
}

impl FileOp {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Touched => "touched",
            Self::Attempted => "attempted",
        }
    }
}

/// One side of a change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileFacts {
    /// `file`, `directory`, `symlink` and so on.
    pub kind: String,
    pub size: u64,
    pub mode: u32,
    /// BLAKE3 of a file's bytes; none when there were more than may be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// BLAKE3 of the extended attributes that are carried over; none when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
    /// The text of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ByteString>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileWrite {
    pub operation: FileOp,
    /// Relative to the workspace; absolute for what lies outside it.
    pub path: ByteString,
    /// Where something that was renamed stood before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ByteString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileFacts>,
    /// Of text: unified hunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The system call, of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileRead {
    /// Relative to the workspace; absolute for what lies outside it.
    pub path: ByteString,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NetworkRequest {
    pub approach: Approach,
    pub spoken: Spoken,
    /// The name that was asked for, or the address where there was none.
    pub host: String,
    pub port: u16,
    /// What policy says to it.
    pub code: NetCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its beginning, with `[secret …]` in the place of values that are secrets or look like one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// BLAKE3 of the whole query as it was; none of a request without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_digest: Option<String>,
    /// The names of the headers that a rerun is held to, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header_names: Vec<String>,
    /// BLAKE3 of those headers with their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_digest: Option<String>,
    /// Bytes of the body that would have been sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body_bytes: u64,
    /// BLAKE3 of that body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_digest: Option<String>,
}

impl NetworkRequest {
    /// A connection, or a question to the DNS: nothing is known of a request.
    pub fn bare(
        approach: Approach,
        spoken: Spoken,
        (host, port): (String, u16),
        code: NetCode,
    ) -> Self {
        Self {
            approach,
            spoken,
            host,
            port,
            code,
            method: None,
            path: None,
            query: None,
            query_digest: None,
            header_names: Vec::new(),
            headers_digest: None,
            body_bytes: 0,
            body_digest: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessSpawn {
    /// Inside the sandbox.
    pub pid: u32,
    pub parent: u32,
    pub program: ByteString,
    pub argv: Vec<ByteString>,
    /// There were more arguments, or longer ones, than are kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub argv_truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<ByteString>,
}

/// What a tool said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reported {
    /// What it acts on: a table, a queue, an endpoint.
    pub target: String,
    /// What it does there.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<serde_json::Value>,
}

/// How many effects there were, and how many are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EffectCount {
    pub total: u64,
    /// Those that policy would not let happen.
    pub violations: u64,
    /// Seen, counted and not kept.
    pub dropped: u64,
}
