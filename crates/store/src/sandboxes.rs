//! The registry of sandboxes that outlive an exec. Only who owns a row changes it, and a row has at
//! most one owner: so no two servers ever have one sandbox in common.

use std::time::Duration;

use glovebox_model::{Code, Error, Page, Result, Sandbox, SandboxId, SpaceId, Stage};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::administration::administered_about;
use crate::failure::{Doing, at, internal};
use crate::leases;
use crate::ledger::chain::Chains;
use crate::ledger::row_proof::{Guarded, ensure_unchanged, is_forged};
use crate::page::{bad_cursor, page_size, sql_limit};
use crate::registry::{self, COLUMNS, Registered, SandboxRow, read_row};
use crate::sql::{Session, Value, values};
use crate::store::Store;

impl Store {
    /// Writes a new sandbox, which stands with `owner`, and the entry that says so. A name that
    /// any sandbox has, of whatever space, is a conflict.
    pub fn sandbox_put_new(&self, sandbox: &Sandbox, owner: &str) -> Result<()> {
        let (sandbox, owner) = (sandbox.clone(), owner.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            leases::ensure_held(session, &owner)?;
            ensure_free(session, &sandbox)?;
            let opened_seq = chains.next_seq(&sandbox.space_id)?;
            registry::insert(session, &sandbox, &owner, opened_seq)?;
            append(
                chains,
                &sandbox,
                "sandbox.created",
                made_of(&sandbox),
                false,
            )
        })
        .map_err(at(Stage::Admit))
    }

    /// By id or by name; another space's is not found.
    pub fn sandbox(&self, space: &SpaceId, id_or_name: &str) -> Result<Sandbox> {
        Ok(self.sandbox_registered(space, id_or_name)?.sandbox)
    }

    /// As [`Store::sandbox`], with its owner.
    pub fn sandbox_registered(&self, space: &SpaceId, id_or_name: &str) -> Result<Registered> {
        // A name cannot be taken for an id: it has no `_`.
        self.sandbox_where("(sandbox_id = ?2 OR name = ?2)", space, id_or_name)?
            .ok_or_else(|| not_found(id_or_name))
    }

    /// By the name that a scope has; another space's is not found.
    pub fn sandbox_of_scope(&self, space: &SpaceId, name: &str) -> Result<Option<Registered>> {
        self.sandbox_where("name = ?2", space, name)
    }

    fn sandbox_where(
        &self,
        condition: &str,
        space: &SpaceId,
        wanted: &str,
    ) -> Result<Option<Registered>> {
        // PostgreSQL has no text with a NUL in it, and no name has one.
        if wanted.contains('\0') {
            return Ok(None);
        }
        let row = self.ask("read the sandbox", |session| {
            session.row(
                &format!("SELECT {COLUMNS} FROM sandboxes WHERE space_id = ?1 AND {condition}"),
                values![space.as_str(), wanted],
                read_row,
            )
        })?;
        row.map(SandboxRow::into_registered).transpose()
    }

    /// In whatever space it is: for whoever compares the registry with what runs on the host.
    pub fn sandbox_anywhere(&self, id: &SandboxId) -> Result<Option<Registered>> {
        self.read(|session| registry::find(session, id))
    }

    /// Those of a space, newest first, at most so many.
    pub fn sandboxes(&self, space: &SpaceId, limit: usize) -> Result<Vec<Registered>> {
        Ok(self.sandbox_page(space, limit, None)?.items)
    }

    /// As [`Store::sandboxes`], page by page. `limit` 0 means the default of 50, and nobody gets
    /// more than 1000; `cursor` is the `next` of the page before.
    pub fn sandbox_page(
        &self,
        space: &SpaceId,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Registered>> {
        let before: i64 = match cursor {
            None => i64::MAX,
            Some(cursor) => cursor.parse().map_err(|_| bad_cursor(cursor))?,
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM sandboxes WHERE space_id = ?1 AND opened_seq < ?2
             ORDER BY opened_seq DESC LIMIT ?3"
        );
        let rows = self.ask("list the sandboxes", |session| {
            let values = values![space.as_str(), before, sql_limit(limit)];
            session.rows(&sql, values, read_row)
        })?;
        Page::cut(rows, page_size(limit), |row| row.opened_seq.to_string())
            .try_map(SandboxRow::into_registered)
    }

    /// Those of every space that an owner has standing.
    pub fn sandboxes_of_owner(&self, owner: &str) -> Result<Vec<Registered>> {
        self.read(|session| registry::of_owner(session, owner))
    }

    /// Those of every space that nobody has standing.
    pub fn sandboxes_unowned(&self) -> Result<Vec<Registered>> {
        self.every_sandbox("WHERE owner_id IS NULL")?
            .into_iter()
            .map(SandboxRow::into_registered)
            .collect()
    }

    /// Those of every space that were not used for so long, or made so long ago, oldest first, and
    /// that nobody is in. A row that cannot be read does not stop the rest.
    pub fn sandboxes_prunable(
        &self,
        now: Timestamp,
        idle: Option<Duration>,
        age: Option<Duration>,
    ) -> Result<Vec<Registered>> {
        let past = |since: Timestamp, most: Option<Duration>| {
            let spent = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            most.is_some_and(|most| spent >= most)
        };
        let wanted = |it: &Registered| {
            let row = &it.sandbox;
            row.exec_id.is_none() && (past(row.last_used_at, idle) || past(row.created_at, age))
        };
        let mut found: Vec<_> = self
            .every_sandbox("")?
            .into_iter()
            .filter_map(|row| row.into_registered().ok())
            .filter(wanted)
            .collect();
        found.sort_by_key(|it| it.sandbox.last_used_at);
        Ok(found)
    }

    fn every_sandbox(&self, condition: &str) -> Result<Vec<SandboxRow>> {
        let sql =
            format!("SELECT {COLUMNS} FROM sandboxes {condition} ORDER BY space_id, opened_seq");
        self.ask("look for sandboxes", |session| {
            session.rows(&sql, &[], read_row)
        })
    }

    /// Makes `to` the owner when `from` is the owner now. `false`: it is another's, or is gone. Of
    /// a living owner nothing is taken.
    pub fn sandbox_claim(&self, id: &SandboxId, from: Option<&str>, to: &str) -> Result<bool> {
        let (id, to) = (id.clone(), to.to_owned());
        let from = from.map(str::to_owned);
        self.write(move |chains| {
            let session = chains.session();
            leases::ensure_held(session, &to)?;
            let Some(found) = registry::find(session, &id)? else {
                return Ok(false);
            };
            if found.owner != from {
                return Ok(false);
            }
            match &from {
                Some(from) if *from == to => return Ok(true),
                Some(from) => leases::take_for_dead(session, from)?,
                None => {}
            }
            registry::set_owner(session, &id, &to)?;
            Ok(true)
        })
        .map_err(at(Stage::Admit))
    }

    /// Nobody has it standing from now on. `false`: it was not the owner's.
    pub fn sandbox_release(&self, id: &SandboxId, owner: &str) -> Result<bool> {
        let (id, owner) = (id.clone(), owner.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            match registry::find(session, &id)? {
                Some(it) if it.owner.as_ref() == Some(&owner) => {
                    registry::let_go(session, it.sandbox)?;
                    Ok(true)
                }
                Some(_) | None => Ok(false),
            }
        })
        .map_err(at(Stage::Admit))
    }

    /// That a sandbox is as the ledger says, before an exec uses it.
    pub fn sandbox_ensure_unchanged(&self, sandbox: &Sandbox) -> Result<()> {
        let (space, id) = (&sandbox.space_id, sandbox.sandbox_id.as_str());
        self.read(|session| ensure_unchanged(session, Guarded::Sandboxes, space, id))
            .map_err(at(Stage::Open))
    }

    /// Changes how a sandbox stands; an entry says so when it is another container. What it is and was made with stays: its ids, its name, its
    /// image, when it was made. The change is made while nobody else can write: it must be quick,
    /// and must not use the store.
    pub fn sandbox_update(
        &self,
        id: &SandboxId,
        owner: &str,
        change: impl FnOnce(Sandbox) -> Sandbox + Send + 'static,
    ) -> Result<Sandbox> {
        let (id, owner) = (id.clone(), owner.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            let before = owned(session, &id, &owner)?;
            let mut after = change(before.clone());
            keep_identity(&before, &mut after);
            after.created_at = before.created_at;
            after.config.image.clone_from(&before.config.image);
            if after == before {
                return Ok(after);
            }
            if made_with(&after) == made_with(&before) {
                registry::rewrite(session, &after)?;
                return Ok(after);
            }
            ensure_unchanged(session, Guarded::Sandboxes, &before.space_id, id.as_str())?;
            registry::rewrite(session, &after)?;
            let mut details = made_of(&after);
            details["container_id"] = Json::from(after.container_id.clone());
            append(chains, &after, "sandbox.started", details, false)?;
            Ok(after)
        })
        .map_err(at(Stage::Admit))
    }

    /// The row is that of a new sandbox of the same name, made otherwise, and an entry says so.
    pub fn sandbox_replace(
        &self,
        id: &SandboxId,
        owner: &str,
        new: Sandbox,
        reason: &str,
    ) -> Result<Sandbox> {
        let (id, owner, reason) = (id.clone(), owner.to_owned(), reason.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            let before = owned(session, &id, &owner)?;
            ensure_unchanged(session, Guarded::Sandboxes, &before.space_id, id.as_str())?;
            let mut after = new;
            keep_identity(&before, &mut after);
            let mut details = made_of(&after);
            details["reason"] = Json::from(reason);
            details["config_hash_before"] = Json::from(before.config_hash);
            registry::rewrite(session, &after)?;
            append(chains, &after, "sandbox.recreated", details, false)?;
            Ok(after)
        })
        .map_err(at(Stage::Admit))
    }

    /// Forgets a sandbox, and an entry says so. Only its owner may, or anybody (`None`) when it has
    /// none. `None` when it is not there.
    pub fn sandbox_remove<'o>(
        &self,
        id: &SandboxId,
        owner: impl Into<Option<&'o str>>,
        reason: &str,
    ) -> Result<Option<Sandbox>> {
        let owner = owner.into().map(str::to_owned);
        let (id, reason) = (id.clone(), reason.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            if let Some(owner) = &owner {
                leases::ensure_held(session, owner)?;
            }
            let Some(found) = registry::find(session, &id)? else {
                return Ok(None);
            };
            if found.owner != owner {
                return Err(another_owners(&found.sandbox));
            }
            let space = &found.sandbox.space_id;
            let forged = is_forged(session, Guarded::Sandboxes, space, id.as_str())?;
            let mut details = made_of(&found.sandbox);
            details["reason"] = Json::from(reason);
            registry::delete(session, &id)?;
            append(chains, &found.sandbox, "sandbox.removed", details, forged)?;
            Ok(Some(found.sandbox))
        })
        .map_err(at(Stage::Admit))
    }
}

