//! What people and agents do with the files of a workspace from outside of it: look, read, write,
//! list, search, change, watch, and move whole trees in and out.
//!
//! All of it happens beneath one [`Dir`](crate::Dir) and is bounded in bytes, entries and time.
//! Whoever works inside at the same moment can make an operation fail, never make it leave, wait
//! for somebody, or believe a size. Where a path is optional, none means the directory itself.

mod copy;
mod download;
mod fault;
mod glob;
mod grep;
mod list;
mod merge;
mod mkdir;
mod pattern;
mod read;
mod remove;
mod rename;
mod replace;
mod stat;
mod tour;
mod upload;
mod watch;
mod write;

pub use copy::{Copied, CopyLimits, copy};
pub use download::{Download, DownloadLimits, Format, download};
pub use fault::{Bound, FileError, FileResult};
pub use glob::{GlobOptions, Globbed, glob};
pub use grep::{Case, Found, GrepLimits, GrepOptions, Grepped, Line, Needle, grep};
pub use list::{Cursor, ListOptions, Listed, Page, list};
pub use mkdir::{Parents, mkdir};
pub use pattern::Hidden;
pub use read::{Contents, Range, Reading, open, read};
pub use remove::{Recursive, remove};
pub use rename::rename;
pub use replace::{Occurrence, Replaced, replace};
pub use stat::{Etag, FileStat, stat};
pub use upload::{Placement, Source, upload};
pub use watch::{Change, ChangeKind, Changes, Watch, WatchLimits};
pub use write::{Condition, Durability, WriteOptions, write};
