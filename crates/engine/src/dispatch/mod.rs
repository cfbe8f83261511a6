//! Many execs at once over one engine: admission, a durable queue, notification, shutdown. Everything
//! here blocks: a server calls it from threads.

mod admission;
mod answered;
mod awaiting;
mod drain;
mod events;
mod health;
mod housekeeping;
mod live;
mod maintenance;
mod perform;
mod pooled_source;
mod retrieve;
mod sandboxes;
mod sealed_call;
mod seen;
mod settings;
mod submit;
mod threads;
mod webhooks;
mod workspaces;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use glovebox_model::{
    Call, Code, Correlation, Error, Exec, ExecId, ProjectId, Result, Settings, SpaceId, Stage,
    Status,
};
use glovebox_policy::{Config, Explanation, HostFacts, Surface, ToolPolicy};
use glovebox_store::{StateDir, Store};
use glovebox_workspace::{Layout, toolchain};
use tokio::sync::watch;

use crate::engine::{self, Engine};
use crate::instance::Purpose;
use crate::patience::Wait;
use crate::pool::Pool;
use crate::recovery::Recovered;
use crate::secrets::{KeySource, Secrets};
use crate::sessions::{KeptFor, SessionCommand, SessionIo, Sessions};
use crate::settings::ToolchainSettings;
use crate::visibility::{Seen, Viewer};
use crate::webhooks::Webhook;
use crate::workspaces::{DirectoryToShare, SharedDirectory};

pub use drain::Drained;
pub use events::{EVENTS_KEPT, Event, EventKind, EventPage};
pub use health::Health;
pub use live::{Attended, Progress};
pub use maintenance::KEYS_KEPT;
pub use sandboxes::ContainerEngine;
pub use settings::check_settings;
pub use submit::{Submission, Submitted};

use admission::{AdmissionQueue, Counts};
use awaiting::Awaiting;
use live::Live;
use perform::Waiting;
pub(crate) use sealed_call::{Seal, SealedCall};
use settings::capped;
use threads::ThreadPool;

/// Hands out keepers; made before the first thread of the process.
pub use glovebox_cage::Spawner;

use glovebox_cage::Moment;

/// How long another server waits for a sign of life before it takes over. A database may be away, or
/// locked, for most of it, and nothing ends.
pub const LEASE: Duration = Duration::from_secs(45);

fn lease() -> Duration {
    Wait::Lease.within(LEASE)
}

/// Until when what runs may go on, if the lease was asked for then: what is held back is for clocks
/// that disagree, and for ending everything.
fn leased_until(asked: Moment) -> Moment {
    asked.after(lease() - lease() / 6)
}

/// How a server's engine is set up.
#[derive(Debug)]
pub struct ServerConfig {
    pub state: StateDir,
    /// The address of a PostgreSQL; SQLite in the state directory without it.
    pub database: Option<String>,
    pub config: Config,
    /// Another policy, which is only tried.
    pub shadow: Option<Config>,
    pub host: HostFacts,
    /// No setting goes above it while the server runs.
    pub concurrency_ceiling: u32,
    /// Where the key of the secrets is.
    pub secrets_key: KeySource,
    /// A directory of the machine's user that callers may work in. Limits are then those of a
    /// machine of one's own; who is asked, and who may answer, is the same.
    pub shared: Option<DirectoryToShare>,
    pub purpose: ServerPurpose,
}

/// Whose execs a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPurpose {
    /// Those of all who reach it, and what other servers of the same store left waiting.
    Callers,
    /// One agent's, whose host started it: what other servers left waiting is not carried out under
    /// its policy, and what they keep is not tidied by its rules.
    Agent,
    /// One session, under the limits of where it was started: nothing else is begun here, and
    /// nothing looked after.
    Session(Surface),
}

impl ServerPurpose {
    pub(crate) const fn is_session(self) -> bool {
        matches!(self, Self::Session(_))
    }
}

/// What a server is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub running: u64,
    pub queued: u64,
    pub limit: u32,
    pub draining: bool,
}

type EndHook = Box<dyn Fn(&Exec, Duration) + Send + Sync>;

