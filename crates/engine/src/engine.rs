//! The engine: one state directory, one policy, and the path over them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use glovebox_backend::{Cancel, Ground, Language, Native, Preload, Sink};
use glovebox_gateway::Simulated;
use glovebox_model::{
    Agreed, ByteString, Call, Code, Consent, Correlation, DockerConfig, Error, Exec, IdError,
    Lifetime, Mode, OnExceed, PartialProfile, Placement, Profile, Pull, Result, ScriptRef, SpaceId,
    Stage, Status,
};
use glovebox_policy::{Asking, Assessed, Config, Explanation, HostFacts, Layer, Surface};
use glovebox_snapshot::Snapshots;
use glovebox_store::{Owner, StateDir, Store};
use glovebox_workspace::{Dir, Layout, Project};

use crate::Keeper;
use crate::approvals::{Approver, Binding, Given, Petition, Script, check_scripts, tool_of};
use crate::backends::{Backends, Chosen};
use crate::effects::Listener;
use crate::environment;
use crate::kept::{SandboxRequest, Slots, nothing_yet};
use crate::leftovers;
use crate::loan::Lent;
use crate::masks::Known;
use crate::network::InUse;
use crate::one_seat::OneSeat;
use crate::outside::Outside;
use crate::path::{self, Draft, Plan};
use crate::patience::Wait;
use crate::private_key::private_key;
use crate::recovery::Recovered;
use crate::secrets::{KeySource, Secrets, Vault};
use crate::settings::ToolchainSettings;
use crate::workspaces::aside;
use crate::{skill, stage};

/// The caller's side of a run.
#[expect(missing_debug_implementations, reason = "a sink has nothing to show")]
pub struct Io<'io> {
    pub stdin: Option<OwnedFd>,
    /// Output as it comes, beside the files.
    pub live: &'io mut dyn Sink,
    pub cancel: &'io Cancel,
    /// Why it was canceled, when it was not the caller who did.
    pub stopped: Option<&'io dyn Fn() -> Option<Error>>,
    /// Who is asked when policy wants a person to agree.
    pub approver: Option<&'io dyn Approver>,
    /// Who hears of effects as they are seen.
    pub effects: Option<Arc<dyn Listener>>,
    /// What the program is given to read, where that is known and can be given again.
    pub replayable: Option<&'io [u8]>,
    /// Where what a gate runs gets its keeper from.
    pub seats: Option<&'io dyn Fn() -> Result<Seat>>,
}

/// A call with what people have said to it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) call: Call,
    /// What they took away from it.
    pub(crate) narrowed: Option<PartialProfile>,
    /// That they agreed.
    pub(crate) consent: Option<Consent>,
    /// The scripts as they were then.
    pub(crate) scripts: Option<Vec<ScriptRef>>,
    /// A gate wants it run, and no gate judges it.
    pub(crate) of_gate: bool,
}

impl Wanted {
    pub(crate) fn of(call: Call) -> Self {
        Self {
            call,
            narrowed: None,
            consent: None,
            scripts: None,
            of_gate: false,
        }
    }
}

/// What came of a call that makes sense and that no rule denies.
#[derive(Debug)]
pub(crate) enum Planned {
    Ready(Box<Plan>),
    /// People have to agree first.
    Asks(Box<Petition>),
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
    pub(crate) snapshot_stores: Mutex<HashMap<SpaceId, Arc<Snapshots>>>,
    /// One that was replaced stays in memory: what began under it may still read it.
    config: RwLock<&'static Config>,
    shadow: Option<Config>,
    approval_key: OnceLock<[u8; 32]>,
    vault: Vault,
    known_secrets: Known,
    in_use: InUse,
    host: HostFacts,
    surface: Surface,
    /// What dead processes left is taken down when the store is opened.
    pub(crate) recovers: bool,
    /// For many callers, none of whom is the one who started it.
    pub(crate) serves: bool,
    /// Nothing that others left is taken over here, and nobody else's files are tidied.
    pub(crate) only_own: bool,
    pub(crate) lent: Option<Lent>,
    pub(crate) homes: Vec<PathBuf>,
    backends: Backends,
    /// Kept sandboxes that are this process's own.
    pub(crate) slots: Arc<Slots>,
    /// Containers were compared with the registry.
    pub(crate) reconciled: AtomicBool,
    preloads: OnceLock<Vec<Preload>>,
    /// What the names of all kept sandboxes begin with.
    container_prefix: String,
    /// Seats so far, so that the control groups of each have a name of their own.
    seats: AtomicU64,
    pub(crate) outside: OnceLock<Outside>,
}

