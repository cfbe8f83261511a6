//! After a crash: what a killed process left running or half-recorded is found at the next start,
//! or by another server, taken down and written into the ledger. What belongs to a living process
//! is never touched. What only waited goes on waiting, under nobody's name, until a server takes it.

use std::path::PathBuf;

use glovebox_model::{BackendName, Code, DockerConfig, Error, Exec, Result, Stage, Writes};
use glovebox_store::{Store, dead_owners};

use crate::cgroup_cleanup;
use crate::containers::Container;
use crate::instance::Instance;

/// What one look found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Execs whose process is gone; they are `lost` now.
    pub lost: Vec<Exec>,
    /// Control groups that were still there.
    pub groups: Vec<PathBuf>,
}

impl Instance {
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
            let Some(groups) = cgroup_cleanup::clear(self.state(), &dead)? else {
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

impl Instance {
    /// Whether a process of this state directory is there. Those that died were settled at the start.
    pub(crate) fn is_alive(&self, owner: &str) -> bool {
        let is_id = !owner.is_empty() && owner.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id && self.state().owners().join(owner).exists()
    }

    /// Containers that a dead process had for its execs; those that are kept stay. One whose engine
    /// does not answer now is found when containers are next compared with the registry.
    pub(crate) fn end_containers_of(&self, store: &Store, owner: &str) -> Result<()> {
        let config = self.policy.house_docker();
        let found = self.backends().containers(&config).unwrap_or_default();
        let is_its = |it: &Container| it.owner.as_deref() == Some(owner);
        for container in found.into_iter().filter(is_its) {
            if is_kept(store, &container)? != Some(true) {
                self.remove_left(&config, &container);
            }
        }
        Ok(())
    }

    pub(crate) fn remove_left(&self, config: &DockerConfig, container: &Container) {
        if let Err(error) = self.backends().remove_named(config, &container.name) {
            tracing::warn!(name = container.name, %error, "a container could not be removed");
        }
    }
}

/// Whether the registry has it as a container; `None` when it does not know it.
pub(crate) fn is_kept(store: &Store, container: &Container) -> Result<Option<bool>> {
    let row = match &container.sandbox {
        Some(id) => store.sandbox_anywhere(id)?,
        None => None,
    };
    Ok(row.map(|row| row.sandbox.config.backend == BackendName::Docker))
}