pub struct Dispatcher {
    engine: Engine,
    /// None in a process that starts no sandboxes.
    spawner: Option<Arc<Spawner>>,
    seal: OnceLock<Seal>,
    toolchains: ToolchainSettings,
    /// For what works in the directory that is shared.
    shared_toolchains: Option<ToolchainSettings>,
    ceiling: u32,
    settings: Mutex<(Settings, u64)>,
    admission: Mutex<AdmissionQueue<Waiting>>,
    live: Mutex<HashMap<ExecId, Arc<Live>>>,
    /// Those of them that wait for people.
    awaiting: Mutex<HashMap<ExecId, Awaiting>>,
    /// Held while one more of them is written down.
    asking: Mutex<()>,
    /// Counts what happened to requests to people.
    news: watch::Sender<u64>,
    /// Told whenever an exec is gone from `live`.
    gone: Condvar,
    draining: AtomicBool,
    /// Set when this server may not speak for its execs any more.
    fenced: AtomicBool,
    /// Set while its lease could not be renewed in time.
    cut_off: AtomicBool,
    /// When its lease was renewed after that, the last time.
    regained: Mutex<Option<Moment>>,
    /// Somebody is at it.
    housekeeping: AtomicBool,
    /// What an exec took lately, in milliseconds: how soon a place may be free.
    pace: AtomicU64,
    on_end: Mutex<Option<EndHook>>,
    maintenance: maintenance::Maintenance,
    threads: Arc<ThreadPool>,
    /// None where no sandbox can be kept ready.
    pool: OnceLock<Pool>,
    webhooks: Vec<Webhook>,
    purpose: ServerPurpose,
    pub(crate) sessions: Sessions,
    /// In the process of a session: both sides of its program.
    kept: OnceLock<Arc<SessionIo>>,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// When it returns, what a crash left is taken down and written into the ledger, and what
    /// waited in the queue waits again.
    pub fn open(rules: ServerConfig, spawner: Spawner) -> Result<Arc<Self>> {
        let ServerConfig {
            state,
            database,
            config,
            shadow,
            host,
            concurrency_ceiling,
            secrets_key,
            shared,
            purpose: serves,
        } = rules;
        let settings = engine::Settings {
            state,
            database,
            config,
            shadow,
            surface: match (serves, &shared) {
                (ServerPurpose::Session(surface), _) => surface,
                (_, Some(_)) => Surface::Local,
                (_, None) => Surface::Server,
            },
            host,
            homes: shared.as_ref().map_or_else(Vec::new, |it| it.homes.clone()),
            secrets_key,
        };
        let purpose = Purpose {
            serves: true,
            only_own: serves != ServerPurpose::Callers,
            recovers: true,
        };
        let shares = shared.as_ref().map(|it| it.directory.as_path());
        let engine = Engine::open_for(settings, purpose, shares)?;
        let store = engine.store()?;
        if serves.is_session() {
            store.keep_one_connection();
        }
        let asked = Moment::now();
        store.enlist(engine.instance.owner().id(), lease())?;
        if store.is_shared() {
            hold(&spawner, asked)?;
        }
        let spawner = Arc::new(spawner);
        engine
            .instance
            .backends()
            .keepers()
            .from_spawner(Arc::clone(&spawner));
        // Also shows, before anybody is let in, that the ledger can be written.
        let mut about = serde_json::json!({ "version": env!("CARGO_PKG_VERSION") });
        if let Some(shared) = engine.workspaces.shared() {
            about["project_id"] = serde_json::json!(shared.id());
        }
        let toolchains = shared.map(|it| it.toolchains);
        if serves.is_session() {
            let dispatcher = Self::over(
                engine,
                Some(spawner),
                concurrency_ceiling,
                toolchains,
                serves,
            )?;
            maintenance::set_out(&dispatcher)?;
            return Ok(dispatcher);
        }
        store.note(&SpaceId::local(), "server_started", None, about)?;
        let dispatcher = Self::over(
            engine,
            Some(spawner),
            concurrency_ceiling,
            toolchains,
            serves,
        )?;
        dispatcher.seal()?;
        dispatcher.engine.sandboxes.reconcile()?;
        if let Err(error) = dispatcher.engine.workspaces.clear_aside() {
            tracing::warn!(%error, "what was being built cannot be removed");
        }
        for (project, finished) in dispatcher.engine.workspaces.finish_all()? {
            match finished {
                Ok(()) => {
                    tracing::warn!(%project, "a change of the workspace that was cut off is finished")
                }
                // Another process is at it.
                Err(error) if error.code == Code::Conflict => {}
                Err(error) => {
                    tracing::error!(%project, %error, "a change of the workspace was cut off")
                }
            }
        }
        dispatcher.open_pool()?;
        dispatcher.take_over()?;
        maintenance::set_out(&dispatcher)?;
        Ok(dispatcher)
    }

    /// For a command of the person at the machine: it starts no thread and no sandbox, and takes
    /// nothing over. What an earlier crash left is taken down.
    pub fn of_command(settings: engine::Settings, directory: Option<&Path>) -> Result<Arc<Self>> {
        let engine = Engine::open_for(settings, Purpose::COMMAND, directory)?;
        Self::over(engine, None, u32::MAX, None, ServerPurpose::Agent)
    }

