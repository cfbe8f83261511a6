//! One workspace, its files and its snapshots, through the API: at a server, or in this process.

mod files;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_api::client::Client;
use glovebox_api::{
    CollectAnswer, DecidedAnswer, DiffAnswer, ForkRequest, ForkedWorkspace, ResetAnswer,
    ResetRequest, RestoredWorkspace, RollbackRequest, RolledBackWorkspace, SeedAnswer,
    SnapshotInfo, SnapshotList, SnapshotRequest, TakenSnapshot, Target, UndoRequest, UndoneExec,
    VerifyAnswer, WaitingAnswer, Workspace as WorkspaceInfo, Workspaces,
};
use glovebox_model::{Code, Error, Exec, ExecId, ProjectId, Result, SnapshotId, Stage};
use glovebox_workspace::{PathError, RelPath};

use crate::args::{Global, WhichOptions};
use crate::context::Context;
use crate::progress_meter::ProgressLine;

pub(crate) use files::{Expected, Listed, Seen};

/// A directory of the caller's own has a name of this form, which nobody else may have.
const ADOPTED: &str = "cwd-";
const WORKSPACES: &str = "/v1/workspaces";
const EXECS: &str = "/v1/execs";
/// Snapshots that are listed at once.
const LISTED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Workspace {
    client: Client,
    project: ProjectId,
    progress: ProgressLine,
}

/// What becomes of what stands in a workspace that is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// It is kept as a snapshot.
    Snapshot,
    Lost,
}

/// What happens when a workspace that Glovebox would keep is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Refuse,
    Make,
}

pub(crate) fn open(global: &Global, which: &WhichOptions, missing: Missing) -> Result<Workspace> {
    let context = Context::new(global);
    let progress = ProgressLine::new(global);
    match (context.server()?, which.project.clone()) {
        (Some(client), Some(project)) => Ok(Workspace {
            client,
            project,
            progress,
        }),
        (Some(_), None) => Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "a server cannot work on a directory of this machine",
        )
        .hint("name a workspace that it keeps: `--project NAME`")
        .hint("`glovebox workspace ls` lists them")),
        (None, Some(project)) => {
            // Nothing is made only to be read.
            if missing == Missing::Refuse && !context.place()?.is_there()? {
                return Err(unknown(&project));
            }
            Ok(Workspace {
                client: context.local_api(None, &progress)?.client,
                project,
                progress,
            })
        }
        (None, None) => {
            let api = context.local_api(Some(&current()?), &progress)?;
            let project = api.project().cloned();
            let project = project.ok_or_else(|| {
                Error::new(Code::Internal, Stage::Parse, "the directory has no name")
            })?;
            Ok(Workspace {
                client: api.client,
                project,
                progress,
            })
        }
    }
}

/// By its whole path: whoever is killed in the middle leaves it for the next start to find, and that
/// one may stand elsewhere.
fn current() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| {
        let message = "cannot tell where the current directory is";
        Error::new(Code::WorkspaceRefused, Stage::Parse, message)
            .caused_by(error)
            .hint("change into a directory that is there, or use `--project NAME`")
    })
}

