//! Keepers for what is not built by one: a container has none of its own, and needs one that ends it
//! in time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glovebox_cage::{Handle, Spawner};
use glovebox_model::Result;

use crate::native::{Native, unspawned};

/// Where they come from: a server's spawner, or the one keeper of a process that runs one exec.
/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Keepers(Arc<Source>);

#[derive(Debug, Default)]
struct Source {
    spawner: OnceLock<Arc<Spawner>>,
    unused: Mutex<Option<Native>>,
}

/// One keeper, which builds no sandbox.
#[derive(Debug)]
pub(crate) enum Keeper {
    Spawned(Handle),
    /// With the control groups that were made for it.
    Seated(Box<Native>),
}

impl Keeper {
    pub(crate) fn handle(&self) -> &Handle {
        match self {
            Self::Spawned(handle) => handle,
            Self::Seated(native) => native.keeper(),
        }
    }
}

impl Keepers {
    pub fn from_spawner(&self, spawner: Arc<Spawner>) {
        let _ = self.0.spawner.set(spawner);
    }

    /// A keeper that is not needed for a sandbox.
    pub fn share(&self, native: Native) {
        *self.0.unused.lock().unwrap_or_else(PoisonError::into_inner) = Some(native);
    }

    /// Whether what this process runs may still be written anywhere: its lease, if it has one, has
    /// not run out.
    pub fn is_leased(&self) -> bool {
        self.0.spawner.get().is_none_or(|it| it.is_leased())
    }

    /// None where there are none.
    pub(crate) fn take(&self) -> Result<Option<Keeper>> {
        if let Some(spawner) = self.0.spawner.get() {
            let handle = spawner.spawn().map_err(unspawned)?;
            return Ok(Some(Keeper::Spawned(handle)));
        }
        let mut unused = self.0.unused.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(unused.take().map(|it| Keeper::Seated(Box::new(it))))
    }
}
