//! The engine: one state directory, one policy, and the path over them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glovebox_backend::{Cancel, Ground, Native, Remains, Sink};
use glovebox_model::{Call, Code, Error, Exec, Result, SpaceId, Stage, Status, WorkspaceRef};
use glovebox_policy::{Assessed, Config, HostFacts, Surface, assess, resolve};
use glovebox_store::{Owner, StateDir, Store};
use glovebox_workspace::{Dir, Layout, Project};

use crate::Keeper;
use crate::leftovers;
use crate::path::{self, Draft, Plan};
use crate::prepare::Standing;
use crate::recovery::{self, Recovered};
use crate::settings::ToolchainSettings;
use crate::stage;

/// The caller's side of a run.
#[expect(missing_debug_implementations, reason = "a sink has nothing to show")]
pub struct Io<'io> {
    pub stdin: Option<OwnedFd>,
    /// Output as it comes, beside the files.
    pub live: &'io mut dyn Sink,
    pub cancel: &'io Cancel,
    /// Why it was canceled, when it was not the caller who did.
    pub stopped: Option<&'io dyn Fn() -> Option<Error>>,
}

#[derive(Debug)]
pub struct Engine {
    state: StateDir,
    owner: Owner,
    ground: Ground,
    /// Opened when it is first needed: a sandbox is built meanwhile.
    store: OnceLock<(Store, Recovered)>,
    database: Option<String>,
    layouts: Mutex<HashMap<SpaceId, Arc<Layout>>>,
    config: Config,
    host: HostFacts,
    surface: Surface,
    homes: Vec<PathBuf>,
    /// Seats so far, so that the control groups of each have a name of their own.
    seats: AtomicU64,
}

/// How an engine is set up.
#[derive(Debug)]
pub struct Settings {
    pub state: StateDir,
    /// The address of a PostgreSQL; SQLite in the state directory without it.
    pub database: Option<String>,
    pub config: Config,
    pub surface: Surface,
    pub host: HostFacts,
    /// Home directories, which may not be adopted as workspaces themselves.
    pub homes: Vec<PathBuf>,
}

/// A keeper with its control groups, reserved for one exec.
#[derive(Debug)]
pub struct Seat {
    pub(crate) native: Native,
}

impl Engine {
    /// Nothing of the state directory but its owner's file is touched yet.
    pub fn open(settings: Settings) -> Result<Self> {
        let owner = Owner::claim(&settings.state)?;
        let ground = Ground::look();
        leftovers::note(&settings.state, &owner, &ground)?;
        let Settings {
            state,
            database,
            config,
            surface,
            host,
            homes,
        } = settings;
        Ok(Self {
            state,
            owner,
            ground,
            store: OnceLock::new(),
            database,
            layouts: Mutex::default(),
            config,
            host,
            surface,
            homes,
            seats: AtomicU64::new(0),
        })
    }

    /// Takes a keeper for one exec; it enters its control groups while the caller goes on.
    pub fn seat(&self, keeper: Keeper) -> Result<Seat> {
        let mut native = Native::new(&self.ground, keeper);
        let number = self.seats.fetch_add(1, Ordering::Relaxed);
        native.reserve(&leftovers::group_name(&self.state, self.owner.id(), number))?;
        stage::reached("reserve");
        Ok(Seat { native })
    }

    /// Takes down what a crash left before anything else is written.
    pub fn store(&self) -> Result<&Store> {
        if let Some((store, _)) = self.store.get() {
            return Ok(store);
        }
        let store = match &self.database {
            None => Store::open(&self.state)?,
            Some(address) => Store::connect(&self.state, address)?,
        };
        let recovered = recovery::recover(&self.state, &store, &self.owner)?;
        Ok(&self.store.get_or_init(|| (store, recovered)).0)
    }

