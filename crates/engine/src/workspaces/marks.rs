//! Which snapshots were read whole and found sound. What was found is in the ledger; here it is
//! held against the snapshots that are there.

use std::collections::HashSet;

use glovebox_api::{SnapshotInfo, SnapshotList};
use glovebox_model::{Result, SnapshotId, SpaceId};
use glovebox_snapshot::{Snapshot, Verified, Watch};
use glovebox_store::{Actor, VerifiedSnapshot};
use jiff::Timestamp;

use super::Workspace;
use super::answer::snapshot_info;
use crate::workspaces::Workspaces;

/// Verification names so many that are hurt. When there may be more, nobody knows which are not.
const HURTS_NAMED: usize = 1000;

/// A snapshot, and when it was last found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedSnapshot {
    pub snapshot: Snapshot,
    pub verified_at: Option<Timestamp>,
}

impl Workspaces {
    /// Reads all snapshots of a space and writes down which are sound.
    pub fn verify_snapshots(
        &self,
        space: &SpaceId,
        by: Option<&Actor>,
        watch: &mut dyn Watch,
    ) -> Result<Verified> {
        let snapshots = self.snapshots(space)?;
        // Listed before: what is taken meanwhile may not have been read.
        let listed = snapshots.list(None)?.snapshots;
        let verified = snapshots.verify(watch)?;
        let seen = judged(listed, &verified);
        self.instance.store()?.mark_snapshots(space, by, &seen)?;
        Ok(verified)
    }

    /// With their marks. A mark is of one manifest: another that stands there now has none.
    pub(super) fn marked(
        &self,
        space: &SpaceId,
        snapshots: Vec<Snapshot>,
    ) -> Result<Vec<MarkedSnapshot>> {
        let ids = snapshots.iter().map(|it| &it.id);
        let mut marks = self.instance.store()?.snapshot_marks(space, ids)?;
        let marked = snapshots.into_iter().map(|snapshot| {
            let mark = marks.remove(&snapshot.id);
            let mark = mark.filter(|mark| mark.manifest == digest(&snapshot));
            MarkedSnapshot {
                verified_at: mark.map(|mark| mark.verified_at),
                snapshot,
            }
        });
        Ok(marked.collect())
    }
}

impl Workspace<'_> {
    /// The newest first, so many of them.
    pub fn list_snapshots(&self, most: usize) -> Result<SnapshotList> {
        let mut snapshots = self.snapshots()?;
        let truncated = snapshots.len() > most;
        snapshots.truncate(most);
        let marked = self.workspaces.marked(&self.space, snapshots)?.into_iter();
        Ok(SnapshotList {
            items: marked.map(MarkedSnapshot::info).collect(),
            truncated,
        })
    }

    /// One of this workspace's own.
    pub fn snapshot_info(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        Ok(self.snapshot_marked(id)?.info())
    }

    pub(super) fn snapshot_marked(&self, id: &SnapshotId) -> Result<MarkedSnapshot> {
        let snapshot = self.snapshot(id)?;
        let marked = self
            .workspaces
            .marked(&self.space, vec![snapshot.clone()])?;
        Ok(marked.into_iter().next().unwrap_or(MarkedSnapshot {
            snapshot,
            verified_at: None,
        }))
    }
}

impl MarkedSnapshot {
    fn info(self) -> SnapshotInfo {
        snapshot_info(self.snapshot, self.verified_at)
    }
}

/// Of everything that a snapshot holds.
pub(super) fn digest(snapshot: &Snapshot) -> String {
    snapshot.manifest.whole.to_string()
}

fn judged(listed: Vec<Snapshot>, verified: &Verified) -> Vec<VerifiedSnapshot> {
    let hurt: HashSet<&SnapshotId> = verified.hurts.iter().map(|it| &it.snapshot).collect();
    let all_named = verified.hurts.len() < HURTS_NAMED;
    listed
        .into_iter()
        .map(|it| VerifiedSnapshot {
            manifest: digest(&it),
            sound: !hurt.contains(&it.id),
            snapshot_id: it.id,
            project_id: it.project,
        })
        .filter(|it| !it.sound || all_named)
        .collect()
}
