//! What operators and maintenance do with kept sandboxes: make, list, make anew, prune,
//! remove. One that fails never stops the rest.

use std::sync::atomic::Ordering;
use std::time::Duration;

use glovebox_model::{
    BackendName, ByteString, Call, Code, Correlation, Error, Lifetime, OnExceed, PartialProfile,
    Placement, Program, ProjectId, Result, Sandbox, SandboxConfig, SandboxState, SpaceId, Stage,
    WorkspaceRef,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::drift::hash_of;
use super::registry::PAGE;
use super::{SandboxAssignment, Sandboxes};
use crate::path::SandboxSource;
use crate::recovery::is_kept;
use crate::visibility::{OF_AGENT, Seen, Viewer, named_after, of_session};

/// What a sandbox is asked to be.
#[derive(Debug, Clone)]
pub struct SandboxRequest {
    pub ids: Correlation,
    pub lifetime: Lifetime,
    pub project: ProjectId,
    pub on_exceed: OnExceed,
    pub overrides: PartialProfile,
}

/// Which of a space's sandboxes are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    All,
    /// Those that policy would make otherwise now.
    Mismatched,
    Agent(String),
    Session(String),
    /// By id or name.
    One(String),
}

/// Something that did not work for one of many.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trouble {
    pub name: String,
    pub error: Error,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recreated {
    /// Taken down; each is built from today's configuration when it is next used.
    pub recreated: Vec<Sandbox>,
    pub failed: Vec<Trouble>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pruned {
    pub removed: Vec<String>,
    pub failed: Vec<Trouble>,
}

/// Removing and recreating wait no longer for the exec in it, and no longer than an exec would.
const PATIENCE: Duration = Duration::from_secs(10);
/// The last exec has ended; its turn may still be given back.
const LAST_TURN: Duration = Duration::from_secs(1);

impl Sandboxes {
    fn patience(&self) -> Duration {
        let of_execs = self.instance.config().sandbox_settings().acquire_timeout;
        of_execs.duration().clamp(LAST_TURN, PATIENCE)
    }

    /// Makes a sandbox and waits until it stands.
    pub(crate) fn create(
        &self,
        request: SandboxRequest,
        supply: &mut dyn SandboxSource,
    ) -> Result<Sandbox> {
        let call = nothing_yet(&request);
        let (profile, chosen) = self.look_ahead(call.clone())?;
        let scope = super::scope(&call.ids, request.lifetime, &request.project)?;
        let name = self.registry.name_of(&scope);
        if self
            .instance
            .store()?
            .sandbox_of_scope(&scope.space, &name)?
            .is_some()
        {
            return Err(Error::new(
                Code::Conflict,
                Stage::Admit,
                format!("the sandbox `{name}` is there already"),
            )
            .hint(format!("use it: `glovebox exec {name} -- COMMAND`"))
            .hint(format!(
                "or make it anew: `glovebox sandbox recreate {name}`"
            )));
        }
        let project = self.workspaces.project(&call)?;
        let assignment = self
            .assignment(&call, &profile, &chosen, request.overrides)?
            .ok_or_else(|| Error::new(Code::Internal, Stage::Admit, "no place was reserved"))?;
        drop(self.raise(&assignment, None, &profile, &project, supply)?);
        self.registry.get(&scope.space, &name)
    }

    /// What was never there is not registered; what somebody uses meanwhile is theirs.
    pub(super) fn forget_unmade(&self, assignment: &SandboxAssignment) {
        if let (true, Some(scope)) = (assignment.is_new, &assignment.scope) {
            let place = (&scope.space, assignment.id.as_str());
            let never_used = |row: &Sandbox| row.uses == 0;
            let _ = self.remove_if(place, "could not be made", Duration::ZERO, &never_used);
        }
    }

    /// Ends it with everything that only it had. Its workspace stays.
    pub fn remove(&self, space: &SpaceId, name: &str, reason: &str) -> Result<Sandbox> {
        let removed = self.remove_if((space, name), reason, self.patience(), &|_| true)?;
        removed.ok_or_else(|| Error::new(Code::Internal, Stage::Admit, "it was not removed"))
    }

    /// None: when its turn came, it was not to be removed any more.
    fn remove_if(
        &self,
        (space, name): (&SpaceId, &str),
        reason: &str,
        patience: Duration,
        is_meant: &dyn Fn(&Sandbox) -> bool,
    ) -> Result<Option<Sandbox>> {
        let row = self.registry.own(space, name)?;
        let mut turn = self
            .registry
            .slots()
            .take(&row.sandbox_id, None, patience, &|| true)
            .map_err(|error| in_use(&row, error))?;
        let row = turn.row().unwrap_or(row);
        if !is_meant(&row) {
            return Ok(None);
        }
        self.take_down(turn.kept.take(), &row)?;
        self.instance.store()?.sandbox_remove(
            &row.sandbox_id,
            self.instance.owner().id(),
            reason,
        )?;
        drop(turn.forget());
        Ok(Some(row))
    }

    pub fn recreate_all(&self, eyes: &Viewer, which: &Selection) -> Result<Recreated> {
        let space = eyes.space();
        let rows = match which {
            Selection::One(name) => vec![self.registry.own(space, name)?],
            _ => self.registry.list(space)?,
        };
        let mut done = Recreated::default();
        let seen = rows
            .into_iter()
            .filter_map(|row| self.instance.policy.seen_sandbox(eyes, row));
        for row in seen.map(Seen::into_inner) {
            let wanted = self.wanted_now(&row);
            let is_meant = match which {
                Selection::All | Selection::One(_) => true,
                Selection::Mismatched => wanted
                    .as_ref()
                    .is_ok_and(|wanted| hash_of(wanted) != row.config_hash),
                Selection::Agent(agent) => is_of(&row, Lifetime::Agent, agent),
                Selection::Session(session) => is_of(&row, Lifetime::Session, session),
            };
            if !is_meant {
                continue;
            }
            match wanted.and_then(|wanted| self.recreate(&row, &wanted)) {
                Ok(row) => done.recreated.push(row),
                Err(error) => done.failed.push(Trouble {
                    name: row.name,
                    error,
                }),
            }
        }
        Ok(done)
    }

    fn recreate(&self, row: &Sandbox, wanted: &SandboxConfig) -> Result<Sandbox> {
        let row = self.registry.own(&row.space_id, &row.name)?;
        let mut turn = self
            .registry
            .slots()
            .take(&row.sandbox_id, None, self.patience(), &|| true)
            .map_err(|error| in_use(&row, error))?;
        self.replace(&mut turn, wanted, "recreated")?;
        drop(turn);
        self.registry.get(&row.space_id, row.sandbox_id.as_str())
    }

    /// What policy would make this sandbox with today.
    pub(crate) fn wanted_now(&self, row: &Sandbox) -> Result<SandboxConfig> {
        let mut ids = Correlation::of_space(row.space_id.clone());
        match row.lifetime {
            Lifetime::Agent => ids.agent_id.clone_from(&row.scope),
            Lifetime::Session => {
                ids.session_id.clone_from(&row.scope);
                ids.agent_id.clone_from(&row.agent_id);
            }
            Lifetime::Exec | Lifetime::Shared => {}
        }
        let request = SandboxRequest {
            ids,
            lifetime: row.lifetime,
            project: row.project_id.clone(),
            // Policy may have become narrower since.
            on_exceed: OnExceed::Cap,
            overrides: row.asked.clone(),
        };
        let call = nothing_yet(&request);
        let settings = self.instance.config().sandbox_of(&call.ids, row.lifetime);
        let (profile, chosen) = self.look_ahead(call)?;
        Ok(super::config(&profile, &chosen, &settings))
    }

    /// Removes what nobody used for too long, and what is too old. Whoever is in use is not asked.
    pub fn prune(&self) -> Result<Pruned> {
        let settings = self.instance.config().sandbox_settings();
        let (idle, age) = (
            settings.prune_idle.map(|it| it.duration()),
            settings.prune_age.map(|it| it.duration()),
        );
        let mut done = Pruned::default();
        if idle.is_none() && age.is_none() {
            return Ok(done);
        }
        self.registry.write_uses(Duration::ZERO);
        for found in self
            .instance
            .store()?
            .sandboxes_prunable(Timestamp::now(), idle, age)?
        {
            let us = self.instance.owner().id();
            if found.owner.as_deref().is_some_and(|owner| owner != us) {
                continue;
            }
            let row = self.registry.as_it_is(found);
            if matches!(row.state, SandboxState::Busy | SandboxState::Acquiring) {
                continue;
            }
            // Somebody may have used it since it was listed.
            let still = |row: &Sandbox| is_due(row, Timestamp::now(), idle, age);
            let place = (&row.space_id, row.sandbox_id.as_str());
            match self.remove_if(place, "pruned", Duration::ZERO, &still) {
                Ok(Some(row)) => done.removed.push(row.name),
                Ok(None) => {}
                Err(error) if error.code == Code::Busy => {}
                Err(error) => {
                    tracing::warn!(name = row.name, %error, "a sandbox could not be pruned");
                    done.failed.push(Trouble {
                        name: row.name,
                        error,
                    });
                }
            }
        }
        Ok(done)
    }

    /// Finds what was ended from outside, and removes containers that could not be removed before.
    /// Containers are looked at when `asks_engines`: each costs a command.
    pub(crate) fn look_after(&self, asks_engines: bool) {
        self.registry.slots().look_over(BackendName::Native);
        if asks_engines {
            self.registry.slots().look_over(BackendName::Docker);
            if let Err(error) = self.reconcile() {
                tracing::warn!(%error, "the registry could not be read");
            }
        }
        self.instance.backends().remove_orphans();
    }

    /// Nobody will come by this key of a session or an agent again: the sandboxes that are named
    /// after it go, and workspaces that were made for them and never used.
    pub(crate) fn end_scope(&self, space: &SpaceId, key: &str) -> Result<()> {
        let rows = self.instance.store()?.sandboxes(space, PAGE)?.into_iter();
        let is_its = |row: &Sandbox| row.scope.as_deref() == Some(key);
        let rows: Vec<Sandbox> = rows.map(|it| it.sandbox).filter(is_its).collect();
        for row in &rows {
            let place = (space, row.sandbox_id.as_str());
            if let Err(error) = self.remove_if(place, "its session ended", LAST_TURN, &|_| true) {
                tracing::warn!(name = row.name, %error, "a sandbox outlives its session");
            }
        }
        // Several may have worked on one.
        for row in &rows {
            if let Err(error) = self.remove_made_for(row) {
                tracing::warn!(project = %row.project_id, %error, "a workspace outlives its session");
            }
        }
        Ok(())
    }

    /// Its name says that it was made for that key; one that somebody named stays.
    fn remove_made_for(&self, row: &Sandbox) -> Result<()> {
        let key = row.scope.as_deref().unwrap_or_default();
        let made = match row.lifetime {
            Lifetime::Session => of_session(row.agent_id.as_deref(), key)?,
            Lifetime::Agent => named_after(OF_AGENT, key)?,
            Lifetime::Exec | Lifetime::Shared => return Ok(()),
        };
        if row.project_id != made {
            return Ok(());
        }
        let which = WorkspaceRef::Project(made);
        match self.workspaces.open(&row.space_id, &which, None) {
            Ok(workspace) => workspace.remove_unused(),
            Err(error) if error.code == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What containers really run is compared with the registry once: at the start, or when their
    /// engine answers for the first time. Those of ours that nobody has registered are removed.
    pub(crate) fn reconcile(&self) -> Result<()> {
        if self.reconciled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let config = self.instance.policy.house_docker();
        let found = match self.instance.backends().containers(&config) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "containers could not be compared with the registry");
                return Ok(());
            }
        };
        self.reconciled.store(true, Ordering::Relaxed);
        for container in found {
            let owner = container.owner.as_deref();
            let is_left = match is_kept(self.instance.store()?, &container)? {
                Some(kept) => !kept,
                None => owner.is_none_or(|owner| !self.instance.is_alive(owner)),
            };
            if is_left {
                self.instance.remove_left(&config, &container);
            }
        }
        Ok(())
    }
}

