//! What had begun to change a workspace when its process was killed. Each has a note in the state
//! directory from before its first change to after its last, under a name that follows from the
//! workspace: whoever comes next finds it before anything else is done there, and finishes it.

use std::path::PathBuf;
use std::time::Duration;

use glovebox_model::{
    Code, Error, ExecId, ProjectId, Result, SnapshotId, SpaceId, Stage, WorkspaceRef,
};
use glovebox_snapshot::Restore;
use glovebox_workspace::change::RecoveredChange;
use glovebox_workspace::files::{self, Durability, WriteOptions};
use glovebox_workspace::{Dir, FsError, FsErrorKind, Occupied, Project, RelPath};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Workspace;
use crate::digest;
use crate::workspaces::Workspaces;

const NOTES: &str = "unfinished";
const PRIVATE_DIR: u32 = 0o700;
const PRIVATE: u32 = 0o600;
const AGAIN: Duration = Duration::from_millis(5);
const MOST: usize = 10_000;
const BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub(super) enum Deed {
    Restore { snapshot_id: SnapshotId },
    Keep { exec_id: ExecId },
}

#[derive(Debug, Serialize, Deserialize)]
struct Unfinished {
    space_id: SpaceId,
    project_id: ProjectId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adopted: Option<PathBuf>,
    #[serde(flatten)]
    deed: Deed,
}

/// A change that is under way. Dropped without being done, its note stays.
#[must_use]
#[derive(Debug)]
pub(super) struct Begun {
    notes: Dir,
    name: RelPath,
}

impl Begun {
    pub(super) fn done(self) -> Result<()> {
        self.notes.remove_all(&self.name).map_err(noting)
    }
}

impl Workspace<'_> {
    /// With the workspace to itself. What an earlier one left is replaced: it was finished, or this
    /// one makes it void.
    pub(super) fn begin(&self, deed: Deed) -> Result<Begun> {
        let (layout, place) = (
            self.workspaces.instance.layout(&SpaceId::local())?,
            notes()?,
        );
        let root = layout.root();
        root.mkdir_all(&place, PRIVATE_DIR).map_err(noting)?;
        let notes = root.open_dir(&place).map_err(noting)?;
        let name = name_of(&self.space, self.project.id())?;
        let unfinished = Unfinished {
            space_id: self.space.clone(),
            project_id: self.project.id().clone(),
            adopted: self.adopted.clone(),
            deed,
        };
        let text = serde_json::to_vec(&unfinished).map_err(|error| internal(&error.to_string()))?;
        let options = WriteOptions {
            mode: Some(PRIVATE),
            durability: Durability::Synced,
            ..WriteOptions::default()
        };
        let written = files::write(&notes, &name, &mut text.as_slice(), &options);
        written.map_err(|error| error.at(Stage::Open))?;
        Ok(Begun { notes, name })
    }

    /// Finishes what was begun here, if anything was. The workspace is occupied by the caller.
    pub(super) fn finish(&self) -> Result<()> {
        let Some((notes, name, unfinished)) =
            self.workspaces.unfinished(&self.space, &self.project)?
        else {
            return Ok(());
        };
        match &unfinished.deed {
            Deed::Restore { snapshot_id } => self.finish_restore(snapshot_id)?,
            Deed::Keep { exec_id } => self.finish_keep(exec_id)?,
        }
        notes.remove_all(&name).map_err(noting)
    }

    /// Whatever it was, it does not matter any more.
    pub(super) fn forget_unfinished(&self) -> Result<()> {
        match self.workspaces.unfinished(&self.space, &self.project)? {
            Some((notes, name, _)) => notes.remove_all(&name).map_err(noting),
            None => Ok(()),
        }
    }

    fn finish_restore(&self, id: &SnapshotId) -> Result<()> {
        let store = self.workspaces.snapshots(&self.space)?;
        let restored = store.restore(id, self.work()?, Restore { watch: &mut () });
        match restored {
            Ok(_) => self.note("workspace.restored", json!({ "snapshot_id": id, "after": "a crash" })),
            // It was removed since: what stands there is all there is.
            Err(error) if error.code == Code::NotFound => {
                self.note("workspace.half_restored", json!({ "snapshot_id": id }))
            }
            Err(error) => Err(error
                .hint("a restore of this workspace was cut off, and cannot be finished")
                .hint("restore another snapshot of it, or reset it: `glovebox snapshot ls`, `glovebox workspace reset`")),
        }
    }

    fn finish_keep(&self, exec: &ExecId) -> Result<()> {
        let Some(held) = self.project.held(exec)? else {
            return Ok(());
        };
        let recovered = held.recover(self.work()?);
        match recovered.map_err(|error| error.at(Stage::Open))? {
            RecoveredChange::Completed => {
                self.note_settled(exec, "changes.kept", json!({ "after": "a crash" }))?;
                self.project.let_go(exec).map(drop)
            }
            // They wait as before.
            RecoveredChange::Nothing | RecoveredChange::RolledBack { .. } => Ok(()),
        }
    }
}