/// The row of a living owner.
fn owned(session: &Session, id: &SandboxId, owner: &str) -> Result<Sandbox> {
    leases::ensure_held(session, owner)?;
    match registry::find(session, id)? {
        Some(it) if it.owner.as_deref() == Some(owner) => Ok(it.sandbox),
        Some(it) => Err(another_owners(&it.sandbox)),
        None => Err(not_found(id.as_str())),
    }
}

fn keep_identity(before: &Sandbox, after: &mut Sandbox) {
    after.sandbox_id = before.sandbox_id.clone();
    after.space_id = before.space_id.clone();
    after.project_id = before.project_id.clone();
    after.name.clone_from(&before.name);
    after.lifetime = before.lifetime;
    after.scope.clone_from(&before.scope);
    after.agent_id.clone_from(&before.agent_id);
}

/// What of a row is vouched for and may change while it is the same sandbox.
fn made_with(sandbox: &Sandbox) -> impl PartialEq + '_ {
    (
        &sandbox.config,
        &sandbox.asked,
        &sandbox.config_hash,
        &sandbox.container_id,
    )
}

fn ensure_free(session: &Session, sandbox: &Sandbox) -> Result<()> {
    let name = sandbox.name.as_str();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 63 || !name.bytes().all(plain) {
        let shown = name.escape_debug();
        return Err(internal(format!("`{shown}` is no name of a sandbox")));
    }
    let taken: Vec<Value<'_>> = values![name, sandbox.sandbox_id.as_str()].to_vec();
    let taken = session
        .exists(
            "SELECT EXISTS (SELECT 1 FROM sandboxes WHERE name = ?1 OR sandbox_id = ?2)",
            &taken,
        )
        .doing("look for the sandbox")?;
    if !taken {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Admit,
        format!("there is a sandbox `{name}` already"),
    )
    .hint("see them: `glovebox sandbox ls`"))
}

