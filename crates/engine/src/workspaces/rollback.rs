//! Going back to a state that is known to be good: a snapshot that was read whole and found sound.

use glovebox_model::{Code, Error, Result, SnapshotId, Stage};
use glovebox_snapshot::{Snapshot, Watch};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::Workspace;
use super::marks::{MarkedSnapshot, digest};
use super::snapshots::{Present, Wound};

/// Snapshots whose marks are looked for at once.
const LOOKED_AT: usize = 100;

/// A workspace that is at a verified snapshot again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    #[serde(flatten)]
    pub wound: Wound,
    /// When that snapshot was found sound.
    pub verified_at: Timestamp,
    /// Digest of all that stood there before; none when it was not kept.
    pub state_before: Option<String>,
    /// Digest of all that stands there now.
    pub state_after: String,
}

impl Workspace<'_> {
    /// Makes it what a verified snapshot says: this one, or the newest.
    pub fn rollback(
        &self,
        to: Option<&SnapshotId>,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<RolledBack> {
        let _alone = self.take_over()?;
        let (to, verified_at) = match to {
            Some(id) => known_good(self.snapshot_marked(id)?)?,
            None => self.newest_verified()?,
        };
        let wound = self.wind_back(&to, present, watch)?;
        let before = wound.before.as_ref().map(|id| self.snapshot(id));
        let done = RolledBack {
            verified_at,
            state_before: before.transpose()?.as_ref().map(digest),
            state_after: digest(&to),
            wound,
        };
        self.note_rolled_back(&done)?;
        Ok(done)
    }

    /// What was only kept because something else was restored is where somebody wanted away from.
    fn newest_verified(&self) -> Result<(Snapshot, Timestamp)> {
        let mut snapshots = self.snapshots()?;
        snapshots.retain(|it| it.before_restore.is_none());
        for some in snapshots.chunks(LOOKED_AT) {
            for it in self.engine.marked(&self.space, some.to_vec())? {
                if let Some(at) = it.verified_at {
                    return Ok((it.snapshot, at));
                }
            }
        }
        let message = match snapshots.is_empty() {
            true => "there is no snapshot of this workspace to go back to",
            false => "no snapshot of this workspace is verified",
        };
        let error = Error::new(Code::NotFound, Stage::Resolve, message);
        Err(match snapshots.is_empty() {
            true => error.hint("take one while all is well: `glovebox snapshot take`"),
            false => error
                .hint("verify them, and try again: `glovebox snapshot verify`")
                .hint("without that: `glovebox snapshot restore ID` goes back to any"),
        })
    }

    fn note_rolled_back(&self, done: &RolledBack) -> Result<()> {
        let project = self.project.id();
        let about = vec![
            format!("project:{project}"),
            format!("snapshot:{}", done.wound.to),
        ];
        let details = json!({
            "project_id": project,
            "snapshot_id": done.wound.to,
            "verified_at": done.verified_at,
            "before": done.wound.before,
            "state": { "before": done.state_before, "after": done.state_after },
        });
        let (store, by) = (self.engine.store()?, self.by.as_ref());
        store.note_about(&self.space, "workspace.rolled_back", by, about, details)?;
        Ok(())
    }
}

fn known_good(it: MarkedSnapshot) -> Result<(Snapshot, Timestamp)> {
    if let Some(at) = it.verified_at {
        return Ok((it.snapshot, at));
    }
    let id = &it.snapshot.id;
    let message = format!("snapshot `{id}` is not verified");
    Err(Error::new(Code::Conflict, Stage::Resolve, message)
        .hint("verify it, and try again: `glovebox snapshot verify`")
        .hint(format!(
            "without that: `glovebox snapshot restore {id}` goes back to any"
        )))
}
