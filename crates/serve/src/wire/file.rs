//! Files of a workspace, and what is asked to be done with them. Every path is relative to the
//! workspace.

use glovebox_model::ByteString;
use glovebox_workspace::archive::Unpacked;
use glovebox_workspace::files::{
    Change, ChangeKind, Copied, FileStat, Found, Globbed, Grepped, Line, Page, Replaced,
};
use glovebox_workspace::{Kind, RelPath};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{Limit, Sent};

const fn yes() -> bool {
    true
}

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

impl From<Kind> for FileKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Directory => Self::Directory,
            Kind::Symlink => Self::Symlink,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => Self::Other,
        }
    }
}

pub(super) fn octal(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}

impl FileInfo {
    /// None: the workspace itself.
    pub fn new(path: Option<&RelPath>, stat: FileStat) -> Self {
        let path = path.map(RelPath::to_byte_string);
        Self::of(
            path.unwrap_or_else(|| ByteString::new(".").unwrap_or_default()),
            stat,
        )
    }

    fn of(path: ByteString, stat: FileStat) -> Self {
        let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
        let nsec = i32::try_from(stat.modified.nsec).unwrap_or(0);
        Self {
            name: name.and_then(ByteString::new).unwrap_or_default(),
            path,
            kind: stat.kind.into(),
            size: stat.size,
            mode: octal(stat.mode),
            modified_at: jiff::Timestamp::new(stat.modified.sec, nsec).ok(),
            etag: stat.etag.to_string(),
            target: stat.target,
        }
    }
}

/// A path that was found below another.
fn below(under: Option<&RelPath>, path: ByteString) -> ByteString {
    match under {
        None => path,
        Some(under) => {
            ByteString::new([under.as_bytes(), b"/", path.as_bytes()].concat()).unwrap_or(path)
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

impl Listing {
    pub fn new(under: Option<&RelPath>, page: Page) -> Self {
        let entries = page.entries.into_iter();
        Self {
            entries: entries
                .map(|entry| FileInfo::of(below(under, entry.path), entry.stat))
                .collect(),
            truncated: page.next.is_some(),
            next: page.next.map(|cursor| cursor.to_string()),
            unread: page.unread,
        }
    }
}

/// A directory's entries, or what one file is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Looked {
    Directory(Listing),
    File(FileInfo),
}

macro_rules! sent {
    ($($name:ident: $limit:ident;)+) => {
        $(impl Sent for $name {
            const LIMIT: Limit = Limit::$limit;
        })+
    };
}

sent! {
    MkdirRequest: Plain;
    MoveRequest: Plain;
    CopyRequest: Plain;
    ReplaceRequest: Exec;
    SearchRequest: Plain;
    GlobRequest: Plain;
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"path": "src/lib"}))]
pub(crate) struct MkdirRequest {
    pub(crate) path: ByteString,
    /// Those on the way are made too, and one that is there already is no error.
    #[serde(default = "yes")]
    pub(crate) parents: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"from": "draft.md", "to": "docs/final.md"}))]
pub(crate) struct MoveRequest {
    pub(crate) from: ByteString,
    pub(crate) to: ByteString,
    /// Replaces what stands there; a directory that is not empty never goes.
    #[serde(default)]
    pub(crate) overwrite: bool,
    /// Directories on the way are made.
    #[serde(default = "yes")]
    pub(crate) parents: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"from": "src", "to": "src.old"}))]
pub(crate) struct CopyRequest {
    pub(crate) from: ByteString,
    pub(crate) to: ByteString,
    /// Replaces what stands there; a directory that is not empty never goes.
    #[serde(default)]
    pub(crate) overwrite: bool,
    /// Directories on the way are made.
    #[serde(default = "yes")]
    pub(crate) parents: bool,
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

impl CopyAnswer {
    pub fn new(to: &RelPath, copied: Copied) -> Self {
        let Copied {
            files,
            directories,
            links,
            bytes,
            skipped,
        } = copied;
        Self {
            path: to.to_byte_string(),
            files,
            directories,
            links,
            bytes,
            skipped,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"path": "main.py", "old": "port = 80", "new": "port = 8080"}))]
