//! What a snapshot holds, and what it does not.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub fifos: u64,
    /// Further names of files that are counted once above.
    pub hard_links: u64,
    /// Sum of the files' sizes, holes included.
    pub bytes: u64,
    /// Not in the snapshot: they mean nothing without the process behind them.
    pub sockets_skipped: u64,
    pub devices_skipped: u64,
    /// Another file system mounted inside is not part of the workspace.
    pub mounts_skipped: u64,
    /// Files whose set-user-id or set-group-id bit was not taken along.
    pub set_id_dropped: u64,
    /// Attributes other than `user.*`, or more of them than are kept.
    pub xattrs_dropped: u64,
    /// Files that changed each time while they were read; what is stored may be a mixture.
    pub unstable: u64,
}