/// The one that an exec worked on.
pub(crate) fn of_exec(global: &Global, exec: &Exec) -> Result<Workspace> {
    let project = &exec.project_id;
    let is_own = project.as_str().starts_with(ADOPTED);
    let which = WhichOptions {
        project: (!is_own || Context::new(global).server()?.is_some()).then(|| project.clone()),
    };
    let workspace = open(global, &which, Missing::Refuse)?;
    match workspace.project == *project {
        true => Ok(workspace),
        false => {
            let id = &exec.exec_id;
            let message = format!("`{id}` worked on another directory than this one");
            Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("change into the directory that it was run in, and try again"))
        }
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

/// Something in a workspace; `.` and nothing are the workspace itself.
pub(crate) fn place(path: &OsStr) -> Result<Option<RelPath>> {
    let bytes = path.as_bytes();
    match RelPath::new(bytes) {
        Ok(path) => Ok(Some(path)),
        Err(PathError::Empty) => Ok(None),
        Err(PathError::Itself) if !bytes.windows(2).any(|two| two == b"..") => Ok(None),
        Err(error) => Err(error.at(Stage::Parse, bytes)),
    }
}

/// Something to be read or changed, which the workspace itself is not.
pub(crate) fn inside(path: &OsStr) -> Result<RelPath> {
    RelPath::new(path.as_bytes()).map_err(|error| error.at(Stage::Parse, path.as_bytes()))
}

/// The same of something that is changed: where a path with `..` in it leads, only the kernel knows.
pub(crate) fn changed(path: &OsStr) -> Result<RelPath> {
    let path = inside(path)?;
    match path.climbs() {
        false => Ok(path),
        true => {
            let message = "a path to something that is changed cannot hold `..`";
            Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("name it from the top of the workspace"))
        }
    }
}

pub(crate) fn present(is_lost: bool) -> Present {
    match is_lost {
        true => Present::Lost,
        false => Present::Snapshot,
    }
}

impl Workspace {
    fn target(&self) -> Target {
        Target::new(WORKSPACES).segment(self.project.as_str())
    }

    fn of_snapshot(&self, id: &SnapshotId) -> Target {
        self.target().segment("snapshots").segment(id.as_str())
    }

    /// One that is not there is named, with the way to have it.
    fn found<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| match error.code {
            Code::NotFound if self.is_missing() => unknown(&self.project),
            _ => error,
        })
    }

    fn is_missing(&self) -> bool {
        let info: Result<WorkspaceInfo> = self.client.get(self.target());
        info.is_err_and(|error| error.code == Code::NotFound)
    }

    /// With a line that says how far it is, and an end by Ctrl-C.
    fn long<T>(&self, what: &'static str, ask: impl FnOnce(&Client) -> Result<T>) -> Result<T> {
        let _shown = match self.client.is_remote() {
            true => None,
            false => Some(self.progress.begin(what)?),
        };
        self.found(ask(&self.client))
    }

    pub(crate) fn info(&self) -> Result<WorkspaceInfo> {
        self.found(self.client.get(self.target()))
    }

    pub(crate) fn seed(&self, from: Option<&Path>) -> Result<SeedAnswer> {
        let target = self.target().segment("seed");
        if from.is_some() && self.client.is_remote() {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "a server seeds from its own template, not from a directory of this machine",
            )
            .hint("leave out `--from`, or send the directory: `glovebox file upload DIR`"));
        }
        self.found(match from {
            Some(from) => self.client.post_directory(target, from.to_owned()),
            None => self.client.post_nothing(target),
        })
    }

    pub(crate) fn reset(&self, what: &ResetRequest) -> Result<ResetAnswer> {
        let target = self.target().segment("reset");
        self.found(self.client.post_slowly(target, what))
    }

    pub(crate) fn undo(&self, exec: Option<&ExecId>, present: Present) -> Result<UndoneExec> {
        let body = UndoRequest {
            exec_id: exec.cloned(),
        };
        let target = keeping(self.target().segment("undo"), present);
        self.long("undoing", |client| client.post_slowly(target, &body))
    }

    /// None is the newest that is verified.
    pub(crate) fn rollback(
        &self,
        to: Option<&SnapshotId>,
        present: Present,
    ) -> Result<RolledBackWorkspace> {
        let body = RollbackRequest {
            snapshot_id: to.cloned(),
        };
        let target = keeping(self.target().segment("rollback"), present);
        self.long("rolling back", |client| client.post_slowly(target, &body))
    }

    pub(crate) fn fork(
        &self,
        from: Option<&SnapshotId>,
        into: &ProjectId,
    ) -> Result<ForkedWorkspace> {
        let body = ForkRequest {
            into: into.clone(),
            snapshot_id: from.cloned(),
        };
        let target = self.target().segment("fork");
        self.long("forking", |client| client.post_slowly(target, &body))
    }

    pub(crate) fn changes(&self, exec: &ExecId) -> Result<WaitingAnswer> {
        self.client.get_slowly(of_exec_verb(exec, "changes"))
    }

    pub(crate) fn keep(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.client.post_nothing(of_exec_verb(exec, "keep"))
    }

    pub(crate) fn discard(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.client.post_nothing(of_exec_verb(exec, "discard"))
    }

    /// What a simulation wrote.
    pub(crate) fn apply(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.client.post_nothing(of_exec_verb(exec, "apply"))
    }

    pub(crate) fn take(&self, ask: &SnapshotRequest) -> Result<TakenSnapshot> {
        let target = self.target().segment("snapshots");
        self.long("reading", |client| client.post_slowly(target, ask))
    }

    pub(crate) fn snapshots(&self) -> Result<SnapshotList> {
        let target = self.target().segment("snapshots");
        self.found(self.client.get(target.query("limit", LISTED)))
    }

    pub(crate) fn snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        self.found(self.client.get(self.of_snapshot(id)))
    }

    /// None is the workspace as it is now.
    pub(crate) fn diff(
        &self,
        from: Option<&SnapshotId>,
        to: Option<&SnapshotId>,
    ) -> Result<DiffAnswer> {
        let target = self.target().segment("diff");
        let target = target.optional("from", from).optional("to", to);
        self.long("comparing", |client| client.get_slowly(target))
    }

    pub(crate) fn restore(&self, id: &SnapshotId, present: Present) -> Result<RestoredWorkspace> {
        let target = keeping(self.of_snapshot(id).segment("restore"), present);
        self.long("restoring", |client| client.post_nothing(target))
    }

    pub(crate) fn remove_snapshot(&self, id: &SnapshotId) -> Result<()> {
        self.found(self.client.delete_quietly(self.of_snapshot(id)))
    }
}

