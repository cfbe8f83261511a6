//! Which sandbox a call would get, and why.

use glovebox_model::{Guarantee, Result, Sandbox, SandboxConfig, SandboxState};
use glovebox_policy::{Decided, demand};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::admin::{SandboxRequest, nothing_yet};
use super::drift::{Drift, drift, hash_of};
use crate::sandboxes::Sandboxes;

/// What the next exec finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// None is there yet.
    New,
    Same,
    /// One of another configuration, which was used a moment ago and stays.
    Kept,
    Replaced,
    /// One that has more than policy allows now.
    Refused,
}

impl Next {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Refused => "refused",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SandboxExplanation {
    pub name: String,
    pub lifetime: glovebox_model::Lifetime,
    pub scope: Option<String>,
    pub project_id: glovebox_model::ProjectId,
    /// The one that is there, if one is.
    pub sandbox: Option<Sandbox>,
    /// What one that is made now is made with.
    pub config: SandboxConfig,
    pub config_hash: String,
    pub next: Next,
    /// What policy demands of the backend.
    pub demanded: Vec<Guarantee>,
    /// Which section of the configuration decided each container setting.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub sources: Vec<Decided>,
    pub fix_it: Vec<String>,
}

impl Sandboxes {
    pub fn explain(&self, request: &SandboxRequest) -> Result<SandboxExplanation> {
        let call = nothing_yet(request);
        let ids = call.ids.clone();
        let settings = self.instance.config().sandbox_of(&ids, request.lifetime);
        let (profile, chosen) = self.look_ahead(call)?;
        let scope = super::scope(&ids, request.lifetime, &request.project)?;
        let config = super::config(&profile, &chosen, &settings);
        let name = self.registry.name_of(&scope);
        let found = self
            .instance
            .store()?
            .sandbox_of_scope(&scope.space, &name)?;
        let sandbox = match found {
            Some(_) => Some(self.registry.get(&scope.space, &name)?),
            None => None,
        };
        let hot = settings.hot_window.duration();
        let recreate = format!("`glovebox sandbox recreate {name}` makes it anew");
        let mut fix_it = Vec::new();
        let next = match sandbox.as_ref().map(|row| {
            let stands = row.state != SandboxState::Down;
            drift(row, stands, &config, Timestamp::now(), hot)
        }) {
            None => Next::New,
            Some(Drift::None) => Next::Same,
            Some(Drift::Keep) => {
                fix_it.push(recreate);
                Next::Kept
            }
            Some(Drift::Replace) => Next::Replaced,
            Some(Drift::Refuse { more }) => {
                fix_it.push(format!(
                    "it has more {more} than policy allows now; {recreate}"
                ));
                Next::Refused
            }
        };
        if let Some(trouble) = sandbox.as_ref().and_then(|row| row.trouble.clone()) {
            fix_it.push(format!("it is down: {trouble}"));
        }
        Ok(SandboxExplanation {
            name,
            lifetime: request.lifetime,
            scope: scope.key,
            project_id: scope.project,
            sandbox,
            config_hash: hash_of(&config),
            config,
            next,
            demanded: demand(&profile).into_iter().collect(),
            sources: self
                .instance
                .config()
                .docker_sources(&ids, request.lifetime),
            fix_it,
        })
    }
}
