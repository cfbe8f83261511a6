//! Many execs at once over one engine: who may come in, what waits and survives a restart, who
//! hears of it, and how the house is closed. Everything here blocks; whoever serves many clients
//! calls it from threads.

mod drain;
mod events;
mod hall;
mod health;
mod live;
mod perform;
mod seal;
mod submit;
mod watchman;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use glovebox_model::{
    Call, ClientId, Code, Error, Exec, ExecId, Result, Settings, SpaceId, Stage, Status,
};
use glovebox_policy::{Config, Explanation, HostFacts, Surface};
use glovebox_store::{Actor, StateDir, Store};
use glovebox_workspace::{Layout, toolchain};
use tokio::sync::watch;

use crate::engine::{self, Engine};
use crate::recovery::Recovered;
use crate::settings::ToolchainSettings;

pub use drain::Drained;
pub use events::{EVENTS_KEPT, Event, EventPage, What};
pub use hall::Counts;
pub use health::Health;
pub use live::Progress;
pub use submit::{Submission, Submitted};
pub use watchman::KEYS_KEPT;

use hall::Hall;
use live::Live;
use perform::Waiting;
use seal::Seal;

/// Hands out keepers; made before the first thread of the process.
pub use glovebox_cage::Spawner;

/// How long another server waits for a sign of life before it takes over.
pub const LEASE: Duration = Duration::from_secs(15);

/// How a server's engine is set up.
#[derive(Debug)]
pub struct HouseRules {
    pub state: StateDir,
    /// The address of a PostgreSQL; SQLite in the state directory without it.
    pub database: Option<String>,
    pub config: Config,
    pub host: HostFacts,
    /// No setting goes above it while the server runs.
    pub concurrency_ceiling: u32,
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
    spawner: Spawner,
    seal: Seal,
    toolchains: ToolchainSettings,
    ceiling: u32,
    settings: Mutex<(Settings, u64)>,
    hall: Mutex<Hall<Waiting>>,
    live: Mutex<HashMap<ExecId, Arc<Live>>>,
    /// Told whenever an exec is gone from `live`.
    gone: Condvar,
    draining: AtomicBool,
    /// Set when this server may not speak for its execs any more.
    fenced: AtomicBool,
    /// What an exec took lately, in milliseconds: how soon a place may be free.
    pace: AtomicU64,
    on_end: Mutex<Option<EndHook>>,
    watchman: watchman::Watchman,
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
    pub fn open(rules: HouseRules, spawner: Spawner) -> Result<Arc<Self>> {
        let HouseRules {
            state,
            database,
            config,
            host,
            concurrency_ceiling,
        } = rules;
        let seal = Seal::load_or_create(&state.keys().join("queue.key"))?;
        let engine = Engine::open(engine::Settings {
            state,
            database,
            config,
            surface: Surface::Server,
            host,
            homes: Vec::new(),
        })?;
        let store = engine.store()?;
        store.enlist(engine.owner().id(), LEASE)?;
        // Also shows, before anybody is let in, that the ledger can be written.
        let version = serde_json::json!({ "version": env!("CARGO_PKG_VERSION") });
        store.note(&SpaceId::local(), "server_started", None, version)?;
        let (settings, version) = store.settings()?;
        let dispatcher = Arc::new(Self {
            hall: Mutex::new(Hall::new(capped(settings.clone(), concurrency_ceiling))),
            settings: Mutex::new((settings, version)),
            engine,
            spawner,
            seal,
            toolchains: no_toolchains(),
            ceiling: concurrency_ceiling,
            live: Mutex::default(),
            gone: Condvar::new(),
            draining: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            pace: AtomicU64::new(1000),
            on_end: Mutex::new(None),
            watchman: watchman::Watchman::default(),
        });
        dispatcher.take_over()?;
        watchman::set_out(&dispatcher)?;
        Ok(dispatcher)
    }

    pub fn store(&self) -> Result<&Store> {
        self.engine.store()
    }

    pub fn state(&self) -> &StateDir {
        self.engine.state()
    }

    /// This server's name in the store.
    pub fn owner(&self) -> &str {
        self.engine.owner().id()
    }

