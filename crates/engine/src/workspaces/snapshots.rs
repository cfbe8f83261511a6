//! Snapshots of one workspace: taken, compared, restored, forked, undone.

use std::ops::ControlFlow;

use glovebox_api::{
    DiffAnswer, ForkedWorkspace, RestoredWorkspace, SnapshotRequest, TakenSnapshot, UndoneExec,
};
use glovebox_model::{Code, Error, ExecId, Millis, ProjectId, Result, SnapshotId, Stage};
use glovebox_snapshot::{
    Collect, CollectionReport, DiffLimits, Keep, Restore, Side, Snapshot, Snapshots, Take,
    TakeLimits, Taken, Watch,
};
use serde_json::json;

use super::Workspace;
use super::answer::{diff_answer, restore_counts, taken_snapshot};
use super::unfinished::Deed;
use crate::stage;
use crate::visibility::Viewer;
use crate::workspaces::Workspaces;

/// What becomes of what stands in a workspace that is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Present {
    /// It is kept as a snapshot; when none can be taken, nothing is done.
    #[default]
    Snapshot,
    /// It is lost. A program can leave a tree that no snapshot can be taken of.
    Lost,
}

const BEFORE: &str = "before ";

impl Workspace<'_> {
    pub fn take(&self, ask: SnapshotRequest, watch: &mut dyn Watch) -> Result<TakenSnapshot> {
        let _alone = match ask.live {
            true => None,
            false => Some(self.occupy().map_err(|error| {
                error.hint("`--live` takes it all the same, with files that may be half written")
            })?),
        };
        let taken = self.take_now(ask, watch)?;
        self.note(
            "snapshot.taken",
            json!({ "snapshot_id": taken.snapshot.id, "label": taken.snapshot.label,
                "files": taken.snapshot.counts.files, "stored_bytes": taken.stored_bytes }),
        )?;
        Ok(taken_snapshot(self.as_told(taken)))
    }

    /// What was stored already tells an agent what others hold: it gets what its snapshot takes where
    /// nothing is.
    fn as_told(&self, taken: Taken) -> Taken {
        let snapshot = self.without_others(taken.snapshot);
        if self.agent().is_none() {
            return Taken { snapshot, ..taken };
        }
        let (counts, manifest) = (&snapshot.counts, snapshot.manifest.bytes);
        Taken {
            stored_bytes: counts.bytes + manifest,
            new_chunks: Taken::most_chunks(counts.files + 2, counts.bytes + manifest),
            snapshot,
            ..taken
        }
    }

    /// The snapshot that it was compared with is not named where it is not there for who looks.
    fn without_others(&self, mut snapshot: Snapshot) -> Snapshot {
        if self.agent().is_some()
            && let Some(parent) = &snapshot.parent
        {
            let store = self.workspaces.snapshots(&self.space);
            let parent = store.and_then(|store| store.get(parent));
            if !parent.is_ok_and(|it| self.sees(&it)) {
                snapshot.parent = None;
            }
        }
        snapshot
    }

    fn take_now(&self, ask: SnapshotRequest, watch: &mut dyn Watch) -> Result<Taken> {
        let take = Take {
            label: ask.label,
            note: ask.note,
            agent_id: self.agent(),
            limits: self.workspaces.take_limits(),
            ..Take::new(self.project.id().clone(), watch)
        };
        self.workspaces
            .snapshots(&self.space)?
            .take(self.work()?, take)
    }

    /// The newest first.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let mut all = self.all_snapshots()?;
        all.retain(|it| self.sees(it));
        Ok(all.into_iter().map(|it| self.without_others(it)).collect())
    }

    pub(super) fn all_snapshots(&self) -> Result<Vec<Snapshot>> {
        let listed = self.workspaces.snapshots(&self.space)?;
        Ok(listed.list(Some(self.project.id()))?.snapshots)
    }

    /// The agent that looks, whose snapshots are its own.
    fn agent(&self) -> Option<String> {
        let eyes = self.eyes.as_ref();
        eyes.and_then(Viewer::agent).map(str::to_owned)
    }

    /// One of this workspace's own.
    pub fn snapshot(&self, id: &SnapshotId) -> Result<Snapshot> {
        let snapshot = self.workspaces.snapshots(&self.space)?.get(id)?;
        if !self.sees(&snapshot) {
            let message = format!("there is no snapshot `{id}`");
            return Err(Error::new(Code::NotFound, Stage::Resolve, message));
        }
        if snapshot.project != *self.project.id() {
            let message = format!("`{id}` is a snapshot of workspace `{}`", snapshot.project);
            return Err(Error::new(Code::InvalidArgument, Stage::Resolve, message)
                .hint("`glovebox snapshot ls` lists those of a workspace")
                .hint(
                    "a fork makes a new workspace from any snapshot: `glovebox workspace fork`",
                ));
        }
        Ok(self.without_others(snapshot))
    }

    /// Puts everything back as it was.
    pub fn restore(
        &self,
        id: &SnapshotId,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<RestoredWorkspace> {
        let _alone = self.take_over()?;
        let restored = self.restore_to(&self.snapshot(id)?, present, watch)?;
        self.note(
            "workspace.restored",
            json!({ "snapshot_id": id, "before": restored.before }),
        )?;
        Ok(restored)
    }

    pub(super) fn restore_to(
        &self,
        to: &Snapshot,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<RestoredWorkspace> {
        self.fits(&to.counts)?;
        let id = &to.id;
        let before = match present {
            Present::Snapshot => Some(self.keep_present(id, watch)?),
            Present::Lost => None,
        };
        let begun = self.begin(Deed::Restore {
            snapshot_id: id.clone(),
        })?;
        // From here on it is finished, whoever has gone away meanwhile.
        let mut steady = |progress| {
            let _ = watch.on(progress);
            ControlFlow::Continue(())
        };
        let (store, work) = (self.workspaces.snapshots(&self.space)?, self.work()?);
        let restore = Restore { watch: &mut steady };
        let restored = match (store.restore(id, work, restore), &before) {
            (Ok(restored), _) => restored,
            // The note stays, and nobody works on half of it.
            (Err(error), None) => {
                return Err(error.hint(
                    "the workspace is half restored: restore another snapshot of it, or reset it",
                ));
            }
            (Err(error), Some(before)) => {
                // As it was, if that can be; else the note stays here too.
                let back = store.restore(before, work, Restore { watch: &mut () });
                return Err(match back.and_then(|_| begun.done()) {
                    Ok(()) => error.hint("the workspace is as it was before"),
                    Err(_) => error.hint(format!(
                        "what stood there before is kept: `glovebox snapshot restore {before}`"
                    )),
                });
            }
        };
        begun.done()?;
        Ok(RestoredWorkspace {
            snapshot_id: id.clone(),
            before,
            restored: restore_counts(restored),
        })
    }

    fn keep_present(&self, id: &SnapshotId, watch: &mut dyn Watch) -> Result<SnapshotId> {
        let take = Take {
            note: Some(format!("{BEFORE}the restore of {id}")),
            agent_id: self.agent(),
            before_restore: Some(id.clone()),
            limits: self.workspaces.take_limits(),
            ..Take::new(self.project.id().clone(), watch)
        };
        let taken = self
            .workspaces
            .snapshots(&self.space)?
            .take(self.work()?, take);
        match taken {
            Ok(taken) => Ok(taken.snapshot.id),
            Err(error) if error.code == Code::Canceled => Err(error),
            Err(error) => Err(error
                .hint("what stands there now is kept as a snapshot first, and that cannot be taken")
                .hint("without one: `--no-snapshot-before` (`?snapshot_before=false`); what stands there now is lost then")),
        }
    }

    /// Takes back what the last exec did that a snapshot was taken before, or the named one and
    /// everything after it. Again, it goes one further.
    pub fn undo(
        &self,
        exec: Option<&ExecId>,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<UndoneExec> {
        let _alone = self.take_over()?;
        let (exec_id, to) = self.undoable(exec, present, watch)?;
        let restored = self.restore_to(&to, present, watch)?;
        let id = to.id;
        self.note(
            "workspace.undone",
            json!({ "exec_id": exec_id, "snapshot_id": id, "before": restored.before }),
        )?;
        Ok(UndoneExec {
            exec_id,
            snapshot_id: restored.snapshot_id,
            before: restored.before,
            restored: restored.restored,
        })
    }

    fn undoable(
        &self,
        exec: Option<&ExecId>,
        present: Present,
        watch: &mut dyn Watch,
    ) -> Result<(ExecId, Snapshot)> {
        let mut is_at = |id: &SnapshotId| match self.is_at(id, watch) {
            // What cannot be read is not as it was.
            Err(error) if present == Present::Lost && error.code != Code::Canceled => Ok(false),
            compared => compared,
        };
        let mut all = self.all_snapshots()?;
        // Whoever has just gone back goes further back, and not forth to where they came from.
        let came_to = all.first().and_then(|newest| newest.before_restore.clone());
        if let Some(id) = came_to
            && let Some(place) = all.iter().position(|it| it.id == id)
            && is_at(&id)?
        {
            all.drain(..=place);
        }
        let mut is_between = false;
        for snapshot in all {
            let Some(before) = snapshot.before_exec.clone() else {
                continue;
            };
            let wanted = match exec {
                Some(exec) => *exec == before,
                None => !is_at(&snapshot.id)?,
            };
            match (wanted, self.sees(&snapshot)) {
                (true, true) if is_between => return Err(anothers()),
                (true, true) => return Ok((before, snapshot)),
                // Going further back takes back what another did meanwhile.
                (true, false) if exec.is_none() => return Err(anothers()),
                (true, false) => break,
                (false, false) if exec.is_some() && !is_at(&snapshot.id)? => is_between = true,
                (false, _) => {}
            }
        }
        let message = match exec {
            Some(exec) => format!("no snapshot was taken before `{exec}`"),
            None => "there is nothing to undo: no snapshot from before an exec differs".to_owned(),
        };
        Err(Error::new(Code::NotFound, Stage::Resolve, message)
            .hint("`[workspace] snapshot_before = \"safe\"` in the configuration takes one before each exec")
            .hint("`glovebox snapshot ls` lists all; `glovebox snapshot restore ID` goes back to any"))
    }

    /// Whether the workspace is as it was then.
    fn is_at(&self, id: &SnapshotId, watch: &mut dyn Watch) -> Result<bool> {
        let (then, now) = (Side::Snapshot(id), Side::Live(self.work()?));
        let limits = DiffLimits {
            changes: 1,
            file_bytes: 0,
            text_bytes: 0,
        };
        let store = self.workspaces.snapshots(&self.space)?;
        Ok(store.diff(then, now, limits, watch)?.changes.is_empty())
    }

    /// From one side to the other; none is the workspace as it is now.
    pub fn diff(
        &self,
        from: Option<&SnapshotId>,
        to: Option<&SnapshotId>,
        limits: DiffLimits,
        watch: &mut dyn Watch,
    ) -> Result<DiffAnswer> {
        let work = self.work()?;
        for id in [from, to].into_iter().flatten() {
            self.snapshot(id)?;
        }
        let side = |id| match id {
            Some(id) => Side::Snapshot(id),
            None => Side::Live(work),
        };
        let store = self.workspaces.snapshots(&self.space)?;
        let diff = store.diff(side(from), side(to), limits, watch)?;
        Ok(diff_answer(diff))
    }

    /// A new workspace with the files of a snapshot; without one, with those that stand here now.
    pub fn fork(
        &self,
        id: Option<&SnapshotId>,
        into: &ProjectId,
        watch: &mut dyn Watch,
    ) -> Result<ForkedWorkspace> {
        let layout = self.workspaces.instance.layout(&self.space)?;
        if let Some(eyes) = &self.eyes {
            self.workspaces
                .instance
                .policy
                .ensure_may_work_on(eyes, into)?;
        }
        if layout.existing(into).is_ok() {
            let message = format!("workspace `{into}` is there already");
            return Err(Error::new(Code::Conflict, Stage::Resolve, message)
                .hint("choose another name, or remove that one first"));
        }
        let from = match id {
            Some(id) => {
                let snapshot = self.snapshot(id)?;
                self.fits_anew(&snapshot.counts)?;
                snapshot.id
            }
            None => {
                let now = SnapshotRequest {
                    note: Some(format!("{BEFORE}the fork `{into}`")),
                    ..SnapshotRequest::default()
                };
                let _alone = self.occupy()?;
                let taken = self.take_now(now, watch)?.snapshot;
                self.fits_anew(&taken.counts)?;
                taken.id
            }
        };
        let restored = layout.build(into, |project| {
            let store = self.workspaces.snapshots(&self.space)?;
            let work = project.work().ok_or_else(no_files)?;
            let restored = store.restore(&from, work, Restore { watch })?;
            stage::reached("fork");
            Ok(restored)
        })?;
        self.note(
            "workspace.forked",
            json!({ "snapshot_id": from, "into": into }),
        )?;
        Ok(ForkedWorkspace {
            project_id: into.clone(),
            snapshot_id: from,
            restored: restore_counts(restored),
        })
    }

    /// One whose record is damaged only by whoever has the state directory: nobody can tell whose it
    /// was.
    pub fn remove_snapshot(&self, id: &SnapshotId) -> Result<()> {
        match self.snapshot(id) {
            Err(error) if error.code == Code::StoreUnavailable && self.by.is_none() => {}
            found => {
                if !self.may_remove(&found?) {
                    let message =
                        format!("people took the snapshot `{id}`, or it is of an earlier version");
                    return Err(Error::new(Code::Forbidden, Stage::Resolve, message).hint(
                        "an agent removes those that it took: let a person remove this one",
                    ));
                }
            }
        }
        self.workspaces.snapshots(&self.space)?.remove(id)?;
        self.note("snapshot.removed", json!({ "snapshot_id": id }))
    }

    /// As it is before an exec starts. Other execs may run meanwhile.
    pub(super) fn before(
        &self,
        exec: &ExecId,
        agent_id: Option<String>,
        watch: &mut dyn Watch,
    ) -> Result<SnapshotId> {
        let take = Take {
            note: Some(format!("{BEFORE}{exec}")),
            before_exec: Some(exec.clone()),
            agent_id,
            limits: self.workspaces.take_limits(),
            ..Take::new(self.project.id().clone(), watch)
        };
        let taken = self
            .workspaces
            .snapshots(&self.space)?
            .take(self.work()?, take);
        let taken = taken.map_err(|error| {
            error.hint("`snapshot_before` in `[workspace]` of the configuration wants a snapshot before this exec")
        })?;
        Ok(taken.snapshot.id)
    }
}

fn anothers() -> Error {
    let message = "what another agent did here since would be undone with it";
    Error::new(Code::Conflict, Stage::Resolve, message)
        .hint("let a person undo it, or restore one of your own snapshots")
}

fn no_files() -> Error {
    Error::new(Code::Internal, Stage::Open, "a kept workspace has no files")
}

impl Workspaces {
    fn take_limits(&self) -> TakeLimits {
        let stored = self
            .instance
            .policy
            .workspace_settings()
            .snapshots_max_bytes;
        TakeLimits {
            stored_bytes: stored.map(glovebox_model::Bytes::get),
            ..TakeLimits::default()
        }
    }

    /// Whether a space has any; nothing is made by asking.
    pub(crate) fn has_snapshots(&self, space: &glovebox_model::SpaceId) -> Result<bool> {
        Snapshots::exist(self.instance.layout(space)?.root())
    }

    /// Removes the snapshots of a space that the settings keep no longer, and the chunks that
    /// nobody needs.
    pub fn collect_snapshots(&self, space: &glovebox_model::SpaceId) -> Result<CollectionReport> {
        let settings = self.instance.policy.workspace_settings();
        let keep = Keep {
            last: settings
                .snapshots_keep_last
                .map(|most| usize::try_from(most.get()).unwrap_or(usize::MAX)),
            within: settings.snapshots_keep_within.map(Millis::duration),
        };
        let collected = self.snapshots(space)?.collect(Collect {
            keep,
            ..Collect::default()
        })?;
        if !collected.removed.is_empty() {
            let details = json!({ "snapshots": collected.removed });
            self.instance
                .store()?
                .note(space, "snapshots.collected", None, details)?;
        }
        Ok(collected)
    }
}
