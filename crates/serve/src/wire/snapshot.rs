//! Snapshots of a workspace, and what is asked to be done with them.

use glovebox_engine::{Forked, MarkedSnapshot, RolledBack, Undone, Wound};
use glovebox_model::{ByteString, Error, ExecId, ProjectId, SnapshotId, SpaceId};
use glovebox_snapshot::{
    Change, ChangedEntry, Collected, Counts, Diff, EntryKind, Restored, Snapshot, Taken, Text,
    Verified,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::octal;
use crate::body::{Limit, Sent};
use crate::failure::discreet;

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"label": "before the upgrade"}))]
pub(crate) struct SnapshotRequest {
    /// One with a label is never removed by its age.
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) label: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) note: Option<String>,
    /// Although execs run: files that they write meanwhile may be half in it.
    #[serde(default)]
    pub(crate) live: bool,
}

impl Sent for SnapshotRequest {
    const LIMIT: Limit = Limit::Plain;
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub(crate) struct UndoRequest {
    /// This exec and everything after it; without it, the last that a snapshot was taken before.
    pub(crate) exec_id: Option<ExecId>,
}

impl Sent for UndoRequest {
    const LIMIT: Limit = Limit::Plain;
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub(crate) struct RollbackRequest {
    /// A verified one; without it, the newest of them.
    pub(crate) snapshot_id: Option<SnapshotId>,
}

impl Sent for RollbackRequest {
    const LIMIT: Limit = Limit::Plain;
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"into": "demo-2"}))]
pub(crate) struct ForkRequest {
    /// The new workspace.
    pub(crate) into: ProjectId,
    /// Its files; without it, those that are there now.
    pub(crate) snapshot_id: Option<SnapshotId>,
}

