//! A workspace of the state directory, or the current directory.

use std::path::Path;

use glovebox_engine::{Engine, Present, Quota, SnapshotAsk};
use glovebox_model::{
    Bytes, Code, Count, Error, ExecId, ProjectId, Result, SnapshotId, SpaceId, Stage, WorkspaceRef,
};
use glovebox_serve::answer::{
    DecidedAnswer, DiffAnswer, ForkedWorkspace, ResetAnswer, RestoredWorkspace,
    RolledBackWorkspace, SeedAnswer, SnapshotInfo, SnapshotList, TakenSnapshot, UndoneExec,
    WaitingAnswer, Workspace as WorkspaceInfo,
};
use glovebox_snapshot::DiffLimits;
use glovebox_workspace::{Dir, Reset};

use super::{LISTED, Missing, Workspace};
use crate::args::Global;
use crate::context::Context;
use crate::meter::Meter;

#[derive(Debug)]
pub(super) struct Here<'g> {
    global: &'g Global,
    engine: Engine,
    which: WorkspaceRef,
}

impl<'g> Here<'g> {
    pub(super) fn open(global: &'g Global, which: WorkspaceRef, missing: Missing) -> Result<Self> {
        let context = Context::new(global);
        if let (WorkspaceRef::Project(project), Missing::Refuse) = (&which, missing) {
            // Nothing is made only to be read.
            if context.place()?.open_if_there()?.is_none() {
                return Err(unknown(project));
            }
        }
        let engine = context.engine()?;
        engine.store()?;
        context.report_recovered(engine.recovered());
        let here = Self {
            global,
            engine,
            which,
        };
        here.find(missing)?;
        Ok(here)
    }

    /// As a server would tell it: programs name files by what they were given.
    fn masked(&self, answer: WaitingAnswer) -> Result<WaitingAnswer> {
        let failed = |error: serde_json::Error| {
            let message = "what is secret in the changes cannot be hidden";
            Error::new(Code::Internal, Stage::Judge, message).caused_by(error)
        };
        let mut shown = serde_json::to_value(&answer).map_err(failed)?;
        match self.engine.hide(&SpaceId::local(), &mut shown)? {
            true => serde_json::from_value(shown).map_err(failed),
            false => Ok(answer),
        }
    }

    /// As a first exec would find it, when it may be made.
    fn find(&self, missing: Missing) -> Result<()> {
        let (WorkspaceRef::Project(project), Missing::Make) = (&self.which, missing) else {
            return self.workspace().map(drop);
        };
        match self.workspace() {
            Err(error) if error.code == Code::NotFound => {}
            found => return found.map(drop),
        }
        self.engine.layout(&SpaceId::local())?.project(project)?;
        let config = Context::new(self.global).config()?;
        match config.workspace().template {
            Some(_) => self.workspace()?.seed(None).map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn workspace(&self) -> Result<glovebox_engine::Workspace<'_>> {
        let found = self.engine.workspace(&SpaceId::local(), &self.which, None);
        found.map_err(|error| match (&self.which, error.code) {
            (WorkspaceRef::Project(project), Code::NotFound) => unknown(project),
            _ => error,
        })
    }

    pub(super) fn project_id(&self) -> Result<ProjectId> {
        Ok(self.workspace()?.project().id().clone())
    }

    fn meter(&self, what: &'static str) -> Result<Meter> {
        Meter::start(self.global, what)
    }
}

pub(crate) fn unknown(project: &ProjectId) -> Error {
    let message = format!("there is no workspace `{project}`");
    Error::new(Code::NotFound, Stage::Parse, message)
        .hint("`glovebox workspace ls` lists those that are there")
        .hint(format!(
            "the first `glovebox run --project {project}` makes it"
        ))
}

/// A directory that somebody at this machine named.
pub(crate) fn directory(path: &Path) -> Result<Dir> {
    Dir::open_trusted(path).map_err(|error| {
        let shown = path.display();
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("cannot open the directory `{shown}`"),
        )
        .caused_by(error)
    })
}

impl Workspace for Here<'_> {
    fn info(&self) -> Result<WorkspaceInfo> {
        let workspace = self.workspace()?;
        let config = Context::new(self.global).config()?;
        let limits = config.workspace();
        let quota = Quota {
            bytes: limits.max_bytes.map(Bytes::get),
            files: limits.max_files.map(Count::get),
        };
        WorkspaceInfo::measure(&workspace, quota)
    }

    fn seed(&self, from: Option<&Path>) -> Result<SeedAnswer> {
        let template = from.map(directory).transpose()?;
        Ok(self.workspace()?.seed(template.as_ref())?.into())
    }

    fn reset(&self, what: Reset) -> Result<ResetAnswer> {
        Ok(self.workspace()?.reset(what)?.into())
    }

    fn undo(&self, exec: Option<&ExecId>, present: Present) -> Result<UndoneExec> {
        let meter = &mut self.meter("undoing")?;
        let undone = self.workspace()?.undo_over(exec, present, meter)?;
        Ok(undone.into())
    }

    fn rollback(&self, to: Option<&SnapshotId>, present: Present) -> Result<RolledBackWorkspace> {
        let meter = &mut self.meter("rolling back")?;
        Ok(self.workspace()?.rollback(to, present, meter)?.into())
    }

    fn fork(&self, from: Option<&SnapshotId>, into: &ProjectId) -> Result<ForkedWorkspace> {
        let workspace = self.workspace()?;
        let forked = workspace.fork(from, into, &mut self.meter("forking")?)?;
        Ok(forked.into())
    }

    fn changes(&self, exec: &ExecId) -> Result<WaitingAnswer> {
        self.masked(self.workspace()?.changes(exec)?.into())
    }

    fn keep(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        Ok(self.workspace()?.keep(exec, false)?.into())
    }

    fn discard(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        Ok(self.workspace()?.discard(exec)?.into())
    }

    fn apply(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        // Whoever types it is the person who agrees.
        Ok(self.workspace()?.apply(exec, false)?.into())
    }

    fn take(&self, ask: SnapshotAsk) -> Result<TakenSnapshot> {
        let taken = self.workspace()?.take(ask, &mut self.meter("reading")?)?;
        Ok(taken.into())
    }

    fn snapshots(&self) -> Result<SnapshotList> {
        Ok(self.workspace()?.snapshots_marked(LISTED)?.into())
    }

    fn snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        Ok(self.workspace()?.snapshot_marked(id)?.into())
    }

    fn diff(&self, from: Option<&SnapshotId>, to: Option<&SnapshotId>) -> Result<DiffAnswer> {
        let workspace = self.workspace()?;
        let mut meter = self.meter("comparing")?;
        let diff = workspace.diff(from, to, DiffLimits::default(), &mut meter)?;
        Ok(diff.into())
    }

    fn restore(&self, id: &SnapshotId, present: Present) -> Result<RestoredWorkspace> {
        let wound = self
            .workspace()?
            .restore_over(id, present, &mut self.meter("restoring")?)?;
        Ok(wound.into())
    }

    fn remove_snapshot(&self, id: &SnapshotId) -> Result<()> {
        self.workspace()?.remove_snapshot(id)
    }
}