    pub fn state(&self) -> &StateDir {
        &self.state
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Where the files of a space lie.
    pub fn layout(&self, space: &SpaceId) -> Result<Arc<Layout>> {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = layouts.get(space) {
            return Ok(Arc::clone(layout));
        }
        let root = Dir::open_trusted(self.state.path()).map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Open,
                "cannot open the state directory",
            )
            .caused_by(error)
        })?;
        let layout = Arc::new(Layout::of_space(root, space)?);
        layouts.insert(space.clone(), Arc::clone(&layout));
        Ok(layout)
    }

    /// Those that have files of their own, beside `local`.
    pub(crate) fn spaces(&self) -> Result<Vec<SpaceId>> {
        let entries = match std::fs::read_dir(self.state.path().join("spaces")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let names = entries.map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Open,
                "cannot list the spaces of the state directory",
            )
            .caused_by(error)
        })?;
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// What this start found of an earlier crash, once the store is open.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.store.get().map(|(_, recovered)| recovered)
    }

    /// Policy's answer to a call, without running anything.
    pub fn assess(&self, call: Call) -> Result<Assessed> {
        let system = self.config.system(self.surface, self.host)?;
        let layers = self.config.layers_for(&call.ids);
        let resolved = stage::span("resolve").in_scope(|| resolve(call, &system, &layers))?;
        stage::reached("resolve");
        let assessed = stage::span("assess").in_scope(|| assess(resolved));
        stage::reached("assess");
        Ok(assessed)
    }

    /// From a call to a plan that may be carried out. `Err` inside: policy's refusal, which is
    /// still to be written down; `Err` outside: a call that makes no sense.
    pub(crate) fn receive(&self, call: Call) -> Result<(Project, Draft, Result<Plan>)> {
        glovebox_workspace::check_inputs(&call.inputs)?;
        let project = self.project(&call.ids.space_id, &call.workspace)?;
        let draft = Draft::new(&call, project.id().clone())?;
        let plan = self.plan(&draft, call);
        Ok((project, draft, plan))
    }

    pub(crate) fn plan(&self, draft: &Draft, call: Call) -> Result<Plan> {
        let assessed = self.assess(call)?;
        let approved = stage::span("obtain").in_scope(|| path::obtain(assessed));
        stage::reached("obtain");
        Plan::new(draft.clone(), approved)
    }

    /// Walks the whole path. A refusal is a record too; an error means that there is none.
    pub fn run(
        &self,
        seat: Seat,
        call: Call,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let (project, draft, plan) = self.receive(call)?;
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return self.refuse(&draft, error),
        };
        let walked = self.walk(seat, plan, project, settings, io);
        walked.or_else(|error| match error.stage {
            // It ran, and what it printed and left is there, though not its record.
            Stage::Close => Err(error.of_exec(draft.exec_id.clone())),
            _ => self.refuse(&draft, error.of_exec(draft.exec_id.clone())),
        })
    }

    fn walk(
        &self,
        seat: Seat,
        mut plan: Plan,
        project: Project,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let standing = self.prepare(seat, &plan, project, settings)?;
        plan.begin();
        // The sandbox is being built while the intent is written; nothing starts before it is.
        stage::reached("build");
        let opened = self
            .store()
            .and_then(|store| path::open(store, &self.owner, plan));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                standing.discard();
                return Err(error);
            }
        };
        stage::reached("open");
        let (record, remains) = self.carry_out(standing, opened, settings, io, &mut |_| false)?;
        drop(remains);
        Ok(record)
    }

    /// From a durable intent and a sandbox to a durable outcome.
    pub(crate) fn carry_out(
        &self,
        standing: Standing,
        opened: path::Opened,
        settings: &ToolchainSettings,
        io: Io<'_>,
        again: &mut dyn FnMut(&Error) -> bool,
    ) -> Result<(Exec, Remains)> {
        let Standing {
            sandbox,
            order,
            streams,
            files,
            project,
            toolchains,
        } = standing;
        if let Err(error) = files.place_inputs(opened.inputs()) {
            let (entry, record) = opened.fail(error);
            let closed = path::end(self.store()?, entry, record, again)?;
            let _ = project.forget_inputs(files.exec());
            let _ = files.discard();
            return Ok((closed, sandbox.dismiss()));
        }
        let lease = path::admit(opened, sandbox);
        stage::reached("admit");
        let work = project.work().filter(|_| lease.sees_workspace());
        let watched: Vec<&Dir> = work.into_iter().chain([files.artifacts()]).collect();
        let mut exited =
            stage::span("run").in_scope(|| path::run(lease, &order, streams, &watched, io));
        if let Some(error) = exited.failure_mut() {
            crate::prepare::explain_start(error, &order, &toolchains, &settings.host, work);
        }
        stage::reached("run");
        let captured = stage::span("collect").in_scope(|| path::collect(exited, &files));
        stage::reached("collect");
        let judged = stage::span("judge").in_scope(|| path::judge(captured));
        stage::reached("judge");
        let store = self.store()?;
        let closed = stage::span("close").in_scope(|| path::close(store, judged, &files, again));
        stage::reached("close");
        let _ = project.forget_inputs(files.exec());
        closed
    }

    pub(crate) fn project(&self, space: &SpaceId, workspace: &WorkspaceRef) -> Result<Project> {
        let layout = self.layout(space)?;
        match workspace {
            WorkspaceRef::Adopted(path) => {
                let homes: Vec<&std::path::Path> =
                    self.homes.iter().map(PathBuf::as_path).collect();
                layout.adopt(path, &homes)
            }
            WorkspaceRef::Project(id) => layout.project(id),
            WorkspaceRef::Scratch => layout.scratch(),
        }
    }

    /// Writes down that nothing was started, and why. What the caller got wrong in asking, and what
    /// keeps us from writing anything, stays an error.
    fn refuse(&self, draft: &Draft, error: Error) -> Result<Exec> {
        let record = refusal(draft, error)?;
        self.store()?.refuse(record)
    }
}

/// The record of something that was not started; an error that leaves no record stays one.
pub(crate) fn refusal(draft: &Draft, error: Error) -> Result<Exec> {
    let status = match error.code {
        Code::PolicyDenied => Status::PolicyDenied,
        Code::BackendUnavailable | Code::SetupFailed => Status::Error,
        _ => return Err(error),
    };
    let mut record = draft.record(status);
    record.ended_at = Some(jiff::Timestamp::now());
    record.error = Some(error.of_exec(draft.exec_id.clone()));
    Ok(record)
}
