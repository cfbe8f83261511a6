//! Work on a workspace from outside its execs: snapshots of it, changes that wait, seeding, reset.
//! Whatever changes the whole of it has it alone, and is written down.

pub(crate) mod answer;
mod basis;
mod caches;
mod denied;
mod files;
mod lease;
mod marks;
mod of_call;
mod quota;
mod rollback;
mod shared_directory;
mod snapshots;
mod unfinished;
mod upkeep;
mod waiting;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glovebox_api as api;
use glovebox_model::{Bytes, Code, Count, Error, ExecId, Result, SpaceId, Stage, WorkspaceRef};
use glovebox_policy::WorkspaceSettings;
use glovebox_snapshot::{Snapshot, Snapshots};
use glovebox_store::Actor;
use glovebox_workspace::{Dir, Occupied, Project, UsageLimits};
use serde_json::{Value, json};

pub(crate) use denied::masked;
pub use files::{Expected, ListRequest, Opened, changed_path, file_path, watched};
pub(crate) use lease::{WorkspaceLease, aside};
pub use quota::{QuotaLeft, Writing};
pub use shared_directory::DirectoryToShare;
pub(crate) use shared_directory::SharedDirectory;
pub use snapshots::Present;

use crate::effects::Simulations;
use crate::instance::Instance;
use crate::policy::ActivePolicy;
use crate::sandboxes::SandboxRegistry;
use crate::secrets::SecretAccess;
use crate::visibility::Viewer;

const MEASURED: UsageLimits = UsageLimits {
    entries: 1_000_000,
    time: Duration::from_secs(2),
};

/// One workspace, and who works on it.
#[derive(Debug)]
pub struct Workspace<'engine> {
    workspaces: &'engine Workspaces,
    space: SpaceId,
    project: Project,
    /// Where an adopted one is.
    adopted: Option<std::path::PathBuf>,
    by: Option<Actor>,
    /// Who looks at it; none for the owner of the state directory.
    eyes: Option<Viewer>,
}

/// The workspaces of all spaces.
#[derive(Debug)]
pub struct Workspaces {
    pub(crate) instance: Arc<Instance>,
    secrets: Arc<SecretAccess>,
    simulations: Arc<Simulations>,
    registry: Arc<SandboxRegistry>,
    /// Home directories, which may not be adopted themselves.
    pub(crate) homes: Vec<PathBuf>,
    /// A directory of the machine's user that callers may work in.
    pub(crate) shared: Option<SharedDirectory>,
    snapshot_stores: Mutex<HashMap<SpaceId, Arc<Snapshots>>>,
}

impl Workspaces {
    pub(crate) fn new(
        instance: &Arc<Instance>,
        secrets: &Arc<SecretAccess>,
        simulations: &Arc<Simulations>,
        registry: &Arc<SandboxRegistry>,
        homes: Vec<PathBuf>,
    ) -> Self {
        Self {
            instance: Arc::clone(instance),
            secrets: Arc::clone(secrets),
            simulations: Arc::clone(simulations),
            registry: Arc::clone(registry),
            homes,
            shared: None,
            snapshot_stores: Mutex::default(),
        }
    }

    /// One that is there. `by` is who asks; none for whoever has the state directory.
    pub fn open(
        &self,
        space: &SpaceId,
        which: &WorkspaceRef,
        by: Option<Actor>,
    ) -> Result<Workspace<'_>> {
        let (project, adopted) = match which {
            WorkspaceRef::Project(id) => match self.shared_as(space, id) {
                Some(shared) => (self.project_of(shared)?, Some(shared.path().to_owned())),
                None => (self.instance.layout(space)?.existing(id)?, None),
            },
            WorkspaceRef::Adopted(path) => {
                // Whoever finishes what is begun here may stand elsewhere.
                let at = std::path::absolute(path).map_err(|error| {
                    let message = "the current directory cannot be named";
                    Error::new(Code::InvalidArgument, Stage::Resolve, message).caused_by(error)
                })?;
                let project = match self.shared_at(space, &at) {
                    Some(shared) => self.project_of(shared)?,
                    None => self.adopt(space, path)?,
                };
                (project, Some(at))
            }
            WorkspaceRef::Scratch => {
                let message = "a scratch workspace is gone with its exec";
                return Err(Error::new(Code::InvalidArgument, Stage::Resolve, message)
                    .hint("name one that is kept: `--project NAME`"));
            }
        };
        Ok(Workspace {
            workspaces: self,
            space: space.clone(),
            project,
            adopted,
            by,
            eyes: None,
        })
    }

    /// All snapshots of a space.
    pub fn snapshots(&self, space: &SpaceId) -> Result<Arc<Snapshots>> {
        let mut stores = self
            .snapshot_stores
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(space) {
            return Ok(Arc::clone(store));
        }
        let store = Arc::new(Snapshots::open(self.instance.layout(space)?.root())?);
        stores.insert(space.clone(), Arc::clone(&store));
        Ok(store)
    }
}

impl ActivePolicy {
    pub(crate) fn workspace_settings(&self) -> &WorkspaceSettings {
        self.config().workspace()
    }
}

