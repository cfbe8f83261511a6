//! Sandboxes that outlive an exec: found or made for a session, an agent or everybody, used in
//! turns, taken down when nobody wants them any more. The registry in the store says whose each is;
//! a process uses only those that it owns there, so two servers never have one in common.

mod admin;
mod choice;
mod drift;
mod explain;
mod leased;
mod name;
mod one_shot;
mod registry;
#[cfg(test)]
pub(crate) mod sample;
mod slots;
mod start;
mod warm;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use glovebox_backend::Preload;
use glovebox_model::{
    Call, Code, Correlation, DockerConfig, Error, Lifetime, PartialProfile, Placement, Profile,
    ProjectId, Result, Sandbox, SandboxConfig, SandboxId, SandboxSettings, Stage, WorkspaceRef,
};

pub(crate) use admin::nothing_yet;
pub use admin::{Pruned, Recreated, SandboxRequest, Selection, Trouble};
pub use explain::{Next, SandboxExplanation};
pub use registry::SandboxRegistry;

use drift::more_than;
pub(crate) use leased::Leased;
use name::Scope;

use crate::approvals::tools_of;
use crate::backends::Chosen;
use crate::instance::Instance;
use crate::network::Network;
use crate::path::random;
use crate::workspaces::Workspaces;

/// The kept sandbox that an exec is to run in.
#[derive(Debug, Clone)]
pub(crate) struct SandboxAssignment {
    /// Of the one that is there, or of the one that will be made.
    pub(crate) id: SandboxId,
    /// There was none when we looked.
    is_new: bool,
    /// By whose scope it is found. None: it was named, and is taken as it is.
    scope: Option<Scope>,
    /// What one that is made now is made with, and what was asked for it.
    wanted: SandboxConfig,
    asked: PartialProfile,
    hot: Duration,
    patience: Duration,
}

/// Makes and finds sandboxes for execs.
#[derive(Debug)]
pub struct Sandboxes {
    pub(crate) instance: Arc<Instance>,
    pub(crate) registry: Arc<SandboxRegistry>,
    pub(crate) network: Arc<Network>,
    pub(crate) workspaces: Arc<Workspaces>,
    /// Containers were compared with the registry.
    reconciled: AtomicBool,
    preloads: OnceLock<Vec<Preload>>,
    /// Seats so far, so that the control groups of each have a name of their own.
    seats: AtomicU64,
}

impl Sandboxes {
    pub(crate) fn new(
        instance: &Arc<Instance>,
        registry: &Arc<SandboxRegistry>,
        network: &Arc<Network>,
        workspaces: &Arc<Workspaces>,
    ) -> Self {
        Self {
            instance: Arc::clone(instance),
            registry: Arc::clone(registry),
            network: Arc::clone(network),
            workspaces: Arc::clone(workspaces),
            reconciled: AtomicBool::new(false),
            preloads: OnceLock::new(),
            seats: AtomicU64::new(0),
        }
    }

    /// A call that says nothing runs where the configuration says; one that names a sandbox works
    /// on that sandbox's workspace.
    pub(crate) fn place(&self, call: &mut Call) -> Result<()> {
        // What is judged, or thrown away, has a sandbox of its own.
        let judged = || {
            let tools = tools_of(call);
            let tools: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
            self.instance
                .config()
                .may_judge(&call.ids, &tools, call.mode)
        };
        let alone =
            call.mode.is_judged() || call.over.is_some() || call.session.is_some() || judged();
        if call.session.is_some()
            && !matches!(
                call.placement,
                Placement::Fresh | Placement::Scope(Lifetime::Exec)
            )
        {
            let message = "a session has a sandbox of its own";
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("leave out `sandbox`; it can work on the same workspace"));
        }
        if call.placement == Placement::Fresh && !alone {
            let lifetime = self.instance.config().sandbox_for(&call.ids).lifetime;
            if lifetime != Lifetime::Exec && can_be_kept(&call.workspace) {
                call.placement = Placement::Scope(lifetime);
            }
        }
        match &call.placement {
            Placement::Fresh | Placement::Scope(Lifetime::Exec) => {
                call.placement = Placement::Fresh;
                Ok(())
            }
            Placement::Scope(_) if !can_be_kept(&call.workspace) => Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "a kept sandbox works on a workspace that Glovebox keeps",
            )
            .hint("name one with `--project NAME`")),
            Placement::Scope(lifetime) => {
                let WorkspaceRef::Project(project) = &call.workspace else {
                    return Ok(());
                };
                let scope = scope(&call.ids, *lifetime, project)?;
                // What it was asked to be when it was made still holds.
                if let Some(row) = self.registry.registered(&scope)? {
                    let own = std::mem::take(&mut call.overrides);
                    call.overrides = own.or(row.asked);
                }
                Ok(())
            }
            Placement::Named(name) => {
                let row = self.registry.own(&call.ids.space_id, name)?;
                call.workspace = WorkspaceRef::Project(row.project_id);
                Ok(())
            }
        }
    }

    /// The sandbox that an assessed call runs in. None: a fresh one. Nothing is registered yet: the
    /// call may still be refused.
    pub(crate) fn assignment(
        &self,
        call: &Call,
        profile: &Profile,
        chosen: &Chosen,
        asked: PartialProfile,
    ) -> Result<Option<SandboxAssignment>> {
        let mut is_new = false;
        let (id, scope, wanted, settings) = match (&call.placement, &call.workspace) {
            (Placement::Scope(lifetime), WorkspaceRef::Project(project)) => {
                let settings = self.instance.config().sandbox_of(&call.ids, *lifetime);
                let scope = scope(&call.ids, *lifetime, project)?;
                let id = match self.registry.registered(&scope)? {
                    Some(row) => row.sandbox_id,
                    None => {
                        is_new = true;
                        SandboxId::from_random(random()?)
                    }
                };
                (
                    id,
                    Some(scope),
                    config(profile, chosen, &settings),
                    settings,
                )
            }
            (Placement::Named(name), _) => {
                let row = self.registry.own(&call.ids.space_id, name)?;
                let settings = self.instance.config().sandbox_of(&call.ids, row.lifetime);
                let mut allowed = config(profile, chosen, &settings);
                if let Some(made) = &row.config.docker {
                    let now = self.instance.config().docker_for(&call.ids, row.lifetime);
                    allowed.docker = Some(DockerConfig {
                        runtime: made.runtime.clone(),
                        ..now
                    });
                }
                if let Some(more) = more_than(&row.config, &allowed) {
                    return Err(has_more(&row, more));
                }
                (row.sandbox_id, None, row.config, settings)
            }
            (Placement::Fresh | Placement::Scope(_), _) => return Ok(None),
        };
        Ok(Some(SandboxAssignment {
            id,
            is_new,
            scope,
            wanted,
            asked,
            hot: settings.hot_window.duration(),
            patience: settings.acquire_timeout.duration(),
        }))
    }
}

