//! `[workspace]`: how large a workspace may grow, what is kept of it, what it starts with, and what
//! its sandboxes may reuse. It is the operator's alone: no nearer layer has a say.

mod cache;
mod path;
mod read;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;

use glovebox_model::{Bytes, Count, Millis, Tier};

use crate::decided::Decided;
use crate::word::Word;

pub use cache::{CacheName, CacheSettings, CacheSharing};
pub(super) use read::read_workspace;

/// Every field is decided; `None` sets no bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// What one workspace may hold. None by default: an exec's own limits still count.
    pub max_bytes: Option<Bytes>,
    pub max_files: Option<Count>,
    /// The lowest tier of an exec before which its workspace is snapshotted; `Safe` is before
    /// every exec, None before none, which is the default.
    pub snapshot_before: Option<Tier>,
    /// Of all snapshots of a space together; 20 GiB by default.
    pub snapshots_max_bytes: Option<Bytes>,
    /// A snapshot stays that is among so many of its workspace or younger than this, and all stay
    /// when both are None; 50 and 30 days by default.
    pub snapshots_keep_last: Option<Count>,
    pub snapshots_keep_within: Option<Millis>,
    /// Artifacts of a workspace stay that are within all three. None by default: all stay.
    pub artifacts_keep_within: Option<Millis>,
    pub artifacts_keep_last: Option<Count>,
    pub artifacts_max_bytes: Option<Bytes>,
    /// A directory of the host's that a workspace starts with when Glovebox makes or resets it.
    pub template: Option<PathBuf>,
    /// At places of which none lies in another.
    pub caches: BTreeMap<CacheName, CacheSettings>,
    pub runtime: PathRuntime,
    /// The directory for workspaces as Windows calls it, and as WSL or any other Linux does. Only
    /// the kind of path is checked here.
    pub root_win: Option<String>,
    pub root_wsl: Option<String>,
    /// What of the file API is in the ledger.
    pub audit: FileAudit,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            max_bytes: None,
            max_files: None,
            snapshot_before: None,
            snapshots_max_bytes: Some(Bytes::mib(20 << 10)),
            snapshots_keep_last: Some(Count(50)),
            snapshots_keep_within: Some(Millis::secs(30 * 24 * 3600)),
            artifacts_keep_within: None,
            artifacts_keep_last: None,
            artifacts_max_bytes: None,
            template: None,
            caches: BTreeMap::new(),
            runtime: PathRuntime::Auto,
            root_win: None,
            root_wsl: None,
            audit: FileAudit::Changes,
        }
    }
}

/// What of the file API is in the ledger; each holds the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FileAudit {
    #[default]
    Changes,
    /// Requests that were refused, and why: paths that lead outside among them.
    Refusals,
    /// What was read, listed, searched, watched and packed.
    Reads,
}

impl Word for FileAudit {
    const ALL: &'static [Self] = &[Self::Changes, Self::Refusals, Self::Reads];
    fn word(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Refusals => "refusals",
            Self::Reads => "reads",
        }
    }
}

/// Whose paths the roots are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PathRuntime {
    /// As the host says of itself.
    #[default]
    Auto,
    Windows,
    Wsl,
    Posix,
}

impl Word for PathRuntime {
    const ALL: &'static [Self] = &[Self::Auto, Self::Windows, Self::Wsl, Self::Posix];
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Windows => "windows",
            Self::Wsl => "wsl",
            Self::Posix => "posix",
        }
    }
}

/// What the file says, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WorkspaceSection {
    settings: WorkspaceSettings,
    file: String,
    /// Where each key stands, those of a cache as `cache.NAME`.
    lines: BTreeMap<String, u32>,
}

impl WorkspaceSection {
    pub(super) fn settings(&self) -> &WorkspaceSettings {
        &self.settings
    }

    pub(super) fn sources(&self) -> Vec<Decided> {
        source::rows(self)
    }
}