fn of_exec_verb(exec: &ExecId, verb: &str) -> Target {
    Target::new(EXECS).segment(exec.as_str()).segment(verb)
}

fn keeping(target: Target, present: Present) -> Target {
    match present {
        Present::Snapshot => target,
        Present::Lost => target.query("snapshot_before", "false"),
    }
}

/// What holds for all workspaces of a space: the local one, or the token's at a server.
#[derive(Debug)]
pub(crate) struct Space {
    client: Client,
    progress: ProgressLine,
}

impl Space {
    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn open(global: &Global) -> Result<Option<Self>> {
        let context = Context::new(global);
        let progress = ProgressLine::new(global);
        let client = match context.server()? {
            Some(client) => client,
            None if !context.place()?.is_there()? => return Ok(None),
            None => context.local_api(None, &progress)?.client,
        };
        Ok(Some(Self { client, progress }))
    }

    /// Those that Glovebox keeps, by name.
    pub(crate) fn workspaces(&self) -> Result<Workspaces> {
        self.client.get(Target::new(WORKSPACES))
    }

    /// With its inputs and artifacts.
    pub(crate) fn remove(&self, project: &ProjectId) -> Result<()> {
        let target = Target::new(WORKSPACES).segment(project.as_str());
        let removed = self.client.delete_quietly(target);
        removed.map_err(|error| match error.code {
            Code::NotFound => unknown(project),
            _ => error,
        })
    }

    pub(crate) fn collect(&self) -> Result<CollectAnswer> {
        let target = Target::new("/v1/snapshots").segment("collect");
        self.client.post_nothing(target)
    }

    pub(crate) fn verify(&self) -> Result<VerifyAnswer> {
        let target = Target::new("/v1/snapshots").segment("verify");
        let _shown = match self.client.is_remote() {
            true => None,
            false => Some(self.progress.begin("reading")?),
        };
        self.client.get_slowly(target)
    }
}
