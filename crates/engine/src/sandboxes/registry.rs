//! The registry of kept sandboxes: whose each is, and which are this process's own.

use std::sync::Arc;
use std::time::Duration;

use glovebox_model::{
    BackendName, Code, Error, Result, Sandbox, SandboxId, SandboxState, SpaceId, Stage,
};
use glovebox_store::Registered;
use jiff::Timestamp;

use super::drift::hash_of;
use super::name::Scope;
use super::slots::Slots;
use super::{SandboxAssignment, gone};
use crate::containers::Container;
use crate::instance::Instance;

/// Kept sandboxes of one space. Each may stand, with its memory and its container.
const MOST: usize = 256;

/// How often another process may be quicker before it is a reason to give up.
const TRIES: u32 = 5;

/// Read at once.
pub(super) const PAGE: usize = 1000;

/// Kept sandboxes as the registry and this process know them.
#[derive(Debug)]
pub struct SandboxRegistry {
    pub(crate) instance: Arc<Instance>,
    /// Those that are this process's own.
    slots: Arc<Slots>,
    /// What the names of all of them begin with.
    container_prefix: String,
}

impl SandboxRegistry {
    pub(crate) fn new(instance: &Arc<Instance>) -> Self {
        Self {
            // One for all: a name must not depend on who asks.
            container_prefix: instance.policy.house_docker().container_prefix,
            slots: Arc::default(),
            instance: Arc::clone(instance),
        }
    }

    /// The row of a scope as it is known, whoever has it.
    pub(super) fn registered(&self, scope: &Scope) -> Result<Option<Sandbox>> {
        let name = self.name_of(scope);
        if let Some(row) = self.slots().named(&name) {
            return of(scope, row).map(Some);
        }
        let found = self
            .instance
            .store()?
            .sandbox_of_scope(&scope.space, &name)?;
        found.map(|found| of(scope, found.sandbox)).transpose()
    }

    pub(crate) fn name_of(&self, scope: &Scope) -> String {
        // Servers that share a store agree on names, wherever their files lie.
        let installation = match self.instance.is_shared() {
            true => "",
            false => self.instance.backends().installation(),
        };
        scope.name(&self.container_prefix, installation)
    }

    /// The row of an assignment, which is this process's own from here on; made when it is not there.
    pub(super) fn register(&self, assignment: &SandboxAssignment) -> Result<Sandbox> {
        let row = self.registered_row(assignment)?;
        // Whose it is and what it has was read before, from a row that anybody may have edited.
        self.instance.store()?.sandbox_ensure_unchanged(&row)?;
        Ok(row)
    }

    fn registered_row(&self, assignment: &SandboxAssignment) -> Result<Sandbox> {
        let Some(scope) = &assignment.scope else {
            return self
                .slots()
                .row(&assignment.id)
                .ok_or_else(|| gone(&assignment.id));
        };
        let name = self.name_of(scope);
        if let Some(row) = self.slots().named(&name) {
            return of(scope, row);
        }
        let store = self.instance.store()?;
        for _ in 0..TRIES {
            if let Some(found) = store.sandbox_of_scope(&scope.space, &name)? {
                if let Some(row) = self.claim(found)? {
                    return of(scope, row);
                }
                continue;
            }
            if store.sandboxes(&scope.space, MOST)?.len() >= MOST {
                return Err(too_many(&scope.space));
            }
            let row = new_row(scope, &name, assignment);
            match store.sandbox_put_new(&row, self.instance.owner().id()) {
                Ok(()) => {
                    self.slots().adopt(row.clone());
                    return Ok(row);
                }
                Err(error) if error.code == Code::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(contended(&name))
    }

    /// One that is there, by its id or its name.
    pub(crate) fn own(&self, space: &SpaceId, name: &str) -> Result<Sandbox> {
        let here = name
            .parse()
            .ok()
            .and_then(|id: SandboxId| self.slots().row(&id))
            .or_else(|| self.slots().named(name))
            .filter(|row| row.space_id == *space);
        if let Some(row) = here {
            return Ok(row);
        }
        let store = self.instance.store()?;
        for _ in 0..TRIES {
            let found = store.sandbox_registered(space, name)?;
            if let Some(row) = self.claim(found)? {
                return Ok(row);
            }
        }
        Err(contended(name))
    }

    /// Makes a registered sandbox this process's own. None: another was quicker.
    fn claim(&self, found: Registered) -> Result<Option<Sandbox>> {
        let Registered { sandbox, owner } = found;
        let us = self.instance.owner().id();
        match owner.as_deref() {
            Some(owner) if owner == us => {}
            Some(_) => return Err(held_elsewhere(&sandbox)),
            None => {
                if !self
                    .instance
                    .store()?
                    .sandbox_claim(&sandbox.sandbox_id, None, us)?
                {
                    return Ok(None);
                }
            }
        }
        self.slots().adopt(sandbox.clone());
        Ok(Some(sandbox))
    }

    pub(crate) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// The rows of a space as they are now, newest use first.
    pub fn list(&self, space: &SpaceId) -> Result<Vec<Sandbox>> {
        let mut rows: Vec<_> = self
            .instance
            .store()?
            .sandboxes(space, PAGE)?
            .into_iter()
            .map(|it| self.as_it_is(it))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.last_used_at));
        self.look_at_containers(&mut rows);
        Ok(rows)
    }

