//! Kept sandboxes, as a server's callers see them.

use glovebox_model::{BackendName, Correlation, Error, Lifetime, Result, Sandbox, SpaceId};

use super::Dispatcher;
use super::stock::Stock;
use crate::backends::BackendView;
use crate::kept::{Pruned, Recreated, SandboxExplanation, SandboxRequest, Selection};

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
    pub fn create_sandbox(&self, request: SandboxRequest) -> Result<Sandbox> {
        let mut supply = Stock {
            dispatcher: self,
            cancel: None,
        };
        self.engine.create_sandbox(request, &mut supply)
    }

    pub fn sandboxes(&self, space: &SpaceId) -> Result<Vec<Sandbox>> {
        self.engine.sandboxes(space)
    }

    pub fn sandbox(&self, space: &SpaceId, name: &str) -> Result<Sandbox> {
        self.engine.sandbox(space, name)
    }

    pub fn explain_sandbox(&self, request: &SandboxRequest) -> Result<SandboxExplanation> {
        self.engine.explain_sandbox(request)
    }

    pub fn remove_sandbox(&self, space: &SpaceId, name: &str) -> Result<Sandbox> {
        self.engine.remove_sandbox(space, name, "removed")
    }

    pub fn recreate_sandboxes(&self, space: &SpaceId, which: &Selection) -> Result<Recreated> {
        self.engine.recreate_sandboxes(space, which)
    }

    pub fn prune_sandboxes(&self) -> Result<Pruned> {
        self.engine.prune_sandboxes()
    }

    /// The rows of those that this server has.
    pub fn own_sandboxes(&self) -> Vec<Sandbox> {
        self.engine.slots().rows()
    }

    /// Every way to run something here, with what each gives.
    pub fn backends(&self, ids: &Correlation) -> Vec<BackendView> {
        let config = self.engine.config().docker_for(ids, Lifetime::Exec);
        self.engine.backends().all(&config)
    }

    /// None where the configuration says nothing of containers: then nobody is asked.
    pub fn container_engine(&self) -> Option<ContainerEngine> {
        let ids = Correlation::of_space(SpaceId::local());
        let said = self.engine.config().docker_sources(&ids, Lifetime::Exec);
        let usual = self.engine.usual();
        let is_usual = usual.is_ok_and(|(_, chosen)| chosen.backend == BackendName::Docker);
        if !is_usual && said.iter().all(|it| it.by.source.is_none()) {
            return None;
        }
        let config = self.engine.config().docker_for(&ids, Lifetime::Exec);
        let probe = self.engine.backends().probe(&config);
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