impl Workspace<'_> {
    pub(crate) fn looked_at_by(mut self, eyes: &Viewer) -> Self {
        self.project = self.project.of_agent(eyes.agent());
        self.eyes = Some(eyes.clone());
        self
    }

    /// Whether a snapshot is there for who looks.
    fn sees(&self, snapshot: &Snapshot) -> bool {
        let agent = snapshot.agent_id.as_deref();
        let eyes = self.eyes.as_ref();
        eyes.is_none_or(|eyes| self.workspaces.instance.policy.sees_snapshot(eyes, agent))
    }

    /// Whether what an exec left is there for who looks. One without a record is nobody's but people's.
    fn sees_exec(&self, exec: &ExecId) -> Result<bool> {
        let Some(eyes) = self.eyes.as_ref().filter(|it| it.agent().is_some()) else {
            return Ok(true);
        };
        match self.workspaces.instance.store()?.get(&self.space, exec) {
            Ok(record) => Ok(self
                .workspaces
                .instance
                .policy
                .seen(eyes, &record.ids, ())
                .is_some()),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a snapshot may go when who looks wants it. What people took is theirs, though all see
    /// it.
    fn may_remove(&self, snapshot: &Snapshot) -> bool {
        let agent = snapshot.agent_id.as_deref();
        let eyes = self.eyes.as_ref();
        eyes.is_none_or(|eyes| self.workspaces.instance.policy.owns_snapshot(eyes, agent))
    }

    /// An agent removes no workspace with what others, or people, would miss.
    fn holds_nothing_of_others(&self) -> Result<()> {
        let mut is_own = self.all_snapshots()?.iter().all(|it| self.may_remove(it));
        let left = self.project.execs()?.into_iter();
        for exec in left.chain(self.project.holding()?) {
            is_own = is_own && self.sees_exec(&exec)?;
        }
        if is_own && (self.project.agent().is_none() || !self.project.has_inputs_of_others()?) {
            return Ok(());
        }
        let message = format!(
            "workspace `{}` holds inputs, outputs, changes that wait or snapshots of others",
            self.project.id()
        );
        Err(Error::new(Code::Conflict, Stage::Open, message)
            .hint("a person can remove it; remove what is yours, file by file")
            .hint("or use a workspace of your own: those in `agent-` are one agent's each"))
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    pub fn work(&self) -> Result<&Dir> {
        self.project
            .work()
            .ok_or_else(|| Error::new(Code::NotFound, Stage::Open, "this workspace has no files"))
    }

    /// As it is now.
    pub fn info(&self) -> Result<api::Workspace> {
        let usage = self.work()?.usage(MEASURED);
        let usage = usage.map_err(|error| error.at(Stage::Collect))?;
        let settings = self.workspaces.instance.policy.workspace_settings();
        Ok(api::Workspace {
            project_id: self.project.id().clone(),
            bytes: usage.bytes,
            files: usage.inodes,
            complete: usage.complete,
            max_bytes: settings.max_bytes.map(Bytes::get),
            max_files: settings.max_files.map(Count::get),
            waiting: self.waiting()?,
            snapshots: self.snapshots()?.len() as u64,
        })
    }

    /// For whoever changes the whole of it: nobody else is there, and nothing is half done.
    fn occupy(&self) -> Result<Occupied> {
        self.occupy_within(Duration::ZERO)
    }

    /// Waits so long for others to leave.
    fn occupy_within(&self, patience: Duration) -> Result<Occupied> {
        let alone = self.project.occupy_within(patience)?;
        self.finish()?;
        Ok(alone)
    }

    /// For whoever writes files of it, beside its execs.
    fn enter(&self) -> Result<Occupied> {
        let which = match &self.adopted {
            Some(path) => WorkspaceRef::Adopted(path.clone()),
            None => WorkspaceRef::Project(self.project.id().clone()),
        };
        self.workspaces
            .enter(&self.space, &which, &self.project, &|| true)
    }

    /// For whoever puts something else in its place.
    fn take_over(&self) -> Result<Occupied> {
        let alone = self.project.occupy()?;
        if let Err(error) = self.finish() {
            tracing::warn!(project = %self.project.id(), %error, "what was cut off cannot be finished");
        }
        Ok(alone)
    }

    /// Writes down what was done to it.
    pub fn note(&self, event: &str, mut details: Value) -> Result<()> {
        if let Value::Object(details) = &mut details {
            details.insert("project_id".to_owned(), json!(self.project.id()));
        }
        let store = self.workspaces.instance.store()?;
        store.note(&self.space, event, self.by.as_ref(), details)?;
        Ok(())
    }

    /// The same of what became of an exec's changes: it is found by the exec and its task too.
    fn note_settled(&self, exec: &ExecId, event: &str, mut details: Value) -> Result<()> {
        let store = self.workspaces.instance.store()?;
        match store.get(&self.space, exec) {
            Ok(record) => store
                .note_settled(&record, event, self.by.as_ref(), details)
                .map(drop),
            // Files outlive the records of a state directory that was set aside.
            Err(error) if error.code == Code::NotFound => {
                if let Value::Object(details) = &mut details {
                    details.insert("exec_id".to_owned(), json!(exec));
                }
                self.note(event, details)
            }
            Err(error) => Err(error),
        }
    }
}
