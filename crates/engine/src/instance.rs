//! One process on a state directory: who it is there, what is stored, where files lie, which policy is
//! in force and which backends there are. Every part of the engine stands on it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glovebox_backend::Ground;
use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use glovebox_policy::Config;
use glovebox_store::{Owner, StateDir, Store};
use glovebox_workspace::{Dir, Layout};

use crate::backends::Backends;
use crate::cgroup_cleanup;
use crate::patience::Wait;
use crate::policy::ActivePolicy;
use crate::recovery::Recovered;
use crate::secrets::Known;

/// What an engine is opened for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// Many callers, none of whom started this process.
    pub(crate) serves: bool,
    /// What other processes left is neither taken over nor tidied.
    pub(crate) only_own: bool,
    /// What dead processes left is taken down when the store is opened.
    pub(crate) recovers: bool,
}

impl Purpose {
    /// The person at the machine, with one command.
    pub(crate) const COMMAND: Self = Self {
        serves: false,
        only_own: false,
        recovers: true,
    };
}

#[derive(Debug)]
pub(crate) struct Instance {
    state: StateDir,
    owner: Owner,
    pub(crate) ground: Ground,
    /// Opened when it is first needed: a sandbox is built meanwhile.
    store: OnceLock<(Store, Recovered)>,
    database: Option<String>,
    layouts: Mutex<HashMap<SpaceId, Arc<Layout>>>,
    pub(crate) policy: ActivePolicy,
    known_secrets: Known,
    backends: Backends,
    purpose: Purpose,
    /// Called once, when what a crash left was found.
    on_lost: OnceLock<OnLost>,
}

type Hook = Box<dyn Fn() + Send + Sync>;

struct OnLost(Hook);

impl fmt::Debug for OnLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLost")
    }
}

impl Instance {
    /// Nothing of the state directory but its owner's file is touched yet.
    pub(crate) fn open(
        state: StateDir,
        database: Option<String>,
        policy: ActivePolicy,
        purpose: Purpose,
    ) -> Result<Self> {
        let owner = Owner::claim(&state)?;
        let ground = Ground::look();
        cgroup_cleanup::note(&state, &owner, &ground)?;
        Ok(Self {
            backends: Backends::new(&state),
            state,
            owner,
            ground,
            store: OnceLock::new(),
            database,
            layouts: Mutex::default(),
            policy,
            known_secrets: Known::default(),
            purpose,
            on_lost: OnceLock::new(),
        })
    }

    /// Takes down what a crash left before anything else is written.
    pub(crate) fn store(&self) -> Result<&Store> {
        if let Some((store, _)) = self.store.get() {
            return Ok(store);
        }
        let patience = Wait::Store.within(glovebox_store::PATIENCE);
        let store = match &self.database {
            None if self.purpose.serves => Store::open_to_serve(&self.state, patience)?,
            None => Store::open_with_patience(&self.state, patience)?,
            Some(address) => Store::connect_with_patience(&self.state, address, patience)?,
        };
        store.mask_with(self.known_secrets.clone());
        let recovered = match self.purpose.recovers {
            true => self.recover(&store)?,
            false => Recovered::default(),
        };
        let (store, recovered) = self.store.get_or_init(|| (store, recovered));
        if !recovered.lost.is_empty()
            && let Some(OnLost(hook)) = self.on_lost.get()
        {
            hook();
        }
        Ok(store)
    }

    pub(crate) fn known_secrets(&self) -> &Known {
        &self.known_secrets
    }

    pub(crate) fn state(&self) -> &StateDir {
        &self.state
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Where the files of a space lie.
    pub(crate) fn layout(&self, space: &SpaceId) -> Result<Arc<Layout>> {
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
    pub(crate) fn recovered(&self) -> Option<&Recovered> {
        self.store.get().map(|(_, recovered)| recovered)
    }

    /// Other servers use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    pub(crate) fn backends(&self) -> &Backends {
        &self.backends
    }

    /// `hook` is called when the store was opened and execs were found whose process is gone.
    pub(crate) fn on_lost(&self, hook: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_lost.set(OnLost(Box::new(hook)));
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        self.policy.config()
    }

    /// Many callers, none of whom started this process.
    pub(crate) fn is_server(&self) -> bool {
        self.purpose.serves
    }

    /// What other processes left is neither taken over nor tidied.
    pub(crate) fn only_own(&self) -> bool {
        self.purpose.only_own
    }
}
