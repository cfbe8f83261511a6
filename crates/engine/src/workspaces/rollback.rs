//! Going back to a state that is known to be good: a snapshot that was read whole and found sound.

use glovebox_api::RolledBackWorkspace;
use glovebox_model::{Code, Error, Result, SnapshotId, Stage};
use glovebox_snapshot::{Snapshot, Watch};
use jiff::Timestamp;
use serde_json::json;

use super::Workspace;
use super::marks::{MarkedSnapshot, digest};
use super::snapshots::Present;

/// Snapshots whose marks are looked for at once.
const LOOKED_AT: usize = 100;

impl Workspace<'_> {
    /// Makes it what a verified snapshot says: this one, or the newest.
    pub fn rollback(
        &self,
        to: Option<&SnapshotId>,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<RolledBackWorkspace> {
        let _alone = self.take_over()?;
        let (to, verified_at) = match to {
            Some(id) => known_good(self.snapshot_marked(id)?)?,
            None => self.newest_verified()?,
        };
        let restored = self.restore_to(&to, present, watch)?;
        let before = restored.before.as_ref().map(|id| self.snapshot(id));
        let done = RolledBackWorkspace {
            verified_at,
            state_before: before.transpose()?.as_ref().map(digest),
            state_after: digest(&to),
            snapshot_id: restored.snapshot_id,
            before: restored.before,
            restored: restored.restored,
        };
        self.note_rolled_back(&done)?;
        Ok(done)
    }

    /// What was only kept because something else was restored is where somebody wanted away from.
    fn newest_verified(&self) -> Result<(Snapshot, Timestamp)> {
        let mut snapshots = self.snapshots()?;
        snapshots.retain(|it| it.before_restore.is_none());
        for some in snapshots.chunks(LOOKED_AT) {
            for it in self.workspaces.marked(&self.space, some.to_vec())? {
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

    fn note_rolled_back(&self, done: &RolledBackWorkspace) -> Result<()> {
        let project = self.project.id();
        let about = vec![
            format!("project:{project}"),
            format!("snapshot:{}", done.snapshot_id),
        ];
        let details = json!({
            "project_id": project,
            "snapshot_id": done.snapshot_id,
            "verified_at": done.verified_at,
            "before": done.before,
            "state": { "before": done.state_before, "after": done.state_after },
        });
        let (store, by) = (self.workspaces.instance.store()?, self.by.as_ref());
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
