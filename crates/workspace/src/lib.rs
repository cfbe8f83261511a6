//! Files that outlive a run: paths that cannot leave their directory, the layout on disk, inputs,
//! captured output and artifacts; and which of the host's toolchains a sandbox may see. Nothing
//! here starts a program. Files of a workspace are reached through a [`Dir`] alone, and only
//! [`Dir::open_trusted`] and [`Layout::adopt`] make one from a path of the host.

mod adopt;
mod artifacts;
mod dir;
mod fault;
mod hex;
mod input;
mod journal;
mod layout;
mod relpath;
mod sink;
mod stat;
pub mod toolchain;

pub use artifacts::{
    Collected, DropReason, Dropped, Drops, ExecFiles, Manifest, ManifestEntry, Stream,
};
pub use dir::{
    Dir, DiskUsage, Entry, Existing, Listing, Skip, UsageLimits, Visit, WalkEnd, WalkEntry,
    WalkLimits,
};
pub use fault::{FsError, FsErrorKind, FsResult};
pub use input::check_inputs;
pub use journal::{Happened, Journal, JournalEntry, JournalReader};
pub use layout::{Layout, Project, WorkKind};
pub use relpath::{PathError, RelPath};
pub use sink::{Captured, Excerpt, OutputSink};
pub use stat::{FileId, FileTime, Kind, Stat};
