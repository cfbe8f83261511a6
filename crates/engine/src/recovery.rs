//! After a crash: what a killed process left running or half-recorded is found at the next start,
//! taken down and written into the ledger. What belongs to a living process is never touched.

use std::path::PathBuf;

use glovebox_model::{Exec, Result};
use glovebox_store::{Owner, StateDir, Store, dead_owners};

use crate::leftovers;

/// What one start found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Execs whose process is gone; they are `lost` now.
    pub lost: Vec<Exec>,
    /// Control groups that were still there.
    pub groups: Vec<PathBuf>,
}

pub(crate) fn recover(state: &StateDir, store: &Store, own: &Owner) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    for dead in dead_owners(state, Some(own))? {
        // Left for the next start, rows and all: they stay `running` as long as something of them
        // may still run.
        let Some(groups) = leftovers::clear(state, &dead)? else {
            continue;
        };
        recovered.groups.extend(groups);
        recovered.lost.extend(store.recover(dead.id())?);
        dead.settle()?;
    }
    // An owner whose file is gone too, after a power loss or a clean end in the middle.
    for stray in store.stray_owners(state)? {
        recovered.lost.extend(store.recover(&stray)?);
    }
    Ok(recovered)
}