impl Sent for ForkRequest {
    const LIMIT: Limit = Limit::Plain;
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

impl From<Counts> for SnapshotCounts {
    fn from(it: Counts) -> Self {
        Self {
            files: it.files,
            directories: it.directories,
            symlinks: it.symlinks,
            fifos: it.fifos,
            hard_links: it.hard_links,
            bytes: it.bytes,
            sockets_skipped: it.sockets_skipped,
            devices_skipped: it.devices_skipped,
            mounts_skipped: it.mounts_skipped,
            set_id_dropped: it.set_id_dropped,
            xattrs_dropped: it.xattrs_dropped,
            unstable: it.unstable,
        }
    }
}

impl From<Snapshot> for SnapshotInfo {
    fn from(it: Snapshot) -> Self {
        Self {
            snapshot_id: it.id,
            project_id: it.project,
            taken_at: it.taken_at,
            parent: it.parent,
            label: it.label,
            note: it.note,
            verified_at: None,
            counts: it.counts.into(),
        }
    }
}

impl From<MarkedSnapshot> for SnapshotInfo {
    fn from(it: MarkedSnapshot) -> Self {
        Self {
            verified_at: it.verified_at,
            ..it.snapshot.into()
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// Newest first.
    pub items: Vec<SnapshotInfo>,
    /// There are more.
    pub truncated: bool,
}

impl From<(Vec<MarkedSnapshot>, bool)> for SnapshotList {
    fn from((first, truncated): (Vec<MarkedSnapshot>, bool)) -> Self {
        Self {
            items: first.into_iter().map(SnapshotInfo::from).collect(),
            truncated,
        }
    }
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

impl From<Taken> for TakenSnapshot {
    fn from(it: Taken) -> Self {
        Self {
            snapshot: it.snapshot.into(),
            files_read: it.files_read,
            bytes_read: it.bytes_read,
            stored_bytes: it.stored_bytes,
            new_chunks: it.new_chunks,
            unstable: it.unstable,
        }
    }
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

impl From<Restored> for RestoreCounts {
    fn from(it: Restored) -> Self {
        Self {
            files_written: it.files_written,
            bytes_written: it.bytes_written,
            made: it.made,
            adjusted: it.adjusted,
            removed: it.removed,
        }
    }
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

impl From<Wound> for RestoredWorkspace {
    fn from(it: Wound) -> Self {
        Self {
            snapshot_id: it.to,
            before: it.before,
            restored: it.restored.into(),
        }
    }
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

impl From<RolledBack> for RolledBackWorkspace {
    fn from(it: RolledBack) -> Self {
        Self {
            snapshot_id: it.wound.to,
            verified_at: it.verified_at,
            before: it.wound.before,
            state_before: it.state_before,
            state_after: it.state_after,
            restored: it.wound.restored.into(),
        }
    }
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

impl From<Undone> for UndoneExec {
    fn from(it: Undone) -> Self {
        Self {
            exec_id: it.exec_id,
            snapshot_id: it.wound.to,
            before: it.wound.before,
            restored: it.wound.restored.into(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ForkedWorkspace {
    pub project_id: ProjectId,
    /// Whose files it has.
    pub snapshot_id: SnapshotId,
    pub restored: RestoreCounts,
}

impl From<Forked> for ForkedWorkspace {
    fn from(it: Forked) -> Self {
        Self {
            project_id: it.project_id,
            snapshot_id: it.from,
            restored: it.restored.into(),
        }
    }
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

impl DiffEntry {
    fn new(it: EntryKind, mode: Option<u32>) -> Self {
        let (kind, size, target) = match it {
            EntryKind::File { bytes } => (DiffEntryKind::File, Some(bytes), None),
            EntryKind::Directory => (DiffEntryKind::Directory, None, None),
            EntryKind::Symlink { target } => (DiffEntryKind::Symlink, None, Some(target)),
            EntryKind::Fifo => (DiffEntryKind::Fifo, None, None),
            EntryKind::Other => (DiffEntryKind::Other, None, None),
        };
        Self {
            kind,
            size,
            mode: mode.map(octal),
            target,
        }
    }
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

impl From<ChangedEntry> for DiffChange {
    fn from(it: ChangedEntry) -> Self {
        let (mode_before, mode_after) = (it.mode_before, it.mode_after);
        Self {
            path: it.path,
            change: match it.change {
                Change::Added => DiffKind::Added,
                Change::Removed => DiffKind::Removed,
                Change::Modified => DiffKind::Modified,
                Change::Type => DiffKind::Type,
                Change::Mode => DiffKind::Mode,
                Change::Link => DiffKind::Link,
            },
            before: it.before.map(|entry| DiffEntry::new(entry, mode_before)),
            after: it.after.map(|entry| DiffEntry::new(entry, mode_after)),
            text: match it.text {
                Text::None => DiffText::None,
                Text::Binary => DiffText::Binary,
                Text::TooLarge => DiffText::TooLarge,
                Text::Hunks {
                    unified,
                    lines_added,
                    lines_removed,
                    truncated,
                } => DiffText::Hunks {
                    unified,
                    lines_added,
                    lines_removed,
                    truncated,
                },
            },
        }
    }
}

impl From<Diff> for DiffAnswer {
    fn from(it: Diff) -> Self {
        Self {
            changes: it.changes.into_iter().map(DiffChange::from).collect(),
            added: it.added,
            removed: it.removed,
            changed: it.changed,
            truncated: it.truncated,
        }
    }
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

impl CollectAnswer {
    pub fn new(all: Vec<(SpaceId, glovebox_model::Result<Collected>)>) -> Self {
        let spaces = all.into_iter().map(|(space_id, done)| {
            let (done, error) = match done {
                Ok(done) => (done, None),
                Err(error) => (Collected::default(), Some(discreet(error))),
            };
            CollectedSpace {
                space_id,
                removed: done.removed,
                snapshots_left: done.snapshots_left,
                bytes_before: done.bytes_before,
                bytes_after: done.bytes_after,
                orphans_removed: done.orphans_removed,
                error,
            }
        });
        Self {
            spaces: spaces.collect(),
        }
    }
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

impl VerifyAnswer {
    pub fn new(all: Vec<(SpaceId, glovebox_model::Result<Verified>)>) -> Self {
        let spaces: Vec<VerifiedSpace> = all
            .into_iter()
            .map(|(space_id, done)| {
                let (done, error) = match done {
                    Ok(done) => (done, None),
                    Err(error) => (Verified::default(), Some(discreet(error))),
                };
                VerifiedSpace {
                    space_id,
                    snapshots: done.snapshots,
                    packs: done.packs,
                    chunks: done.chunks,
                    bytes: done.bytes,
                    damage: done.damage.into_iter().map(StoreDamage::from).collect(),
                    hurts: done.hurts.into_iter().map(HurtSnapshot::from).collect(),
                    error,
                }
            })
            .collect();
        Self {
            sound: spaces
                .iter()
                .all(|it| it.error.is_none() && it.damage.is_empty()),
            spaces,
        }
    }
}

impl From<glovebox_snapshot::Damage> for StoreDamage {
    fn from(it: glovebox_snapshot::Damage) -> Self {
        Self {
            what: it.what.to_owned(),
            name: it.name,
            why: it.why,
        }
    }
}

impl From<glovebox_snapshot::Hurt> for HurtSnapshot {
    fn from(it: glovebox_snapshot::Hurt) -> Self {
        Self {
            snapshot_id: it.snapshot,
            path: it.path,
        }
    }
}