fn not_found(id_or_name: &str) -> Error {
    let shown: String = id_or_name
        .chars()
        .take(80)
        .flat_map(char::escape_debug)
        .collect();
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no sandbox `{shown}`"),
    )
    .hint("list them: `glovebox sandbox ls`")
}

fn another_owners(sandbox: &Sandbox) -> Error {
    Error::new(
        Code::Conflict,
        Stage::Admit,
        format!("the sandbox `{}` is not this server's", sandbox.name),
    )
    .hint("ask the server that has it standing, or try again when that is gone")
}

/// The entry that says what was done to a sandbox, and vouches for what it is.
fn append(
    chains: &mut Chains<'_>,
    sandbox: &Sandbox,
    event: &str,
    details: Json,
    forged: bool,
) -> Result<()> {
    let tags = vec![
        format!("sandbox:{}", sandbox.sandbox_id),
        format!("project:{}", sandbox.project_id),
    ];
    let draft = administered_about(&sandbox.space_id, event, None, None, tags, details)?;
    let id = sandbox.sandbox_id.as_str();
    chains.append_ending(draft, (Guarded::Sandboxes, id), forged)?;
    Ok(())
}

/// What an entry says about a sandbox. Never its variables, binds or commands.
fn made_of(sandbox: &Sandbox) -> Json {
    json!({
        "sandbox_id": sandbox.sandbox_id,
        "name": sandbox.name,
        "project_id": sandbox.project_id,
        "lifetime": sandbox.lifetime,
        "scope": sandbox.scope,
        "backend": sandbox.config.backend,
        "image": sandbox.config.image,
        "config_hash": sandbox.config_hash,
    })
}
