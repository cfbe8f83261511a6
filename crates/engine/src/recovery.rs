//! After a crash: what a killed process left running or half-recorded is found at the next start,
//! or by another server, taken down and written into the ledger. What belongs to a living process
//! is never touched. What only waited goes on waiting, under nobody's name, until a server takes it.

use std::path::PathBuf;

use glovebox_model::{Code, Error, Exec, Result, Stage, Writes};
use glovebox_store::{Store, dead_owners};

use crate::engine::Engine;
use crate::leftovers;

/// What one look found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Execs whose process is gone; they are `lost` now.
    pub lost: Vec<Exec>,
    /// Control groups that were still there.
    pub groups: Vec<PathBuf>,
}

impl Engine {
    /// For a command that looks at the store alone, which other processes may be using.
    pub(crate) fn without_recovery(mut self) -> Self {
        self.recovers = false;
        self
    }

    /// Before something is written for an exec that another server may have taken over.
    pub(crate) fn ensure_leased(&self) -> Result<()> {
        match self.backends().keepers().is_leased() {
            true => Ok(()),
            false => Err(Error::new(
                Code::Lost,
                Stage::Judge,
                "the server's lease on its database ran out",
            )
            .hint(
                "another server may have taken over; look at the workspace before running it again",
            )),
        }
    }

    /// Takes down what dead processes left, and writes it into the ledger.
    pub(crate) fn recover(&self, store: &Store) -> Result<Recovered> {
        let mut recovered = Recovered::default();
        for dead in dead_owners(self.state(), Some(self.owner()))? {
            // Left for the next start, rows and all: they stay `running` as long as something of them
            // may still run.
            let Some(groups) = leftovers::clear(self.state(), &dead)? else {
                continue;
            };
            recovered.groups.extend(groups);
            // An engine lets containers run on, whoever started them.
            self.end_containers_of(store, dead.id())?;
            // Its lease may not have run out, but nobody is there to renew it.
            store.retire(dead.id())?;
            recovered.lost.extend(store.recover(dead.id())?);
            dead.settle()?;
        }
        let strays = if store.is_shared() {
            // On another machine, stopped, or cut off from the database: its keepers have ended
            // what it ran by now.
            store.expired_owners()?
        } else {
            // An owner whose file is gone too, after a power loss or a clean end in the middle.
            store.stray_owners(self.state())?
        };
        for stray in &strays {
            match store.recover(stray) {
                // It has renewed its lease meanwhile.
                Err(error) if error.code == Code::Conflict => {}
                lost => recovered.lost.extend(lost?),
            }
        }
        self.drop_layers(&recovered.lost);
        Ok(recovered)
    }

    /// What was to be thrown away at the end of an exec that never came to it.
    fn drop_layers(&self, lost: &[Exec]) {
        for exec in lost {
            let Ok(layout) = self.layout(&exec.ids.space_id) else {
                continue;
            };
            // What cannot be removed stays where it is: nobody can keep it.
            let _ = layout.clear_ground(&exec.project_id, &exec.exec_id);
            if exec.writes == Writes::Dropped {
                let _ = layout.let_go(&exec.project_id, &exec.exec_id);
            }
        }
    }
}
