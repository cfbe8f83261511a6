//! A workspace as it was. Files are cut where their contents say so; each piece is stored once,
//! under the hash of its bytes; a snapshot is a manifest of names and pieces. Whatever is read back
//! is checked against its hash before it is used. Nothing here runs a program, and files of a
//! workspace are reached through a [`Dir`](glovebox_workspace::Dir) alone.

mod bytes;
mod chunks;
mod collect;
mod counts;
mod diff;
mod fault;
mod hash;
mod keep;
mod lock;
mod manifest;
mod pack;
mod progress;
mod reach;
mod record;
mod restore;
mod snapshots;
mod stamp;
mod take;
mod tree;
mod verify;

pub use collect::{Collect, CollectionReport, Sweep};
pub use counts::Counts;
pub use diff::{Change, ChangedEntry, Diff, DiffLimits, EntryKind, Side, Text};
pub use hash::ChunkHash;
pub use keep::Keep;
pub use progress::{Progress, Watch};
pub use record::{Digest, Snapshot};
pub use restore::{Restore, Restored};
pub use snapshots::{DamagedRecord, Listed, Snapshots};
pub use take::{Take, TakeLimits, Taken, Writers};
pub use verify::{Damage, Hurt, Verified};

/// Readers of what lies in a store, for fuzzing: any bytes give a value or an error, with memory in
/// proportion to the bytes.
pub mod parse {
    use glovebox_model::Result;

    /// How many entries a manifest has.
    pub fn manifest(bytes: &[u8]) -> Result<usize> {
        crate::manifest::Manifest::parse(bytes).map(|manifest| manifest.entries().len())
    }

    /// How many chunks a pack holds.
    pub fn pack(bytes: &[u8]) -> Result<usize> {
        crate::pack::parse_whole(bytes).map(|entries| entries.len())
    }

    pub fn record(bytes: &[u8]) -> Result<crate::Snapshot> {
        crate::record::parse(bytes)
    }
}
