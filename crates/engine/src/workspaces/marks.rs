//! Which snapshots were read whole and found sound. What was found is in the ledger; here it is
//! held against the snapshots that are there.

use std::collections::HashSet;

use glovebox_model::{Result, SnapshotId, SpaceId};
use glovebox_snapshot::{Snapshot, Verified, Watch};
use glovebox_store::{Actor, VerifiedSnapshot};
use jiff::Timestamp;

use super::Workspace;
use crate::engine::Engine;

/// Verification names so many that are hurt. When there may be more, nobody knows which are not.
const HURTS_NAMED: usize = 1000;

/// A snapshot, and when it was last found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedSnapshot {
    pub snapshot: Snapshot,
    pub verified_at: Option<Timestamp>,
}

impl Engine {
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
        self.store()?.mark_snapshots(space, by, &seen)?;
        Ok(verified)
    }

    /// With their marks. A mark is of one manifest: another that stands there now has none.
    pub(crate) fn marked(
        &self,
        space: &SpaceId,
        snapshots: Vec<Snapshot>,
    ) -> Result<Vec<MarkedSnapshot>> {
        let ids = snapshots.iter().map(|it| &it.id);
        let mut marks = self.store()?.snapshot_marks(space, ids)?;
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
    /// The newest first, so many of them; and whether there are more.
    pub fn snapshots_marked(&self, most: usize) -> Result<(Vec<MarkedSnapshot>, bool)> {
        let mut snapshots = self.snapshots()?;
        let more = snapshots.len() > most;
        snapshots.truncate(most);
        Ok((self.engine.marked(&self.space, snapshots)?, more))
    }

    /// One of this workspace's own.
    pub fn snapshot_marked(&self, id: &SnapshotId) -> Result<MarkedSnapshot> {
        let snapshot = self.snapshot(id)?;
        let marked = self.engine.marked(&self.space, vec![snapshot.clone()])?;
        Ok(marked.into_iter().next().unwrap_or(MarkedSnapshot {
            snapshot,
            verified_at: None,
        }))
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