/// How an engine is set up.
#[derive(Debug)]
pub struct Settings {
    pub state: StateDir,
    /// The address of a PostgreSQL; SQLite in the state directory without it.
    pub database: Option<String>,
    pub config: Config,
    /// Another policy, which is only tried: what it would have said is written down.
    pub shadow: Option<Config>,
    pub surface: Surface,
    pub host: HostFacts,
    /// Home directories, which may not be adopted as workspaces themselves.
    pub homes: Vec<PathBuf>,
    /// Where the key of the secrets is.
    pub secrets_key: KeySource,
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
            shadow,
            surface,
            host,
            homes,
            secrets_key,
        } = settings;
        // One for all: a name must not depend on who asks.
        let anybody = Correlation::of_space(SpaceId::local());
        let docker = config.docker_for(&anybody, Lifetime::Shared);
        Ok(Self {
            container_prefix: docker.container_prefix,
            backends: Backends::new(&state),
            slots: Arc::default(),
            reconciled: AtomicBool::new(false),
            preloads: OnceLock::new(),
            vault: Vault::new(&state, secrets_key),
            known_secrets: Known::default(),
            in_use: InUse::default(),
            state,
            owner,
            ground,
            store: OnceLock::new(),
            database,
            layouts: Mutex::default(),
            snapshot_stores: Mutex::default(),
            config: RwLock::new(Box::leak(Box::new(config))),
            shadow,
            approval_key: OnceLock::new(),
            host,
            surface,
            recovers: true,
            serves: false,
            only_own: false,
            lent: None,
            homes,
            seats: AtomicU64::new(0),
            outside: OnceLock::new(),
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
        let patience = Wait::Store.within(glovebox_store::PATIENCE);
        let store = match &self.database {
            None if self.serves => Store::open_to_serve(&self.state, patience)?,
            None => Store::open_with_patience(&self.state, patience)?,
            Some(address) => Store::connect_with_patience(&self.state, address, patience)?,
        };
        store.mask_with(self.known_secrets.clone());
        let recovered = match self.recovers {
            true => self.recover(&store)?,
            false => Recovered::default(),
        };
        let (store, recovered) = self.store.get_or_init(|| (store, recovered));
        if !recovered.lost.is_empty() {
            // One of them may have been carrying its changes over. What cannot be finished now keeps
            // its note, and is finished before anything else is done in that workspace.
            let _ = self.finish_all();
        }
        Ok(store)
    }

    pub fn secrets(&self) -> Result<Secrets<'_>> {
        Ok(Secrets::new(self.store()?, &self.vault))
    }

    pub(crate) fn in_use(&self) -> &InUse {
        &self.in_use
    }

    pub(crate) fn known_secrets(&self) -> &Known {
        &self.known_secrets
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
        let layout = Arc::new(Layout::of_space(self.root()?, space)?);
        layouts.insert(space.clone(), Arc::clone(&layout));
        Ok(layout)
    }

    /// Those that have files of their own, beside `local`.
    pub(crate) fn spaces(&self) -> Result<Vec<SpaceId>> {
        Layout::spaces(&self.root()?)
    }

    pub(crate) fn root(&self) -> Result<Dir> {
        Dir::open_trusted(self.state.path()).map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Open,
                "cannot open the state directory",
            )
            .caused_by(error)
        })
    }

    /// What this start found of an earlier crash, once the store is open.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.store.get().map(|(_, recovered)| recovered)
    }

    /// Policy's answer to a call, without running anything.
    pub fn assess(&self, call: Call) -> Result<Assessed> {
        self.assess_call(call, None, None)
            .map(|(assessed, _)| assessed)
    }

    /// Everything that policy says about a call.
    pub fn explain(&self, call: Call) -> Result<Explanation> {
        let system = self.config().system(self.surface, self.host)?;
        let asking = Asking {
            tool: &tool_of(&call),
            grants: &[],
            secrets: &[],
            simulate: call.mode == Mode::Simulate,
            backend: call.overrides.backend,
        };
        glovebox_policy::explain(self.config(), &system, call, &asking)
    }

    /// From a call to a plan that may be carried out. `Err` inside: a refusal, which is still to be
    /// written down; `Err` outside: a call that makes no sense.
    pub(crate) fn receive(&self, mut call: Call) -> Result<(Project, Draft, Result<Planned>)> {
        glovebox_workspace::check_inputs(&call.inputs)?;
        skill::check_inputs(&call)?;
        if let Some(simulation) = &call.simulation {
            Simulated::new(simulation)?;
        }
        if self.is_server() {
            // What is written down of it from here on has nothing secret in it.
            self.masks_for(&call.ids, call.vouched, &[])?;
        }
        self.place(&mut call)?;
        let project = self.project(&call)?;
        let draft = Draft::new(&call, project.id().clone())?;
        let plan = self.plan(&draft, &project, Wanted::of(call));
        Ok((project, draft, plan))
    }

    pub(crate) fn plan(&self, draft: &Draft, project: &Project, wanted: Wanted) -> Result<Planned> {
        let Wanted {
            call,
            narrowed,
            consent,
            scripts: bound,
            of_gate,
        } = wanted;
        if let Some(preview) = &call.preview {
            self.check_place(&call.ids.space_id, preview, draft)?;
            self.check_rehearsed(&call, project)?;
        }
        let (assessed, scripts) = self.assess_call(call, narrowed.as_ref(), project.work())?;
        let is_asked = consent
            .as_ref()
            .is_some_and(|it| it.agreed == Agreed::People);
        let now: Vec<ScriptRef> = match is_asked {
            true => Binding::of(assessed.call(), &scripts, project)?.refs,
            false => scripts.iter().map(Script::bound).collect(),
        };
        if let Some(bound) = &bound {
            check_scripts(bound, &now)?;
        }
        let chosen = self.choose(assessed.call(), assessed.profile())?;
        let gated = match of_gate {
            true => None,
            false => Some(self.gated(&assessed, &chosen)?),
        };
        let given = consent.as_ref().map_or(Given::Nothing, Given::Consent);
        let ruled = stage::span("obtain").in_scope(|| {
            let image = chosen.image.as_deref();
            self.rule_on(assessed, scripts, chosen.backend, image, project, given)
        })?;
        stage::reached("obtain");
        let approved = match path::obtain(ruled) {
            Ok(approved) => approved,
            Err(petition) => return Ok(Planned::Asks(Box::new(petition))),
        };
        let (call, profile) = (approved.assessed().call(), approved.assessed().profile());
        let berth = self.berth(call, profile, &chosen, PartialProfile::default())?;
        let plan = Plan::new(draft.clone(), approved, chosen, berth, now)?.judged_by(gated);
        self.check_writes(&plan)?;
        self.check_denied(&plan)?;
        Ok(Planned::Ready(Box::new(plan)))
    }

    /// What a call would get, for those who only ask. Nothing is made.
    pub(crate) fn look_ahead(&self, mut call: Call) -> Result<(Profile, Chosen)> {
        self.place(&mut call)?;
        let assessed = self.assess(call)?;
        let chosen = self.choose(assessed.call(), assessed.profile())?;
        Ok((assessed.profile().clone(), chosen))
    }

    /// What a call that wishes for nothing gets.
    pub(crate) fn usual(&self) -> Result<(Profile, Chosen)> {
        let mut call = nothing_yet(&SandboxRequest {
            ids: Correlation::of_space(SpaceId::local()),
            lifetime: Lifetime::Exec,
            project: "usual".parse().map_err(|why: IdError| {
                Error::new(Code::Internal, Stage::Parse, why.to_string())
            })?,
            on_exceed: OnExceed::Refuse,
            overrides: PartialProfile::default(),
        });
        call.placement = Placement::Fresh;
        let assessed = self.assess(call)?;
        let chosen = self.choose(assessed.call(), assessed.profile())?;
        Ok((assessed.profile().clone(), chosen))
    }

    pub(crate) fn choose(&self, call: &Call, profile: &Profile) -> Result<Chosen> {
        // A sandbox that is named stands on a backend already, and that one must satisfy the demand.
        if let Placement::Named(name) = &call.placement {
            let row = self.own(&call.ids.space_id, name)?;
            return self.backends.choose_same(profile, &row.config);
        }
        let lifetime = match call.placement {
            Placement::Scope(lifetime) => lifetime,
            Placement::Fresh | Placement::Named(_) => Lifetime::Exec,
        };
        let docker = || self.docker_for(call, profile, lifetime);
        self.backends.choose(profile, aside(call), &docker)
    }

    /// The engine fetches only what the operator's configuration names: an image that a caller names
    /// would have it speak to whatever registry the caller likes, and nobody vets what it dials.
    fn docker_for(&self, call: &Call, profile: &Profile, lifetime: Lifetime) -> DockerConfig {
        let mut docker = self.config().docker_for(&call.ids, lifetime);
        if let Some(image) = &profile.image {
            let layers = self.config().layers_for(&call.ids);
            let is_named = |it: &Layer| it.profile().image.as_ref() == Some(image);
            if docker.image != *image && !layers.iter().any(is_named) {
                docker.pull = Pull::Never;
            }
        }
        docker
    }

    /// Other servers use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    pub(crate) fn backends(&self) -> &Backends {
        &self.backends
    }

    pub(crate) fn config(&self) -> &Config {
        *self.config.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts another policy in force, for whatever is asked from now on.
    pub(crate) fn reconfigure(&self, config: Config) {
        let config = Box::leak(Box::new(config));
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// A policy that is only tried.
    pub(crate) fn shadow_config(&self) -> Option<&Config> {
        self.shadow.as_ref()
    }

    pub(crate) fn surface(&self) -> Surface {
        self.surface
    }

    pub(crate) fn host(&self) -> HostFacts {
        self.host
    }

    /// What approvals are bound with: their digests tell nothing without it.
    pub(crate) fn approval_key(&self) -> Result<[u8; 32]> {
        if let Some(key) = self.approval_key.get() {
            return Ok(*key);
        }
        let key = private_key(&self.state.keys().join("approval.key"))?;
        Ok(*self.approval_key.get_or_init(|| *key))
    }

    pub(crate) fn container_prefix(&self) -> &str {
        &self.container_prefix
    }

    /// Interpreters that can be started before their code is known.
    pub(crate) fn preloads(&self) -> &[Preload] {
        self.preloads.get_or_init(|| {
            let environment = environment::of_any();
            let command = |language| match language {
                Language::Python => "python3",
                Language::Node => "node",
            };
            Language::ALL
                .into_iter()
                .filter(|it| environment.finds(command(*it)))
                .map(|language| Preload {
                    language,
                    command: ByteString::try_from(command(language)).unwrap_or_default(),
                    env: environment.variables.clone(),
                    path: environment.path.clone(),
                })
                .collect()
        })
    }

    /// Walks the whole path. A refusal is a record too; an error means that there is none.
    pub fn run(
        &self,
        seat: Seat,
        call: Call,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let (project, draft, plan) = self.receive(call.clone())?;
        let plan = plan.and_then(|planned| match planned {
            Planned::Ready(plan) => Ok(*plan),
            Planned::Asks(petition) => {
                self.ask_here(&draft, &project, call, *petition, io.approver)
            }
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return self.refuse(&draft, error),
        };
        if plan.assessed().call().mode == Mode::Mock {
            return self.mock(plan);
        }
        let is_kept = plan.berth().is_some();
        let walked = self.walk(seat, plan, project, settings, io);
        if is_kept {
            self.leave_sandboxes();
        }
        walked.or_else(|error| match error.stage {
            // It ran, and what it printed and left is there, though not its record.
            Stage::Close => Err(error.of_exec(draft.exec_id.clone())),
            _ => self.refuse(&draft, error.of_exec(draft.exec_id.clone())),
        })
    }

    /// Nothing runs, and that is on record.
    fn mock(&self, mut plan: Plan) -> Result<Exec> {
        plan.begin();
        let store = self.store()?;
        let (entry, record) = path::open(store, &self.owner, plan)?.mocked();
        path::end(store, entry, record, &mut |_| false)
    }

    pub(crate) fn walk(
        &self,
        seat: Seat,
        mut plan: Plan,
        project: Project,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let mut supply = OneSeat {
            seat: Some(seat),
            cancel: io.cancel,
        };
        let standing = self.prepare(&mut supply, &plan, project, settings)?;
        if let Some(unused) = supply.seat.take() {
            self.backends.keepers().lend(unused.native);
        }
        plan.begin();
        let call = plan.assessed().call();
        self.masks_for(&call.ids, call.vouched, &[])?;
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

    /// Writes down that nothing was started, and why. What the caller got wrong in asking, and what
    /// keeps us from writing anything, stays an error.
    fn refuse(&self, draft: &Draft, error: Error) -> Result<Exec> {
        let record = refusal(draft, error)?;
        self.masks_for(&record.ids, record.vouched, &[])?;
        self.store()?.refuse(record)
    }
}

/// The record of something that was not started; an error that leaves no record stays one.
pub(crate) fn refusal(draft: &Draft, error: Error) -> Result<Exec> {
    let status = match error.code {
        Code::PolicyDenied | Code::ApprovalUnavailable | Code::Denied | Code::Expired => {
            Status::PolicyDenied
        }
        Code::BackendUnavailable | Code::SetupFailed => Status::Error,
        _ => return Err(error),
    };
    let mut record = draft.record(status);
    record.ended_at = Some(jiff::Timestamp::now());
    record.error = Some(error.of_exec(draft.exec_id.clone()));
    Ok(record)
}
