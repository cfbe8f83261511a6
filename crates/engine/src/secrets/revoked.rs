//! Taking back: who is told, and what is said of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_model::{GrantId, Secret, SecretGrant, SecretName, SpaceId};
use serde::{Deserialize, Serialize};

use super::hold::Hold;

/// What may not be used from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    pub space: SpaceId,
    pub secret: SecretName,
    /// What this grant gave; without one everything of this secret.
    pub grant: Option<GrantId>,
}

/// A secret that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Removal {
    pub secret: Secret,
    /// Grants that ended with it.
    pub revoked: Vec<SecretGrant>,
    /// Running execs that have the value and keep it until they end.
    pub still_held: Vec<Hold>,
}

/// Grants that give nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Revocation {
    pub revoked: Vec<SecretGrant>,
    /// Running execs that have the value and keep it until they end.
    pub still_held: Vec<Hold>,
}

type Hook = Arc<dyn Fn(&Revoked) + Send + Sync>;

#[derive(Default)]
struct Hooks {
    next: u64,
    all: BTreeMap<u64, Hook>,
}

/// Those who want to hear of it.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<Mutex<Hooks>>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listeners")
    }
}

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, Hooks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, hook: impl Fn(&Revoked) + Send + Sync + 'static) -> RevokedWatch {
        let mut hooks = self.lock();
        let number = hooks.next;
        hooks.next += 1;
        hooks.all.insert(number, Arc::new(hook));
        RevokedWatch {
            listeners: self.clone(),
            number,
        }
    }

    /// Nobody is called while the list is locked: whoever is may leave it.
    pub(super) fn tell(&self, revoked: &Revoked) {
        let hooks: Vec<Hook> = self.lock().all.values().cloned().collect();
        for hook in hooks {
            hook(revoked);
        }
    }
}

/// As long as it is held, the hook is called.
#[derive(Debug)]
#[must_use = "the hook is not called any more when this is dropped"]
pub struct RevokedWatch {
    listeners: Listeners,
    number: u64,
}

impl Drop for RevokedWatch {
    fn drop(&mut self) {
        self.listeners.lock().all.remove(&self.number);
    }
}