impl Workspaces {
    /// A place in a workspace for an exec or a writer: never in one that is half of something.
    pub(super) fn enter(
        &self,
        space: &SpaceId,
        which: &WorkspaceRef,
        project: &Project,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Occupied> {
        loop {
            let inside = project.enter(is_wanted)?;
            if self.unfinished(space, project)?.is_none() {
                return Ok(inside);
            }
            // Whoever began it is gone, since we are inside. Between the two locks somebody else may
            // come, and finish it just as well.
            drop(inside);
            match self.open(space, which, None)?.occupy() {
                Err(error) if error.code != Code::Conflict => return Err(error),
                _ => std::thread::sleep(AGAIN),
            }
        }
    }

    fn unfinished(
        &self,
        space: &SpaceId,
        project: &Project,
    ) -> Result<Option<(Dir, RelPath, Unfinished)>> {
        let Some(notes) = self.notes()? else {
            return Ok(None);
        };
        let name = name_of(space, project.id())?;
        let text = match notes.read(&name, BYTES) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(None),
            text => text.map_err(noting)?,
        };
        let unfinished = serde_json::from_slice(&text).map_err(|error| {
            internal("a note of unfinished work cannot be read").caused_by(error)
        })?;
        Ok(Some((notes, name, unfinished)))
    }

    /// Those of all spaces, in the state directory itself, which every exec looks into: the handle is
    /// one that is open already.
    fn notes(&self) -> Result<Option<Dir>> {
        let layout = self.instance.layout(&SpaceId::local())?;
        match layout.root().open_dir(&notes()?) {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            notes => notes.map(Some).map_err(noting),
        }
    }

    /// Everything that is unfinished anywhere and that nobody is at. One that cannot be finished keeps
    /// none of the others from being.
    pub(crate) fn finish_all(&self) -> Result<Vec<(ProjectId, Result<()>)>> {
        let Some(notes) = self.notes()? else {
            return Ok(Vec::new());
        };
        let mut finished = Vec::new();
        for entry in notes.list(MOST).map_err(noting)?.entries {
            let note = RelPath::new(entry.name.as_bytes())
                .ok()
                .and_then(|name| notes.read(&name, BYTES).ok())
                .and_then(|text| serde_json::from_slice::<Unfinished>(&text).ok());
            let Some(note) = note else { continue };
            let which = match note.adopted {
                Some(path) => WorkspaceRef::Adopted(path),
                None => WorkspaceRef::Project(note.project_id.clone()),
            };
            // One that is another's by now has no note under its name, so nothing is done to it.
            let done = self
                .open(&note.space_id, &which, None)
                .and_then(|workspace| workspace.occupy().map(drop));
            finished.push((note.project_id, done));
        }
        Ok(finished)
    }
}

fn name_of(space: &SpaceId, project: &ProjectId) -> Result<RelPath> {
    let name = digest::config_hash(json!({ "space": space, "project": project }));
    RelPath::new(name).map_err(|_| internal("a name of our own is none"))
}

fn notes() -> Result<RelPath> {
    RelPath::new(NOTES).map_err(|_| internal("a name of our own is none"))
}

fn noting(error: FsError) -> Error {
    error.at(Stage::Open)
}

fn internal(message: &str) -> Error {
    Error::new(Code::Internal, Stage::Open, message.to_owned())
}