    /// The same for what is on record: execs, the ledger, approvals, tokens, settings, secrets. What
    /// others left, or run on the same database, is not taken over.
    pub fn of_store(settings: engine::Settings) -> Result<Arc<Self>> {
        let purpose = Purpose {
            recovers: false,
            ..Purpose::COMMAND
        };
        let engine = Engine::open_for(settings, purpose, None)?;
        // It runs nothing: when it is killed while it follows something, nothing is to recover.
        engine.instance.owner().resign();
        Self::over(engine, None, u32::MAX, None, ServerPurpose::Agent)
    }

    fn over(
        engine: Engine,
        spawner: Option<Arc<Spawner>>,
        ceiling: u32,
        shared_toolchains: Option<ToolchainSettings>,
        purpose: ServerPurpose,
    ) -> Result<Arc<Self>> {
        let (settings, version) = engine.store()?.settings()?;
        let kept_for = match (&spawner, purpose) {
            (None, _) => KeptFor::Command,
            (Some(_), ServerPurpose::Callers) => KeptFor::Server,
            (Some(_), ServerPurpose::Agent | ServerPurpose::Session(_)) => KeptFor::Host,
        };
        let webhooks = match (&spawner, purpose) {
            (None, _) | (_, ServerPurpose::Session(_)) => Vec::new(),
            (Some(_), ServerPurpose::Callers | ServerPurpose::Agent) => engine.webhooks.open()?,
        };
        Ok(Arc::new(Self {
            admission: Mutex::new(AdmissionQueue::new(capped(settings.clone(), ceiling))),
            settings: Mutex::new((settings, version)),
            engine,
            spawner,
            seal: OnceLock::new(),
            toolchains: no_toolchains(),
            shared_toolchains,
            ceiling,
            live: Mutex::default(),
            awaiting: Mutex::default(),
            asking: Mutex::default(),
            news: watch::Sender::new(0),
            gone: Condvar::new(),
            draining: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            regained: Mutex::default(),
            housekeeping: AtomicBool::new(false),
            pace: AtomicU64::new(1000),
            on_end: Mutex::new(None),
            maintenance: maintenance::Maintenance::default(),
            threads: Arc::default(),
            pool: OnceLock::new(),
            webhooks,
            purpose,
            sessions: Sessions::new(kept_for),
            kept: OnceLock::new(),
        }))
    }

    /// How the keepers of sessions are started from here.
    pub fn start_sessions_with(&self, command: SessionCommand) {
        self.sessions.start_with(command);
    }

    /// This process is one session's: the next exec is the one, and these are both sides of it.
    pub(crate) fn keep_session_io(&self, io: Arc<SessionIo>) -> Result<()> {
        self.kept.set(io).map_err(|_| {
            Error::new(
                Code::Internal,
                Stage::Admit,
                "this process keeps a session already",
            )
        })
    }

    /// Waits until it begins or ends here, at most so long; whether it runs here, or is about to.
    pub(crate) fn wait_for(&self, exec: &Exec, long: Duration) -> bool {
        let is_live = |live: &HashMap<_, _>| live.contains_key(&exec.exec_id);
        let live = locked(&self.live);
        let was_live = is_live(&live);
        let waited = self
            .gone
            .wait_timeout_while(live, long, |live| is_live(live) == was_live);
        let (live, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        is_live(&live)
    }

    /// What waiting calls are sealed with.
    pub(crate) fn seal(&self) -> Result<&Seal> {
        if let Some(seal) = self.seal.get() {
            return Ok(seal);
        }
        let seal = Seal::load_or_create(&self.state().keys().join("queue.key"))?;
        Ok(self.seal.get_or_init(|| seal))
    }

    /// Tells every keeper until when this server holds its lease.
    fn hold(&self, asked: Moment) -> Result<()> {
        self.spawner.as_ref().map_or(Ok(()), |it| hold(it, asked))
    }

    pub fn store(&self) -> Result<&Store> {
        self.engine.store()
    }

    /// Puts another configuration in force and writes that down. What runs goes on under the one it
    /// began with; the pool, webhooks and what the network is opened with are those of the start.
    pub fn reconfigure(&self, config: Config) -> Result<()> {
        // What no call could be made under is refused, and so is what cannot be written down.
        config.system(self.engine.policy().surface(), self.engine.policy().host())?;
        let about = serde_json::json!({
            "policy": config.digest(),
            "before": self.engine.config().digest(),
        });
        let store = self.store()?;
        store.note(&SpaceId::local(), "configuration_reloaded", None, about)?;
        self.engine.policy().reconfigure(config);
        Ok(())
    }

    pub fn secrets(&self) -> Result<Secrets<'_>> {
        self.engine.secrets.open()
    }

    pub fn state(&self) -> &StateDir {
        self.engine.instance.state()
    }

    /// This server's name in the store.
    pub fn owner(&self) -> &str {
        self.engine.instance.owner().id()
    }