    pub fn get(&self, space: &SpaceId, name: &str) -> Result<Sandbox> {
        let found = self.instance.store()?.sandbox_registered(space, name)?;
        let mut row = self.as_it_is(found);
        self.look_at_containers(std::slice::from_mut(&mut row));
        // An engine that does not answer says so elsewhere.
        row.ports = self.instance.backends().ports(&row).unwrap_or_default();
        Ok(row)
    }

    /// A container stands though no process has it. An engine that does not answer tells nothing.
    fn look_at_containers(&self, rows: &mut [Sandbox]) {
        let is_open = |row: &Sandbox| {
            row.config.backend == BackendName::Docker && row.state == SandboxState::Down
        };
        if !rows.iter().any(is_open) {
            return;
        }
        let Ok(found) = self
            .instance
            .backends()
            .containers(&self.instance.policy.house_docker())
        else {
            return;
        };
        for row in rows.iter_mut().filter(|row| is_open(row)) {
            let own = |it: &&Container| it.sandbox.as_ref() == Some(&row.sandbox_id);
            if found.iter().find(own).is_some_and(|it| it.is_running) {
                row.state = SandboxState::Idle;
            }
        }
    }

    /// What this process knows is newer than the row; what nobody has does not stand.
    pub(super) fn as_it_is(&self, found: Registered) -> Sandbox {
        let Registered { sandbox, owner } = found;
        match self.slots().row(&sandbox.sandbox_id) {
            Some(row) => row,
            None if owner.is_none() => Sandbox {
                state: SandboxState::Down,
                exec_id: None,
                ..sandbox
            },
            None => sandbox,
        }
    }

    /// Tells the store how sandboxes were used since it was last told.
    pub(crate) fn write_uses(&self, since: Duration) {
        for used in self.slots().unwritten(since) {
            let (id, name) = (used.sandbox_id.clone(), used.name.clone());
            let written = self.instance.store().and_then(|store| {
                store.sandbox_update(&id, self.instance.owner().id(), move |row| Sandbox {
                    last_used_at: used.last_used_at,
                    uses: used.uses,
                    trouble: used.trouble,
                    ..row
                })
            });
            if let Err(error) = written {
                tracing::warn!(name, %error, "a sandbox's use was not written down");
            }
        }
    }

    /// This process goes: what only it keeps alive is closed, and every row is anybody's again.
    pub fn leave(&self) {
        self.write_uses(Duration::ZERO);
        for kept in self.slots().empty() {
            // A container stays for whoever comes next.
            drop(kept);
        }
        // What is still in use is found by whoever finds this process dead.
        let is_free = |row: &Sandbox| row.state == SandboxState::Down;
        for row in self.slots().rows().into_iter().filter(is_free) {
            if let Ok(store) = self.instance.store() {
                let _ = store.sandbox_release(&row.sandbox_id, self.instance.owner().id());
            }
        }
    }
}

fn new_row(scope: &Scope, name: &str, assignment: &SandboxAssignment) -> Sandbox {
    let now = Timestamp::now();
    Sandbox {
        sandbox_id: assignment.id.clone(),
        name: name.to_owned(),
        space_id: scope.space.clone(),
        project_id: scope.project.clone(),
        lifetime: scope.lifetime,
        scope: scope.key.clone(),
        agent_id: scope.agent.clone(),
        config_hash: hash_of(&assignment.wanted),
        config: assignment.wanted.clone(),
        asked: assignment.asked.clone(),
        state: SandboxState::Down,
        exec_id: None,
        container_id: None,
        created_at: now,
        last_used_at: now,
        uses: 0,
        trouble: None,
        ports: Vec::new(),
    }
}

/// A name is a digest, and digests can be made to meet: only the scope itself says whose a row is.
fn of(scope: &Scope, row: Sandbox) -> Result<Sandbox> {
    if scope.is_of(&row) {
        return Ok(row);
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Admit,
        format!("the name `{}` is another sandbox's", row.name),
    )
    .hint("choose another name for the workspace or the session"))
}

fn too_many(space: &SpaceId) -> Error {
    Error::new(
        Code::RateLimited,
        Stage::Admit,
        format!("the space `{space}` has {MOST} sandboxes, as many as it may have"),
    )
    .hint("`glovebox sandbox rm NAME` removes one; `glovebox sandbox prune` those that nobody uses")
}

pub(super) fn held_elsewhere(row: &Sandbox) -> Error {
    let name = &row.name;
    // No time is named after which to ask again: a server keeps it for as long as it runs.
    Error::new(
        Code::Busy,
        Stage::Admit,
        format!("the sandbox `{name}` stands with another process"),
    )
    .hint("send it to the server that has it, with `--server URL`, or stop that process")
}

fn contended(name: &str) -> Error {
    Error::new(
        Code::Busy,
        Stage::Admit,
        format!("others want the sandbox `{name}` at the same moment"),
    )
}
