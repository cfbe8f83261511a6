//! The engine: everything that execs need of one state directory, put together.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_backend::{Cancel, Control, Native, Sink};
use glovebox_model::{Error, Result};
use glovebox_policy::{Config, HostFacts, Surface};
use glovebox_store::{StateDir, Store};

use crate::approvals::{Approvals, Approver};
use crate::effects::{Effects, Listener, Simulations};
use crate::instance::{Instance, Purpose};
use crate::network::Network;
use crate::policy::ActivePolicy;
use crate::recovery::Recovered;
use crate::sandboxes::{SandboxRegistry, Sandboxes};
use crate::secrets::{KeySource, SecretAccess, Vault};
use crate::webhooks::Webhooks;
use crate::workspaces::Workspaces;

/// The caller's side of a run.
#[expect(missing_debug_implementations, reason = "a sink has nothing to show")]
pub struct Io<'io> {
    pub stdin: Option<OwnedFd>,
    /// Output as it comes, beside the files.
    pub live: &'io mut dyn Sink,
    pub cancel: &'io Cancel,
    /// What is done to the program of a session while it runs.
    pub control: Option<&'io Control>,
    /// Why it was canceled, when it was not the caller who did.
    pub stopped: Option<&'io dyn Fn() -> Option<Error>>,
    /// Who is asked when policy wants a person to agree.
    pub approver: Option<&'io dyn Approver>,
    /// Who hears of effects as they are seen.
    pub effects: Option<Arc<dyn Listener>>,
    /// What the program is given to read, where that is known and can be given again.
    pub replayable: Option<&'io [u8]>,
    /// Where what a gate runs gets its keeper from.
    pub seats: Option<&'io dyn Fn() -> Result<KeeperSlot>>,
    /// Whether an outcome that could not be written is tried once more.
    pub again: Option<&'io dyn Fn(&Error) -> bool>,
}

impl<'io> Io<'io> {
    /// With output and nothing else.
    pub fn new(live: &'io mut dyn Sink, cancel: &'io Cancel) -> Self {
        Self {
            stdin: None,
            live,
            cancel,
            control: None,
            stopped: None,
            approver: None,
            effects: None,
            replayable: None,
            seats: None,
            again: None,
        }
    }
}

/// Everything that walks the path, put together.
#[derive(Debug)]
pub struct Engine {
    pub(crate) instance: Arc<Instance>,
    pub(crate) secrets: Arc<SecretAccess>,
    pub network: Arc<Network>,
    pub simulations: Arc<Simulations>,
    pub registry: Arc<SandboxRegistry>,
    pub(crate) workspaces: Arc<Workspaces>,
    pub sandboxes: Sandboxes,
    pub approvals: Approvals,
    pub(crate) effects: Effects,
    pub webhooks: Webhooks,
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
pub struct KeeperSlot {
    pub(crate) native: Native,
}

impl Engine {
    /// For one command. Nothing of the state directory but its owner's file is touched yet.
    pub fn open(settings: Settings) -> Result<Self> {
        Self::open_for(settings, Purpose::COMMAND, None)
    }

    /// `shares` is a directory of the machine's user that callers may work in.
    pub(crate) fn open_for(
        settings: Settings,
        purpose: Purpose,
        shares: Option<&Path>,
    ) -> Result<Self> {
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
        let vault = Vault::new(&state, secrets_key);
        let policy = ActivePolicy::new(config, shadow, surface, host);
        let instance = Arc::new(Instance::open(state, database, policy, purpose)?);
        let secrets = Arc::new(SecretAccess::new(&instance, vault));
        let network = Arc::new(Network::new(&instance, &secrets));
        let simulations = Arc::new(Simulations::new(&instance));
        let registry = Arc::new(SandboxRegistry::new(&instance));
        let workspaces = Workspaces::new(&instance, &secrets, &simulations, &registry, homes);
        let workspaces = Arc::new(workspaces.sharing(shares)?);
        let weak = Arc::downgrade(&workspaces);
        instance.on_lost(move || {
            // One of them may have been carrying its changes over. What cannot be finished now keeps
            // its note, and is finished before anything else is done in that workspace.
            if let Some(workspaces) = weak.upgrade() {
                let _ = workspaces.finish_all();
            }
        });
        Ok(Self {
            sandboxes: Sandboxes::new(&instance, &registry, &network, &workspaces),
            approvals: Approvals::new(&instance, &secrets, &simulations),
            effects: Effects::new(&instance, &network),
            webhooks: Webhooks::new(&instance, &network, &secrets),
            instance,
            secrets,
            network,
            simulations,
            registry,
            workspaces,
        })
    }

    /// Takes down what a crash left before anything else is written.
    pub fn store(&self) -> Result<&Store> {
        self.instance.store()
    }

    /// What this start found of an earlier crash, once the store is open.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.instance.recovered()
    }

    pub fn policy(&self) -> &ActivePolicy {
        &self.instance.policy
    }

    pub(crate) fn config(&self) -> &Config {
        self.instance.config()
    }
}
