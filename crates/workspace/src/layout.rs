//! Where things lie: `projects/<project_id>/{inputs,work,artifacts/<exec_id>}` in the state
//! directory, with `inputs-<hash>` for each agent. Every name on the way is a checked id or a hash, so
//! none of it can traverse.

mod aside;
mod inputs;

use std::fs::File;
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, ExecId, Input, ProjectId, Result, SpaceId, Stage, Stream};

use crate::adopt::{adopt, host_path, is_adopted};
use crate::artifacts::{ExecFiles, spool_name, stream_file};
use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};
use crate::input;
use crate::stat::Kind;
use crate::{lines, sealed};

pub use inputs::{is_skill_input, skill_input};

const PROJECTS: &str = "projects";
const WORK: &str = "work";
const ARTIFACTS: &str = "artifacts";
const SCRATCH: &str = "scratch";
const SPACES: &str = "spaces";

/// Only the owner gets into a project; inside, modes are ordinary, since a sandbox that is given
/// one of its directories by handle may run under another id.
const PRIVATE: u32 = 0o700;
const ORDINARY: u32 = 0o755;

#[derive(Debug)]
pub struct Layout {
    root: Dir,
    projects: Dir,
}

/// Whose directory the sandbox works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    Managed,
    Adopted,
    /// Nothing on disk: the sandbox's own memory.
    Scratch,
}

#[derive(Debug)]
pub struct Project {
    id: ProjectId,
    home: Dir,
    work: Option<Dir>,
    kind: WorkKind,
    /// Whose exec it is opened for.
    agent: Option<String>,
}

impl Layout {
    /// The files of one space: those of `local` lie in the state directory itself, where they are
    /// without a server, those of any other below `spaces/`.
    pub fn of_space(state: Dir, space: &SpaceId) -> Result<Self> {
        if *space == SpaceId::local() {
            return Self::open(state);
        }
        let own = state
            .ensure_dir(SPACES, PRIVATE)
            .and_then(|spaces| spaces.ensure_dir(space.as_str(), PRIVATE))
            .map_err(opening)?;
        Self::open(own)
    }

    /// The spaces that have files below `state`, beside `local`.
    pub fn spaces(state: &Dir) -> Result<Vec<SpaceId>> {
        const MOST: usize = 100_000;
        let listing = match state.open_name(SPACES).and_then(|spaces| spaces.list(MOST)) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(Vec::new()),
            listing => listing.map_err(reading)?,
        };
        let names = listing.entries.iter().map(|entry| entry.name.display());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    pub fn open(root: Dir) -> Result<Self> {
        let projects = root.ensure_dir(PROJECTS, PRIVATE).map_err(opening)?;
        Ok(Self { root, projects })
    }

    /// A workspace that Glovebox keeps; made when it is not there.
    pub fn project(&self, id: &ProjectId) -> Result<Project> {
        check_name(id)?;
        let home = self.home(id)?;
        let work = home.ensure_dir(WORK, ORDINARY).map_err(opening)?;
        Ok(Project {
            id: id.clone(),
            home,
            work: Some(work),
            kind: WorkKind::Managed,
            agent: None,
        })
    }

    /// A directory of the caller's own. Inputs and artifacts lie under an id derived from where it
    /// is. `homes` are the home directories that may not be adopted themselves.
    pub fn adopt(&self, path: &Path, homes: &[&Path]) -> Result<Project> {
        let adopted = adopt(path, homes, &self.root)?;
        Ok(Project {
            home: self.home(&adopted.project_id)?,
            id: adopted.project_id,
            work: Some(adopted.dir),
            kind: WorkKind::Adopted,
            agent: None,
        })
    }

    /// The same once more, by the handle that is held: whatever has become of its path.
    pub fn adopt_again(&self, held: &Project) -> Result<Project> {
        let work = held.work.as_ref().map(Dir::try_clone).transpose();
        Ok(Project {
            home: self.home(&held.id)?,
            id: held.id.clone(),
            work: work.map_err(opening)?,
            kind: held.kind,
            agent: None,
        })
    }

    /// No work directory; artifacts are kept all the same.
    pub fn scratch(&self) -> Result<Project> {
        let id = SCRATCH
            .parse()
            .map_err(|error| Error::new(Code::Internal, Stage::Open, format!("{error}")))?;
        Ok(Project {
            home: self.home(&id)?,
            id,
            work: None,
            kind: WorkKind::Scratch,
            agent: None,
        })
    }

    /// The artifacts of an exec that ran. `not_found` when there are none.
    pub fn artifacts(&self, project: &ProjectId, exec: &ExecId) -> Result<Dir> {
        self.shelf(project)
            .and_then(|shelf| shelf.open_name(exec.as_str()))
            .map_err(reading)
    }

    /// What an exec wrote so far, or all of it once it ended. While it runs the name
    /// `stdout.txt` in its artifacts is the guest's to choose, so the stream's own place is
    /// tried first.
    pub fn stream(&self, project: &ProjectId, exec: &ExecId, stream: Stream) -> Result<File> {
        let shelf = self.shelf(project).map_err(reading)?;
        match shelf.open_file_name(&spool_name(stream, exec)) {
            Err(error) if error.kind() == FsErrorKind::NotFound => shelf
                .open_name(exec.as_str())
                .and_then(|dir| dir.open_file_name(stream_file(stream)))
                .map_err(reading),
            opened => opened.map_err(reading),
        }
    }

