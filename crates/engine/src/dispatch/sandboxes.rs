//! Kept sandboxes, as a server's callers see them.

use glovebox_model::{BackendName, Correlation, Error, Lifetime, Result, Sandbox, SpaceId};

use super::Dispatcher;
use super::pooled_source::PooledSource;
use super::seen::no_sandbox;
use crate::backends::BackendView;
use crate::sandboxes::{Pruned, Recreated, SandboxExplanation, SandboxRequest, Selection};
use crate::visibility::{Seen, Viewer};

/// The container engine that the configuration speaks of.
#[derive(Debug)]
pub struct ContainerEngine {
    /// Calls that wish for nothing run there.
    pub is_usual: bool,
    pub cli: String,
    pub version: Option<String>,
    pub context: Option<String>,
    /// Why nothing can be run there now.
    pub error: Option<Error>,
}

impl Dispatcher {
    /// Waits until it stands.
    pub fn create_sandbox(&self, eyes: &Viewer, request: SandboxRequest) -> Result<Sandbox> {
        self.may_work_on(eyes, &request.project)?;
        let mut supply = PooledSource {
            dispatcher: self,
            cancel: None,
        };
        self.engine.sandboxes.create(request, &mut supply)
    }

    /// As it is now.
    pub fn sandbox(&self, eyes: &Viewer, row: &Seen<Sandbox>) -> Result<Sandbox> {
        let name = row.sandbox_id.as_str();
        let row = self.engine.registry.get(&row.space_id, name)?;
        let seen = self.engine.policy().seen_sandbox(eyes, row);
        seen.map(Seen::into_inner).ok_or_else(no_sandbox)
    }

    pub fn explain_sandbox(
        &self,
        eyes: &Viewer,
        request: &SandboxRequest,
    ) -> Result<SandboxExplanation> {
        self.may_work_on(eyes, &request.project)?;
        self.engine.sandboxes.explain(request)
    }

    pub fn remove_sandbox(&self, row: &Seen<Sandbox>) -> Result<Sandbox> {
        let name = row.sandbox_id.as_str();
        let removed = self.engine.sandboxes.remove(&row.space_id, name, "removed");
        self.leave_if_command();
        removed
    }

    /// Those of them that are there for them.
    pub fn recreate_sandboxes(&self, eyes: &Viewer, which: &Selection) -> Result<Recreated> {
        let done = self.engine.sandboxes.recreate_all(eyes, which);
        self.leave_if_command();
        done
    }

    pub fn prune_sandboxes(&self) -> Result<Pruned> {
        let done = self.engine.sandboxes.prune();
        self.leave_if_command();
        done
    }

    /// A process without a spawner ends after one command: the sandboxes that it held to change them
    /// are free for others again.
    fn leave_if_command(&self) {
        if self.spawner.is_none() {
            self.engine.registry.leave();
        }
    }

    /// The rows of those that this server has.
    pub fn own_sandboxes(&self) -> Vec<Sandbox> {
        self.engine.registry.slots().rows()
    }

    /// Every way to run something here, with what each gives.
    pub fn backends(&self, ids: &Correlation) -> Vec<BackendView> {
        let config = self.engine.config().docker_for(ids, Lifetime::Exec);
        self.engine.instance.backends().all(&config)
    }

    /// None where the configuration says nothing of containers: then nobody is asked.
    pub fn container_engine(&self) -> Option<ContainerEngine> {
        let ids = Correlation::of_space(SpaceId::local());
        let said = self.engine.config().docker_sources(&ids, Lifetime::Exec);
        let usual = self.engine.sandboxes.usual();
        let is_usual = usual.is_ok_and(|(_, chosen)| chosen.backend == BackendName::Docker);
        if !is_usual && said.iter().all(|it| it.by.source.is_none()) {
            return None;
        }
        let config = self.engine.config().docker_for(&ids, Lifetime::Exec);
        let probe = self.engine.instance.backends().probe(&config);
        let facts = probe.and_then(|probe| probe.usable.clone());
        let known = |text: String| (!text.is_empty()).then_some(text);
        Some(match facts {
            Ok(facts) => ContainerEngine {
                is_usual,
                cli: facts.cli,
                version: known(facts.server_version),
                context: known(facts.context),
                error: None,
            },
            Err(error) => ContainerEngine {
                is_usual,
                cli: config.cli,
                version: None,
                context: None,
                error: Some(error),
            },
        })
    }
}
