//! The policy in force: what it says of a call, and of who may see what.

use std::sync::{PoisonError, RwLock};

use glovebox_model::{
    Call, Correlation, DockerConfig, Lifetime, Mode, Profile, Pull, Result, SpaceId,
};
use glovebox_policy::{Asking, Assessed, Config, Explanation, HostFacts, Layer, Surface};

use crate::approvals::tool_of;

#[derive(Debug)]
pub struct ActivePolicy {
    /// One that was replaced stays in memory: what began under it may still read it.
    config: RwLock<&'static Config>,
    shadow: Option<Config>,
    surface: Surface,
    host: HostFacts,
}

impl ActivePolicy {
    pub(crate) fn new(
        config: Config,
        shadow: Option<Config>,
        surface: Surface,
        host: HostFacts,
    ) -> Self {
        Self {
            config: RwLock::new(Box::leak(Box::new(config))),
            shadow,
            surface,
            host,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        *self.config.read().unwrap_or_else(PoisonError::into_inner)
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

    /// The engine fetches only what the operator's configuration names: an image that a caller names
    /// would have it speak to whatever registry the caller likes, and nobody vets what it dials.
    pub(crate) fn docker_for(
        &self,
        call: &Call,
        profile: &Profile,
        lifetime: Lifetime,
    ) -> DockerConfig {
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

    /// The container settings that do not depend on who asks.
    pub(crate) fn house_docker(&self) -> DockerConfig {
        let ids = Correlation::of_space(SpaceId::local());
        self.config().docker_for(&ids, Lifetime::Shared)
    }
}