fn is_due(row: &Sandbox, now: Timestamp, idle: Option<Duration>, age: Option<Duration>) -> bool {
    let since = |then: Timestamp| Duration::try_from(now.duration_since(then)).unwrap_or_default();
    idle.is_some_and(|idle| since(row.last_used_at) >= idle)
        || age.is_some_and(|age| since(row.created_at) >= age)
}

fn is_of(row: &Sandbox, lifetime: Lifetime, key: &str) -> bool {
    row.lifetime == lifetime && row.scope.as_deref() == Some(key)
}

/// Policy judges calls; this one asks for a sandbox and nothing to run in it.
pub(crate) fn nothing_yet(request: &SandboxRequest) -> Call {
    Call {
        placement: Placement::Scope(request.lifetime),
        on_exceed: request.on_exceed,
        overrides: request.overrides.clone(),
        ..Call::new(
            request.ids.clone(),
            glovebox_model::Vouched::People,
            WorkspaceRef::Project(request.project.clone()),
            Program::Argv {
                command: ByteString::try_from("true").unwrap_or_default(),
                args: Vec::new(),
            },
        )
    }
}

fn in_use(row: &Sandbox, error: Error) -> Error {
    if error.code != Code::Busy {
        return error;
    }
    match &row.exec_id {
        Some(exec) => error.hint(format!("end what runs in it: `glovebox cancel {exec}`")),
        None => error,
    }
}