pub(crate) struct ReplaceRequest {
    pub(crate) path: ByteString,
    #[schema(min_length = 1)]
    pub(crate) old: String,
    pub(crate) new: String,
    /// Every occurrence; otherwise `old` must be there exactly once.
    #[serde(default)]
    pub(crate) all: bool,
    /// Only in the file with this mark.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub(crate) etag: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplaceAnswer {
    pub times: u64,
    pub file: FileInfo,
}

impl ReplaceAnswer {
    pub fn new(path: &RelPath, replaced: Replaced) -> Self {
        Self {
            times: replaced.times,
            file: FileInfo::new(Some(path), replaced.stat),
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"pattern": "import", "include": ["**/*.py"]}))]
pub(crate) struct SearchRequest {
    #[schema(min_length = 1, max_length = 4096)]
    pub(crate) pattern: String,
    /// `pattern` is a regular expression, searched line by line; otherwise a literal text.
    #[serde(default)]
    pub(crate) regex: bool,
    #[serde(default)]
    pub(crate) ignore_case: bool,
    /// Where to begin; the whole workspace without it.
    pub(crate) path: Option<ByteString>,
    /// Lines before and after each match.
    #[serde(default)]
    #[schema(maximum = 20)]
    pub(crate) context: u32,
    /// Only files that one of these patterns matches. Patterns are relative to `path`.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub(crate) include: Vec<String>,
    /// Neither files nor directories that one of these matches.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub(crate) exclude: Vec<String>,
    /// Names that begin with a dot too.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Matches at most. Lines of context count against it.
    #[schema(minimum = 1, maximum = 5000, default = 1000)]
    pub(crate) limit: Option<u32>,
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

impl From<Line> for SearchLine {
    fn from(line: Line) -> Self {
        Self {
            line: line.number,
            text: line.text,
        }
    }
}

impl SearchAnswer {
    pub fn new(under: Option<&RelPath>, grepped: Grepped) -> Self {
        let one = |found: Found| SearchMatch {
            path: below(under, found.path),
            line: found.line.number,
            column: found.column as u64,
            text: found.line.text,
            before: found.before.into_iter().map(SearchLine::from).collect(),
            after: found.after.into_iter().map(SearchLine::from).collect(),
        };
        Self {
            matches: grepped.found.into_iter().map(one).collect(),
            files: grepped.files,
            bytes: grepped.bytes,
            binary: grepped.binary,
            skipped: grepped.skipped,
            long_lines: grepped.long_lines,
            truncated: grepped.truncated,
        }
    }
}

// The example stands at the field: below `example`, some tools would take `pattern` for the
// keyword and its value for a regular expression.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobRequest {
    /// `*` and `?` stay within one name, `**` crosses directories. Relative to `path`.
    #[schema(min_length = 1, max_length = 1024, example = "**/*.rs")]
    pub(crate) pattern: String,
    /// Where to begin; the whole workspace without it.
    pub(crate) path: Option<ByteString>,
    /// Names that begin with a dot too.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Paths at most.
    #[schema(minimum = 1, maximum = 10000, default = 10000)]
    pub(crate) limit: Option<u32>,
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

impl GlobAnswer {
    pub fn new(under: Option<&RelPath>, globbed: Globbed) -> Self {
        let one = |(path, kind): (ByteString, Kind)| GlobPath {
            path: below(under, path),
            kind: kind.into(),
        };
        Self {
            paths: globbed.paths.into_iter().map(one).collect(),
            truncated: globbed.truncated,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UnpackAnswer {
    pub entries: u64,
    pub files: u64,
    /// Of the files' contents.
    pub bytes: u64,
}

impl From<Unpacked> for UnpackAnswer {
    fn from(unpacked: Unpacked) -> Self {
        Self {
            entries: unpacked.entries,
            files: unpacked.files,
            bytes: unpacked.bytes,
        }
    }
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

impl WatchChange {
    pub fn new(under: Option<&RelPath>, change: Change) -> Self {
        Self {
            seq: change.seq,
            kind: match change.kind {
                ChangeKind::Created => WatchKind::Created,
                ChangeKind::Modified => WatchKind::Modified,
                ChangeKind::Removed => WatchKind::Removed,
                ChangeKind::Moved => WatchKind::Moved,
            },
            path: below(under, change.path),
            is_dir: change.is_dir,
            from: change.from.map(|from| below(under, from)),
        }
    }
}
