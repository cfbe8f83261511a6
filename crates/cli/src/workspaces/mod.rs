//! One workspace, its files and its snapshots: of the state directory, or a server's. Whoever shows
//! them does not know which: answers are those of the API, byte for byte.

mod here;
mod here_files;
mod space;
mod there;
mod there_files;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use glovebox_engine::{Present, SnapshotAsk};
use glovebox_model::{
    Code, Error, Exec, ExecId, ProjectId, Result, SnapshotId, Stage, WorkspaceRef,
};
use glovebox_serve::answer::{
    CopyAnswer, DecidedAnswer, DiffAnswer, FileInfo, ForkedWorkspace, GlobAnswer, Listing,
    ReplaceAnswer, ResetAnswer, RestoredWorkspace, RolledBackWorkspace, SearchAnswer, SeedAnswer,
    SnapshotInfo, SnapshotList, TakenSnapshot, UndoneExec, UnpackAnswer, WaitingAnswer,
    WatchChange, Workspace as WorkspaceInfo,
};
use glovebox_workspace::{PathError, RelPath, Reset};

use crate::args::{ArchiveFormat, ByteRange, Global, WhichOptions};
use crate::context::Context;

pub(crate) use here::{directory, unknown};
pub(crate) use space::Space;

use here::Here;
use there::There;

/// A directory of the caller's own has a name of this form, which nobody else may have.
const ADOPTED: &str = "cwd-";
const WORKSPACES: &str = "/v1/workspaces";
/// Snapshots and workspaces that are listed at once.
const LISTED: usize = 10_000;

pub(crate) trait Workspace: Files {
    fn info(&self) -> Result<WorkspaceInfo>;
    fn seed(&self, from: Option<&Path>) -> Result<SeedAnswer>;
    fn reset(&self, what: Reset) -> Result<ResetAnswer>;
    fn undo(&self, exec: Option<&ExecId>, present: Present) -> Result<UndoneExec>;
    /// None is the newest that is verified.
    fn rollback(&self, to: Option<&SnapshotId>, present: Present) -> Result<RolledBackWorkspace>;
    fn fork(&self, from: Option<&SnapshotId>, into: &ProjectId) -> Result<ForkedWorkspace>;
    fn changes(&self, exec: &ExecId) -> Result<WaitingAnswer>;
    fn keep(&self, exec: &ExecId) -> Result<DecidedAnswer>;
    fn discard(&self, exec: &ExecId) -> Result<DecidedAnswer>;
    /// What a simulation wrote.
    fn apply(&self, exec: &ExecId) -> Result<DecidedAnswer>;
    fn take(&self, ask: SnapshotAsk) -> Result<TakenSnapshot>;
    fn snapshots(&self) -> Result<SnapshotList>;
    fn snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo>;
    /// None is the workspace as it is now.
    fn diff(&self, from: Option<&SnapshotId>, to: Option<&SnapshotId>) -> Result<DiffAnswer>;
    fn restore(&self, id: &SnapshotId, present: Present) -> Result<RestoredWorkspace>;
    fn remove_snapshot(&self, id: &SnapshotId) -> Result<()>;
}