    /// What this start found of an earlier crash.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.engine.recovered()
    }

    pub fn layout(&self, space: &SpaceId) -> Result<Arc<Layout>> {
        self.engine.layout(space)
    }

    /// Called after each exec's end, with the time it had waited.
    pub fn on_end(&self, hook: impl Fn(&Exec, Duration) + Send + Sync + 'static) {
        *locked(&self.on_end) = Some(Box::new(hook));
    }

    pub fn explain(&self, call: Call) -> Explanation {
        let assessed = self.engine.assess(call);
        Explanation::of(assessed.as_ref())
    }

    /// By its id or by its caller's own. One of another space is as unknown as any other.
    pub fn find(&self, space: &SpaceId, name: &str) -> Result<Exec> {
        let store = self.store()?;
        let id = match name.parse::<ExecId>() {
            Ok(id) => Some(id),
            Err(_) => match name.parse::<ClientId>() {
                Ok(client) => store.find_client(space, &client)?,
                Err(_) => None,
            },
        };
        let mut exec = match id.map(|id| store.get(space, &id)) {
            Some(Err(error)) if error.code == Code::NotFound => return Err(unknown(name)),
            Some(found) => found?,
            None => return Err(unknown(name)),
        };
        self.place_in_queue(&mut exec);
        Ok(exec)
    }

    /// Fills in what only the server knows about an exec that waits.
    pub fn place_in_queue(&self, exec: &mut Exec) {
        if exec.status == Status::Queued {
            let hall = locked(&self.hall);
            exec.queue_position = hall.position(&exec.ids.space_id, &exec.exec_id);
        }
    }

    /// `None` when it has ended, or another server has it.
    pub fn watch(&self, space: &SpaceId, id: &ExecId) -> Option<watch::Receiver<Progress>> {
        self.live_one(space, id).map(|live| live.watch())
    }

    /// At most `most` events after number `after`.
    pub fn events(&self, exec: &Exec, after: u64, most: usize) -> Result<EventPage> {
        events::read(&*self.layout(&exec.ids.space_id)?, exec, after, most)
    }

    /// One that waits is canceled at once; one that runs is asked to end, and killed if it does
    /// not; one that has ended stays as it is.
    pub fn cancel(&self, space: &SpaceId, name: &str) -> Result<Exec> {
        let exec = self.find(space, name)?;
        if exec.status.is_final() {
            return Ok(exec);
        }
        let id = &exec.exec_id;
        let waiting = locked(&self.hall).withdraw(space, id);
        if let Some(waiting) = waiting {
            return self.cancel_waiting(waiting);
        }
        match self.live_one(space, id) {
            Some(live) => live.cancel(),
            None => self.store()?.ask_cancel(space, id)?,
        }
        self.find(space, id.as_str())
    }

    /// Whether anything of a workspace runs or waits here.
    pub fn is_busy(&self, space: &SpaceId, project: &glovebox_model::ProjectId) -> bool {
        locked(&self.live)
            .values()
            .any(|live| live.space == *space && live.project == *project)
    }

    pub fn settings(&self) -> (Settings, u64) {
        locked(&self.settings).clone()
    }

    pub fn ceiling(&self) -> u32 {
        self.ceiling
    }

    /// Applied at once to whoever comes next; who runs goes on.
    pub fn change_settings(
        self: &Arc<Self>,
        by: &Actor,
        change: impl FnOnce(Settings) -> Result<Settings> + Send + 'static,
    ) -> Result<(Settings, u64)> {
        let ceiling = self.ceiling;
        let changed = self.store()?.change_settings(by, move |settings| {
            let settings = change(settings)?;
            check_settings(&settings, ceiling)?;
            Ok(settings)
        })?;
        self.apply(changed.clone());
        Ok(changed)
    }

    fn apply(self: &Arc<Self>, (settings, version): (Settings, u64)) {
        let mut known = locked(&self.settings);
        if version < known.1 {
            return;
        }
        locked(&self.hall).set_limits(capped(settings.clone(), self.ceiling));
        *known = (settings, version);
        drop(known);
        self.call_next();
    }

    pub fn load(&self) -> Load {
        let Counts { running, queued } = locked(&self.hall).counts();
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

    fn live_one(&self, space: &SpaceId, id: &ExecId) -> Option<Arc<Live>> {
        let live = locked(&self.live);
        live.get(id).filter(|it| it.space == *space).cloned()
    }
}

/// What another server has allowed itself may be more than this one was started for.
fn capped(mut settings: Settings, ceiling: u32) -> Settings {
    settings.max_concurrent_execs = settings.max_concurrent_execs.min(ceiling);
    settings
}

/// Settings that no server of this ceiling could keep are refused.
pub fn check_settings(settings: &Settings, ceiling: u32) -> Result<()> {
    let refused = |message: String, hint: &str| {
        Err(Error::new(Code::PolicyDenied, Stage::Resolve, message).hint(hint))
    };
    if settings.max_concurrent_execs > ceiling {
        let asked = settings.max_concurrent_execs;
        return refused(
            format!("`max_concurrent_execs` {asked} is above this server's ceiling, {ceiling}"),
            "the operator raises it: `glovebox serve --max-concurrent N`",
        );
    }
    let zero = [
        ("max_concurrent_execs", Some(settings.max_concurrent_execs)),
        (
            "max_concurrent_per_space",
            settings.max_concurrent_per_space,
        ),
        ("max_concurrent_per_user", settings.max_concurrent_per_user),
    ];
    for (name, value) in zero {
        if value == Some(0) {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("`{name}` must be at least 1"),
            ));
        }
    }
    Ok(())
}

/// A server shows nobody's own interpreters: only what the host has for everybody.
fn no_toolchains() -> ToolchainSettings {
    ToolchainSettings {
        host: toolchain::Host::of_process("/", None),
        mode: toolchain::Mode::Off,
    }
}

/// The same words for an id that never was, one of another space, and one that is no id at all.
fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no exec `{shown}`"),
    )
    .hint("`GET /v1/execs` lists those of your space")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