    /// The workspaces that are kept here, by name; at most so many.
    pub fn projects(&self, most: usize) -> Result<Vec<ProjectId>> {
        let listing = self.projects.list(most).map_err(reading)?;
        let names = listing.entries.iter().map(|entry| entry.name.display());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// A workspace that is there; `not_found` otherwise.
    pub fn existing(&self, id: &ProjectId) -> Result<Project> {
        let home = self.projects.open_name(id.as_str()).map_err(reading)?;
        let work = home.open_name(WORK).map_err(reading)?;
        Ok(Project {
            id: id.clone(),
            home,
            work: Some(work),
            kind: WorkKind::Managed,
            agent: None,
        })
    }

    /// Removes a workspace with its inputs and artifacts. False when there was none.
    pub fn remove(&self, id: &ProjectId) -> Result<bool> {
        match self.projects.remove_entry(id.as_str()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
            Err(error) => Err(reading(error)),
        }
    }

    /// The directory of the space, where everything of it lies.
    pub fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn shelf(&self, project: &ProjectId) -> Result<Dir, FsError> {
        self.home_of(project)?.open_name(ARTIFACTS)
    }

    pub(crate) fn home_of(&self, project: &ProjectId) -> Result<Dir, FsError> {
        self.projects.open_name(project.as_str())
    }

    fn home(&self, id: &ProjectId) -> Result<Dir> {
        self.projects
            .ensure_dir(id.as_str(), PRIVATE)
            .map_err(opening)
    }
}

impl Project {
    pub fn id(&self) -> &ProjectId {
        &self.id
    }

    /// Where everything of it lies but the work of an adopted one.
    pub(crate) fn home(&self) -> &Dir {
        &self.home
    }

    pub fn kind(&self) -> WorkKind {
        self.kind
    }

    /// None for scratch.
    pub fn work(&self) -> Option<&Dir> {
        self.work.as_ref()
    }

    /// Where its work is on the host now.
    pub fn path(&self) -> Result<PathBuf> {
        match &self.work {
            Some(work) => host_path(work),
            None => Err(Error::new(
                Code::NotFound,
                Stage::Resolve,
                "a scratch workspace is nowhere on the host",
            )),
        }
    }

    /// Whether nothing is in it: no work, no input, nothing that an exec left.
    pub fn is_unused(&self) -> Result<bool> {
        const MOST: usize = 100;
        let parts = self.home.list(MOST).map_err(reading)?;
        for part in &parts.entries {
            if part.stat.kind != Kind::Directory {
                return Ok(false);
            }
            let inside = self.home.open_name(&part.name.display());
            let inside = inside.and_then(|it| it.list(1)).map_err(reading)?;
            if !inside.entries.is_empty() {
                return Ok(false);
            }
        }
        Ok(!parts.truncated)
    }

    /// The files of one exec, made before it starts. Nothing is made when an input is wrong.
    pub fn begin(&self, exec: &ExecId, inputs: &[Input]) -> Result<ExecFiles> {
        let files = self.make_room(exec, inputs)?;
        files.place_inputs(inputs)?;
        Ok(files)
    }

    /// The same without the inputs, which [`ExecFiles::place_inputs`] places: other execs of the workspace
    /// see them, so they must not be there before it is certain that this one starts.
    pub fn make_room(&self, exec: &ExecId, inputs: &[Input]) -> Result<ExecFiles> {
        input::check(inputs)?;
        let shelf = self.shelf()?;
        let artifacts = shelf
            .make_new_dir(exec.as_str(), ORDINARY)
            .map_err(opening)?;
        let inputs = match self.kind {
            WorkKind::Managed | WorkKind::Adopted => Some(self.inputs()?),
            // Shared by every scratch exec, so each has inputs of its own, if any.
            WorkKind::Scratch if inputs.is_empty() => None,
            WorkKind::Scratch => {
                let own = self.inputs()?.make_new_dir(exec.as_str(), ORDINARY);
                Some(own.map_err(opening)?)
            }
        };
        Ok(ExecFiles::new(self, exec, shelf, artifacts, inputs))
    }

    pub(crate) fn shelf(&self) -> Result<Dir> {
        self.home.ensure_dir(ARTIFACTS, ORDINARY).map_err(opening)
    }

    /// Removes what an exec has left here that was cut off before it started.
    pub fn forget(&self, exec: &ExecId) -> Result<()> {
        let shelf = self.shelf()?;
        let spools = [Stream::Stdout, Stream::Stderr].map(|stream| spool_name(stream, exec));
        let call = sealed::name(exec);
        let spools = spools.into_iter().chain(lines::names(exec));
        for name in spools.chain([call, exec.to_string()]) {
            match shelf.remove_entry(&name) {
                Err(error) if error.kind() != FsErrorKind::NotFound => return Err(opening(error)),
                _ => {}
            }
        }
        self.forget_inputs(exec)
    }
}

fn check_name(id: &ProjectId) -> Result<()> {
    if id.as_str() != SCRATCH && !is_adopted(id) {
        return Ok(());
    }
    let message = format!("project id `{id}` is reserved");
    Err(Error::new(Code::InvalidArgument, Stage::Resolve, message)
        .hint("use another name; `scratch` and names in `cwd-` are Glovebox's own"))
}

/// `projects/<project_id>/artifacts/<exec_id>`, as the record gives it.
pub(crate) fn artifacts_path(project: &ProjectId, exec: &ExecId) -> String {
    format!("{PROJECTS}/{project}/{ARTIFACTS}/{exec}")
}

pub(crate) fn work_path(project: &ProjectId) -> String {
    format!("{PROJECTS}/{project}/{WORK}")
}

fn opening(error: FsError) -> Error {
    match error.kind() {
        FsErrorKind::Exists => error
            .at(Stage::Open)
            .hint("every exec needs an id of its own"),
        _ => error.at(Stage::Open),
    }
}

fn reading(error: FsError) -> Error {
    error.at(Stage::Collect)
}