fn can_be_kept(workspace: &WorkspaceRef) -> bool {
    matches!(workspace, WorkspaceRef::Project(_))
}

fn scope(ids: &Correlation, lifetime: Lifetime, project: &ProjectId) -> Result<Scope> {
    let missing = |what: &str| {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("the lifetime `{what}` needs a name: it is not said which {what} it is for"),
        )
        .hint(format!(
            "name it: `--{what} ID`, or `{what}_id` in a request; or choose another lifetime"
        ))
    };
    let key = match lifetime {
        Lifetime::Exec | Lifetime::Shared => None,
        Lifetime::Agent => Some(ids.agent_id.clone().ok_or_else(|| missing("agent"))?),
        Lifetime::Session => Some(ids.session_id.clone().ok_or_else(|| missing("session"))?),
    };
    Ok(Scope {
        space: ids.space_id.clone(),
        project: project.clone(),
        lifetime,
        key,
        agent: match lifetime {
            Lifetime::Session => ids.agent_id.clone(),
            Lifetime::Exec | Lifetime::Agent | Lifetime::Shared => None,
        },
    })
}

/// What a sandbox for this profile is made with.
fn config(profile: &Profile, chosen: &Chosen, settings: &SandboxSettings) -> SandboxConfig {
    SandboxConfig {
        backend: chosen.backend,
        image: chosen.image.clone(),
        workspace: profile.workspace,
        network: profile.network,
        limits: profile.limits,
        keep_root: settings.keep_root,
        docker: chosen.docker.clone(),
    }
}

fn gone(id: &SandboxId) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Admit,
        format!("the sandbox `{id}` was removed meanwhile"),
    )
}

fn has_more(row: &Sandbox, more: &str) -> Error {
    let name = &row.name;
    Error::new(
        Code::Conflict,
        Stage::Admit,
        format!("the sandbox `{name}` was made with more {more} than this exec may have"),
    )
    .hint("ask for no less than it has, or run it in a sandbox of its own")
    .hint(format!(
        "when the configuration has changed, make it anew: `glovebox sandbox recreate {name}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::registry::held_elsewhere;
    use super::*;
    use glovebox_model::SpaceId;

    #[test]
    fn who_names_no_agent_or_session_learns_how() {
        let ids = Correlation::of_space(SpaceId::local());
        let project = "p".parse().unwrap();
        for (lifetime, flag, field) in [
            (Lifetime::Agent, "--agent", "agent_id"),
            (Lifetime::Session, "--session", "session_id"),
        ] {
            let error = scope(&ids, lifetime, &project).unwrap_err();
            assert!(!error.message.contains(" a agent"), "{error}");
            let hint = error.hints.join("\n");
            assert!(hint.contains(flag) && hint.contains(field), "{hint}");
        }
        assert!(scope(&ids, Lifetime::Shared, &project).is_ok());
    }

    #[test]
    fn nobody_is_told_to_ask_a_living_process_again_in_a_moment() {
        let error = held_elsewhere(&sample::sandbox());
        assert_eq!(error.retry.after_ms, None);
        assert!(error.message.contains("another process"), "{error}");
    }
}
