//! Files of a workspace, and what is asked to be done with them. Every path is relative to the
//! workspace.

use glovebox_model::ByteString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a file is; a link is never followed to find out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FileInfo {
    pub path: ByteString,
    /// The last part of the path; `.` for the workspace itself.
    pub name: ByteString,
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// Of a link: the length of its text.
    pub size: u64,
    /// Permissions, octal.
    #[schema(pattern = "^[0-7]{4}$")]
    pub mode: String,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub modified_at: Option<jiff::Timestamp>,
    /// Another one whenever the file is; goes into `If-Match`, `If-None-Match` and `If-Range`, in
    /// quotation marks.
    pub etag: String,
    /// The text of a link, which may lead anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ByteString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    /// A FIFO, a socket or a device: it can be removed and moved, never read.
    Other,
}

impl FileKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Listing {
    /// Each directory before what is in it, names by their bytes.
    pub entries: Vec<FileInfo>,
    /// There are more than are listed.
    pub truncated: bool,
    /// `after` of the next page.
    pub next: Option<String>,
    /// Directories on this page that could not be looked into.
    pub unread: u64,
}

/// A directory's entries, or what one file is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Looked {
    Directory(Listing),
    File(FileInfo),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"path": "src/lib"}))]
pub struct MkdirRequest {
    pub path: ByteString,
    /// Those on the way are made too, and one that is there already is no error.
    #[serde(default = "crate::yes")]
    pub parents: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"from": "draft.md", "to": "docs/final.md"}))]
pub struct MoveRequest {
    pub from: ByteString,
    pub to: ByteString,
    /// Replaces what stands there; a directory that is not empty never goes.
    #[serde(default)]
    pub overwrite: bool,
    /// Directories on the way are made.
    #[serde(default = "crate::yes")]
    pub parents: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"from": "src", "to": "src.old"}))]
pub struct CopyRequest {
    pub from: ByteString,
    pub to: ByteString,
    /// Replaces what stands there; a directory that is not empty never goes.
    #[serde(default)]
    pub overwrite: bool,
    /// Directories on the way are made.
    #[serde(default = "crate::yes")]
    pub parents: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CopyAnswer {
    pub path: ByteString,
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// Special files, which are never copied, and what could not be read.
    pub skipped: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"path": "main.py", "old": "port = 80", "new": "port = 8080"}))]
pub struct ReplaceRequest {
    pub path: ByteString,
    #[schema(min_length = 1)]
    pub old: String,
    pub new: String,
    /// Every occurrence; otherwise `old` must be there exactly once.
    #[serde(default)]
    pub all: bool,
    /// Only in the file with this mark.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplaceAnswer {
    pub times: u64,
    pub file: FileInfo,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"pattern": "import", "include": ["**/*.py"]}))]
pub struct SearchRequest {
    #[schema(min_length = 1, max_length = 4096)]
    pub pattern: String,
    /// `pattern` is a regular expression, searched line by line; otherwise a literal text.
    #[serde(default)]
    pub regex: bool,
    #[serde(default)]
    pub ignore_case: bool,
    /// Where to begin; the whole workspace without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ByteString>,
    /// Lines before and after each match.
    #[serde(default)]
    #[schema(maximum = 20)]
    pub context: u32,
    /// Only files that one of these patterns matches. Patterns are relative to `path`.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub include: Vec<String>,
    /// Neither files nor directories that one of these matches.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub exclude: Vec<String>,
    /// Names that begin with a dot too.
    #[serde(default)]
    pub hidden: bool,
    /// Matches at most. Lines of context count against it.
    #[schema(minimum = 1, maximum = 5000, default = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchAnswer {
    pub matches: Vec<SearchMatch>,
    /// Files that were searched.
    pub files: u64,
    pub bytes: u64,
    /// Files with a NUL byte, which are not searched.
    pub binary: u64,
    /// Files above 8 MiB, unreadable ones, and directories that could not be entered.
    pub skipped: u64,
    /// Lines that were not searched to their end.
    pub long_lines: u64,
    /// There may be more.
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchMatch {
    pub path: ByteString,
    /// From 1.
    pub line: u64,
    /// Where the match begins in the line, in bytes from 0.
    pub column: u64,
    /// The line, cut to 500 bytes around the match.
    pub text: ByteString,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<SearchLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<SearchLine>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchLine {
    pub line: u64,
    pub text: ByteString,
}

// The example stands at the field: below `example`, some tools would take `pattern` for the
// keyword and its value for a regular expression.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobRequest {
    /// `*` and `?` stay within one name, `**` crosses directories. Relative to `path`.
    #[schema(min_length = 1, max_length = 1024, example = "**/*.rs")]
    pub pattern: String,
    /// Where to begin; the whole workspace without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ByteString>,
    /// Names that begin with a dot too.
    #[serde(default)]
    pub hidden: bool,
    /// Paths at most.
    #[schema(minimum = 1, maximum = 10000, default = 10000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GlobAnswer {
    pub paths: Vec<GlobPath>,
    /// There may be more.
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GlobPath {
    pub path: ByteString,
    #[serde(rename = "type")]
    pub kind: FileKind,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UnpackAnswer {
    pub entries: u64,
    pub files: u64,
    /// Of the files' contents.
    pub bytes: u64,
}

/// What an event of a watch tells.
#[derive(Debug, Serialize, Deserialize)]
pub struct WatchChange {
    pub seq: u64,
    pub kind: WatchKind,
    pub path: ByteString,
    pub is_dir: bool,
    /// Where it was, if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ByteString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchKind {
    Created,
    Modified,
    Removed,
    Moved,
}

impl WatchKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Removed => "removed",
            Self::Moved => "moved",
        }
    }
}
