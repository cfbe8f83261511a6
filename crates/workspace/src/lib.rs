//! Files that outlive a run: paths that cannot leave their directory, the layout on disk, inputs,
//! captured output and artifacts; and which of the host's toolchains a sandbox may see. Nothing
//! here starts a program. Files of a workspace are reached through a [`Dir`] alone, and only
//! [`Dir::open_trusted`] and [`Layout::adopt`] make one from a path of the host.

pub mod adapter;
mod adopt;
pub mod archive;
mod artifacts;
mod cache;
pub mod change;
mod dir;
mod fault;
pub mod files;
mod hex;
pub mod image;
mod input;
mod journal;
mod layout;
mod lines;
mod lock;
mod relpath;
mod retention;
mod sandbox_files;
mod sealed;
mod seed;
mod sink;
mod stat;
pub mod toolchain;

pub use adopt::is_adopted;
pub use artifacts::{
    Collected, DropReason, Dropped, Drops, ExecFiles, Manifest, ManifestEntry, stream_file,
};
pub use cache::{Cache, CacheKey, CacheMode, CacheName, CacheOwner, CachePrune, CacheUse, Pruned};
pub use dir::{
    Dir, DiskUsage, Entry, Existing, Listing, Skip, UsageLimits, Visit, WalkEnd, WalkEntry,
    WalkLimits,
};
pub use fault::{FsError, FsErrorKind, FsResult};
pub use input::check_inputs;
pub use journal::{Happened, Journal, JournalEntry, JournalReader};
pub use layout::{Layout, Project, WorkKind, is_skill_input, skill_input};
pub use lines::{EffectLog, NetworkLog};
pub use lock::Occupied;
pub use relpath::{PathError, RelPath};
pub use retention::{Retention, Shelf, Shelved, Swept};
pub use sandbox_files::SandboxFiles;
pub use seed::{Reset, ResetDone, SeedLimits, SeedRoom, SeedSkip, SeedSkipped, Seeded, seed};
pub use sink::{Captured, Excerpt, OutputSink};
pub use stat::{FileId, FileTime, Kind, Stat};
