//! Snapshots of a workspace, and what is asked to be done with them.

use glovebox_model::{ByteString, Error, ExecId, ProjectId, SnapshotId, SpaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"label": "before the upgrade"}))]
pub struct SnapshotRequest {
    /// One with a label is never removed by its age.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Although execs run: files that they write meanwhile may be half in it.
    #[serde(default)]
    pub live: bool,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub struct UndoRequest {
    /// This exec and everything after it; without it, the last that a snapshot was taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub struct RollbackRequest {
    /// A verified one; without it, the newest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"into": "demo-2"}))]
pub struct ForkRequest {
    /// The new workspace.
    pub into: ProjectId,
    /// Its files; without it, those that are there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,
}

/// A workspace as it was.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotInfo {
    pub snapshot_id: SnapshotId,
    pub project_id: ProjectId,
    #[schema(value_type = String, format = DateTime)]
    pub taken_at: jiff::Timestamp,
    /// The one that it was compared with; it can be removed without harm.
    pub parent: Option<SnapshotId>,
    pub label: Option<String>,
    pub note: Option<String>,
    /// When it was last read whole and found sound; null when it never was, or damage was found
    /// since.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub verified_at: Option<jiff::Timestamp>,
    pub counts: SnapshotCounts,
}

/// What it holds, and what it does not.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotCounts {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub fifos: u64,
    /// Further names of files that are counted once.
    pub hard_links: u64,
    /// Sum of the files' sizes, holes included.
    pub bytes: u64,
    pub sockets_skipped: u64,
    pub devices_skipped: u64,
    pub mounts_skipped: u64,
    pub set_id_dropped: u64,
    pub xattrs_dropped: u64,
    /// Files that changed each time while they were read.
    pub unstable: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// Newest first.
    pub items: Vec<SnapshotInfo>,
    /// There are more.
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TakenSnapshot {
    pub snapshot: SnapshotInfo,
    /// The others were known to be unchanged.
    pub files_read: u64,
    pub bytes_read: u64,
    /// What the store grew by. An agent is told what it would have grown by at most if nothing had been
    /// there: what others store is not told.
    pub stored_bytes: u64,
    /// As `stored_bytes`.
    pub new_chunks: u64,
    /// Files that changed while they were read, the first hundred.
    pub unstable: Vec<ByteString>,
}

/// What was done to make files what a snapshot says.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RestoreCounts {
    pub files_written: u64,
    pub bytes_written: u64,
    /// Directories, links, FIFOs and further names that were made.
    pub made: u64,
    /// Whose mode, time or attributes were set and nothing else.
    pub adjusted: u64,
    /// Trees and files that were not in the snapshot.
    pub removed: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RestoredWorkspace {
    /// What it is now as it was.
    pub snapshot_id: SnapshotId,
    /// What stood there before; to restore it takes this back. None when it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<SnapshotId>,
    pub restored: RestoreCounts,
}

/// A workspace that is at a verified snapshot again.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RolledBackWorkspace {
    /// What it is now as it was.
    pub snapshot_id: SnapshotId,
    #[schema(value_type = String, format = DateTime)]
    pub verified_at: jiff::Timestamp,
    /// What stood there before; to restore it takes this back. None when it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<SnapshotId>,
    /// Digest of all that stood there before; null when it was not kept.
    pub state_before: Option<String>,
    /// Digest of all that stands there now.
    pub state_after: String,
    pub restored: RestoreCounts,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UndoneExec {
    /// The exec whose changes are gone.
    pub exec_id: ExecId,
    pub snapshot_id: SnapshotId,
    /// What stood there before; to restore it takes this back. None when it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<SnapshotId>,
    pub restored: RestoreCounts,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ForkedWorkspace {
    pub project_id: ProjectId,
    /// Whose files it has.
    pub snapshot_id: SnapshotId,
    pub restored: RestoreCounts,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiffAnswer {
    /// By path.
    pub changes: Vec<DiffChange>,
    pub added: u64,
    pub removed: u64,
    /// Everything else that changed.
    pub changed: u64,
    /// There are more changes than are listed.
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiffChange {
    pub path: ByteString,
    pub change: DiffKind,
    pub before: Option<DiffEntry>,
    pub after: Option<DiffEntry>,
    pub text: DiffText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    Added,
    Removed,
    /// Its bytes; maybe its mode too.
    Modified,
    /// Another kind of thing stands there.
    Type,
    /// Its mode alone.
    Mode,
    /// Where a symbolic link leads, or which names a file has.
    Link,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiffEntry {
    #[serde(rename = "type")]
    pub kind: DiffEntryKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Permissions, octal, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ByteString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffEntryKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Other,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DiffText {
    /// No bytes changed.
    None,
    Binary,
    /// The file, or all hunks so far, are larger than is shown.
    TooLarge,
    Hunks {
        /// In unified form, without the lines that name the file.
        unified: String,
        lines_added: u32,
        lines_removed: u32,
        /// The rest did not fit.
        truncated: bool,
    },
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CollectAnswer {
    pub spaces: Vec<CollectedSpace>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CollectedSpace {
    pub space_id: SpaceId,
    /// Snapshots that were kept for their time.
    pub removed: Vec<SnapshotId>,
    pub snapshots_left: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// What a crash had left.
    pub orphans_removed: u64,
    /// Why nothing was done.
    pub error: Option<Error>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct VerifyAnswer {
    /// Nothing is damaged anywhere.
    pub sound: bool,
    pub spaces: Vec<VerifiedSpace>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct VerifiedSpace {
    pub space_id: SpaceId,
    pub snapshots: u64,
    pub packs: u64,
    pub chunks: u64,
    /// Bytes that were held against their hashes.
    pub bytes: u64,
    /// The first thousand.
    pub damage: Vec<StoreDamage>,
    /// Snapshots that cannot be restored whole because of it.
    pub hurts: Vec<HurtSnapshot>,
    /// Why it could not be looked at.
    pub error: Option<Error>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreDamage {
    /// `record`, `pack`, `chunk` or `manifest`.
    pub what: String,
    pub name: String,
    pub why: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HurtSnapshot {
    pub snapshot_id: SnapshotId,
    /// Null: all of it.
    pub path: Option<ByteString>,
}