/// A path that is left out is the workspace itself.
pub(crate) trait Files {
    fn list(&self, path: Option<&RelPath>, page: &ListAsk) -> Result<Listing>;
    fn read(&self, path: &RelPath, range: Option<ByteRange>, out: &mut dyn Write) -> Result<()>;
    fn write(&self, path: &RelPath, source: File, ask: &WriteAsk) -> Result<FileInfo>;
    fn stat(&self, path: Option<&RelPath>) -> Result<FileInfo>;
    fn mkdir(&self, path: &RelPath, parents: bool) -> Result<FileInfo>;
    fn remove(&self, path: &RelPath, recursive: bool) -> Result<()>;
    fn rename(&self, paths: &MoveAsk) -> Result<FileInfo>;
    fn copy(&self, paths: &MoveAsk) -> Result<CopyAnswer>;
    fn grep(&self, ask: &GrepAsk) -> Result<SearchAnswer>;
    fn glob(&self, ask: &GlobAsk) -> Result<GlobAnswer>;
    fn replace(&self, path: &RelPath, ask: &ReplaceAsk) -> Result<ReplaceAnswer>;
    /// Until the listener wants no more.
    fn watch(&self, path: Option<&RelPath>, listener: &mut Listener<'_>) -> Result<()>;
    fn upload(&self, path: Option<&RelPath>, archive: File) -> Result<UnpackAnswer>;
    fn download(
        &self,
        path: Option<&RelPath>,
        format: ArchiveFormat,
        out: &mut dyn Write,
    ) -> Result<()>;
}

/// Is told what happens; false ends it.
pub(crate) type Listener<'l> = dyn FnMut(Seen) -> Result<bool> + 'l;

#[derive(Debug)]
pub(crate) enum Seen {
    Change(WatchChange),
    /// Some were lost: look at the tree anew.
    Overflow,
    /// There are more directories than are watched.
    Partial,
    /// The directory is gone.
    Ended,
}

#[derive(Debug)]
pub(crate) struct ListAsk {
    pub(crate) depth: u16,
    pub(crate) limit: u16,
    pub(crate) after: Option<String>,
}

#[derive(Debug)]
pub(crate) struct WriteAsk {
    pub(crate) mode: Option<u32>,
    pub(crate) condition: Expected,
}

#[derive(Debug)]
pub(crate) enum Expected {
    Anything,
    Nothing,
    /// The file with this mark.
    Marked(String),
}

#[derive(Debug)]
pub(crate) struct MoveAsk {
    pub(crate) from: RelPath,
    pub(crate) to: RelPath,
    pub(crate) overwrite: bool,
    pub(crate) parents: bool,
}

#[derive(Debug)]
pub(crate) struct GrepAsk {
    pub(crate) pattern: String,
    pub(crate) regex: bool,
    pub(crate) ignore_case: bool,
    pub(crate) path: Option<RelPath>,
    pub(crate) context: u8,
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) hidden: bool,
    pub(crate) limit: u16,
}

#[derive(Debug)]
pub(crate) struct GlobAsk {
    pub(crate) pattern: String,
    pub(crate) path: Option<RelPath>,
    pub(crate) hidden: bool,
    pub(crate) limit: u16,
}

#[derive(Debug)]
pub(crate) struct ReplaceAsk {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) all: bool,
    pub(crate) etag: Option<String>,
}

/// What happens when a workspace that Glovebox would keep is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Refuse,
    Make,
}

pub(crate) fn open<'g>(
    global: &'g Global,
    which: &WhichOptions,
    missing: Missing,
) -> Result<Box<dyn Workspace + 'g>> {
    let context = Context::new(global);
    if let Some(remote) = context.server()? {
        let Some(project) = which.project.clone() else {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "a server cannot work on a directory of this machine",
            )
            .hint("name a workspace that it keeps: `--project NAME`")
            .hint("`glovebox workspace ls` lists them"));
        };
        return Ok(Box::new(There::new(remote, project)));
    }
    let which = match &which.project {
        Some(project) => WorkspaceRef::Project(project.clone()),
        None => current()?,
    };
    Ok(Box::new(Here::open(global, which, missing)?))
}

/// By its whole path: whoever is killed in the middle leaves it for the next start to find, and that
/// one may stand elsewhere.
fn current() -> Result<WorkspaceRef> {
    let path = std::env::current_dir().map_err(|error| {
        let message = "cannot tell where the current directory is";
        Error::new(Code::WorkspaceRefused, Stage::Parse, message)
            .caused_by(error)
            .hint("change into a directory that is there, or use `--project NAME`")
    })?;
    Ok(WorkspaceRef::Adopted(path))
}

/// The one that an exec worked on.
pub(crate) fn of_exec<'g>(global: &'g Global, exec: &Exec) -> Result<Box<dyn Workspace + 'g>> {
    let context = Context::new(global);
    let project = exec.project_id.clone();
    if let Some(remote) = context.server()? {
        return Ok(Box::new(There::new(remote, project)));
    }
    if !project.as_str().starts_with(ADOPTED) {
        let which = WorkspaceRef::Project(project);
        return Ok(Box::new(Here::open(global, which, Missing::Refuse)?));
    }
    let here = Here::open(global, current()?, Missing::Refuse)?;
    match here.project_id()? == project {
        true => Ok(Box::new(here)),
        false => {
            let id = &exec.exec_id;
            let message = format!("`{id}` worked on another directory than this one");
            Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("change into the directory that it was run in, and try again"))
        }
    }
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
    let path =
        RelPath::new(path.as_bytes()).map_err(|error| error.at(Stage::Parse, path.as_bytes()))?;
    Ok(path)
}

/// What becomes of what stands in a workspace that is taken back.
pub(crate) fn present(is_lost: bool) -> Present {
    match is_lost {
        true => Present::Lost,
        false => Present::Snapshot,
    }
}