    /// What this start found of an earlier crash.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.engine.instance.recovered()
    }

    pub fn layout(&self, space: &SpaceId) -> Result<Arc<Layout>> {
        self.engine.instance.layout(space)
    }

    /// The id of the directory that is shared. It is one of the space `local`.
    pub fn shared_project(&self) -> Option<&ProjectId> {
        self.engine.workspaces.shared().map(SharedDirectory::id)
    }

    /// Where it is.
    pub fn shared_directory(&self) -> Option<&Path> {
        self.engine.workspaces.shared().map(SharedDirectory::path)
    }

    fn toolchains(&self, project: &ProjectId) -> &ToolchainSettings {
        let shared = self.shared_toolchains.as_ref();
        let shared = shared.filter(|_| self.shared_project() == Some(project));
        shared.unwrap_or(&self.toolchains)
    }

    /// Called after each exec's end, with the time it had waited.
    pub fn on_end(&self, hook: impl Fn(&Exec, Duration) + Send + Sync + 'static) {
        *locked(&self.on_end) = Some(Box::new(hook));
    }

    pub fn explain(&self, eyes: &Viewer, mut call: Call) -> Explanation {
        self.engine.workspaces.lead(&mut call);
        let explained = self.may_name(eyes, &call);
        let explained = explained.and_then(|()| self.engine.policy().explain(call));
        explained.unwrap_or_else(|error| Explanation::of(Err(&error)))
    }

    /// Which tools exist for somebody.
    pub fn tools_of(&self, ids: &Correlation) -> ToolPolicy {
        self.engine.config().tools_for(ids)
    }

    /// As it is now.
    fn record(&self, space: &SpaceId, id: &ExecId) -> Result<Exec> {
        let mut exec = self.store()?.get(space, id)?;
        self.place_in_queue(&mut exec);
        Ok(exec)
    }

    /// Fills in what only the server knows about an exec that waits.
    pub fn place_in_queue(&self, exec: &mut Exec) {
        if exec.status == Status::Queued {
            let admission = locked(&self.admission);
            exec.queue_position = admission.position(&exec.ids.space_id, &exec.exec_id);
        }
    }

    /// `None` when it has ended, or another server has it.
    pub fn watch(&self, exec: &Seen<Exec>) -> Option<watch::Receiver<Progress>> {
        let live = self.live_one(&exec.ids.space_id, &exec.exec_id);
        live.map(|live| live.watch())
    }

    /// As [`Dispatcher::watch`], for whoever wants nothing but its end.
    pub fn attend(&self, exec: &Seen<Exec>) -> Option<Attended> {
        let live = self.live_one(&exec.ids.space_id, &exec.exec_id);
        live.map(Attended::new)
    }

    /// One that waits is canceled at once; one that runs is asked to end, and killed if it does
    /// not; one that has ended stays as it is.
    pub fn cancel(&self, exec: Seen<Exec>) -> Result<Exec> {
        if exec.status.is_final() {
            return Ok(exec.into_inner());
        }
        let (space, id) = (&exec.ids.space_id, &exec.exec_id);
        if let Some(canceled) = self.cancel_awaiting(space, id) {
            return canceled;
        }
        let waiting = locked(&self.admission).withdraw(space, id);
        if let Some(waiting) = waiting {
            return self.cancel_waiting(waiting);
        }
        match self.live_one(space, id) {
            Some(live) => live.cancel(),
            None => self.store()?.ask_cancel(space, id)?,
        }
        self.record(space, id)
    }

    /// Whether anything of a workspace runs or waits here.
    pub fn is_busy(&self, space: &SpaceId, project: &ProjectId) -> bool {
        locked(&self.live)
            .values()
            .any(|live| live.space == *space && live.project == *project)
    }

    pub fn load(&self) -> Load {
        let Counts { running, queued } = locked(&self.admission).counts();
        Load {
            running,
            queued,
            limit: locked(&self.settings)
                .0
                .max_concurrent_execs
                .min(self.ceiling),
            draining: self.is_closed(),
        }
    }

    /// No new work is taken.
    pub fn is_closed(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.fenced.load(Ordering::Relaxed)
    }

    /// Nothing is started until the lease is renewed.
    fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    fn live_one(&self, space: &SpaceId, id: &ExecId) -> Option<Arc<Live>> {
        let live = locked(&self.live);
        live.get(id).filter(|it| it.space == *space).cloned()
    }
}

/// Tells every keeper until when this server holds its lease.
fn hold(spawner: &Spawner, asked: Moment) -> Result<()> {
    spawner.lease_until(leased_until(asked)).map_err(|error| {
        let message = "the keepers of sandboxes cannot be told of the lease";
        Error::new(Code::Internal, Stage::Open, message).caused_by(error)
    })
}

/// A server shows nobody's own interpreters: only what the host has for everybody.
fn no_toolchains() -> ToolchainSettings {
    ToolchainSettings {
        host: toolchain::Host::of_process("/", None),
        mode: toolchain::Mode::Off,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
