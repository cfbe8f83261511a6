//! Secrets: what is known of them, and their values as they were sealed elsewhere. A plain value
//! never comes here, and no entry has more of one than its name and version.

use std::collections::BTreeSet;

use glovebox_model::{
    Code, Correlation, Delivery, Error, ExecId, HostPort, Page, Result, Secret, SecretGiven,
    SecretGrant, SecretName, SpaceId, Stage,
};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::administration::{Actor, administered_about};
use crate::failure::{Doing, internal, tampered};
use crate::ledger::chain::{Chains, Draft};
use crate::ledger::encoding::canonical;
use crate::ledger::row_proof::{Guarded, ensure_unchanged, is_forged};
use crate::page::{page_size, sql_limit};
use crate::secret_grants;
use crate::secret_values::{self, SealedValue};
use crate::sql::{Row, Session, SqlResult, values};
use crate::store::Store;
use crate::summary;

/// In a space. Each is looked for in everything that its programs say.
const MOST: i64 = 1000;

/// A name that is free again keeps its row: its next value gets a version that was never used.
const REMOVED: &str = "";

const COLUMNS: &str = "name, version, last_used_at, record";

/// A new definition of a secret, and its new value unless that stays.
#[derive(Debug, Clone)]
pub struct SecretWrite {
    pub name: SecretName,
    /// The version that it was made for; 0 when there was none.
    pub seen: u64,
    pub hosts: BTreeSet<HostPort>,
    pub deliveries: BTreeSet<Delivery>,
    pub value: Option<SealedValue>,
}

struct SecretRow {
    name: String,
    version: i64,
    last_used_at: Option<i64>,
    record: String,
}

fn read_row(row: &Row<'_>) -> SqlResult<SecretRow> {
    Ok(SecretRow {
        name: row.get(0)?,
        version: row.get(1)?,
        last_used_at: row.get(2)?,
        record: row.get(3)?,
    })
}

impl SecretRow {
    fn into_secret(self) -> Result<Secret> {
        let unreadable = || tampered(format!("the secret `{}` cannot be read", self.name));
        let mut secret: Secret = serde_json::from_slice(self.record.as_bytes())
            .map_err(|error| unreadable().caused_by(error))?;
        if secret.name.as_str() != self.name {
            return Err(unreadable());
        }
        secret.version = self.version.unsigned_abs();
        let used = self.last_used_at.map(Timestamp::from_microsecond);
        secret.last_used_at = used.transpose().map_err(|_| unreadable())?;
        Ok(secret)
    }
}

fn find(session: &Session, space: &SpaceId, name: &SecretName) -> Result<Option<SecretRow>> {
    session
        .row(
            &format!("SELECT {COLUMNS} FROM secrets WHERE space_id = ?1 AND name = ?2"),
            values![space.as_str(), name.as_str()],
            read_row,
        )
        .doing("look for the secret")
}

pub(crate) fn existing(session: &Session, space: &SpaceId, name: &SecretName) -> Result<Secret> {
    find(session, space, name)?
        .filter(|row| row.record != REMOVED)
        .ok_or_else(|| no_secret(name))?
        .into_secret()
}

pub(crate) fn no_secret(name: &SecretName) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no secret `{name}`"),
    )
    .hint(format!("set it: `glovebox secret set {name}`"))
    .hint("list them: `glovebox secret ls`")
}

/// Whoever remembers something of the space has to look again.
pub(crate) fn stamp(session: &Session, space: &SpaceId) -> Result<()> {
    session
        .execute(
            "INSERT INTO secrets_stamps (space_id, stamp) VALUES (?1, 1)
             ON CONFLICT (space_id) DO UPDATE SET stamp = secrets_stamps.stamp + 1",
            values![space.as_str()],
        )
        .doing("write to the database")?;
    Ok(())
}

pub(crate) fn entry(
    space: &SpaceId,
    event: &str,
    by: Option<&Actor>,
    name: &SecretName,
    details: Json,
) -> Result<Draft> {
    let tags = vec![format!("secret:{name}")];
    administered_about(space, event, by, None, tags, details)
}

fn ensure_room(session: &Session, space: &SpaceId) -> Result<()> {
    let count: Option<i64> = session
        .row(
            "SELECT count(*) FROM secrets WHERE space_id = ?1 AND record <> ''",
            values![space.as_str()],
            |row| row.get(0),
        )
        .doing("count the secrets")?;
    if count.unwrap_or(0) < MOST {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Parse,
        format!("the space `{space}` has {MOST} secrets, the most that it can have"),
    )
    .hint("remove one that nobody needs: `glovebox secret rm NAME`"))
}

impl Store {
    /// Another space's is not found.
    pub fn secret(&self, space: &SpaceId, name: &SecretName) -> Result<Secret> {
        self.read(|session| existing(session, space, name))
    }

    /// The last version that a secret of this name had, removed ones included; 0 before the first.
    pub fn secret_version(&self, space: &SpaceId, name: &SecretName) -> Result<u64> {
        let row = self.read(|session| find(session, space, name))?;
        Ok(row.map_or(0, |row| row.version.unsigned_abs()))
    }

    /// In the order of their names. `limit`: 0 means the default of 50, and nobody gets more than
    /// 1000. `cursor`: `next` of the page before.
    pub fn secrets(
        &self,
        space: &SpaceId,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Secret>> {
        let rows = self.ask("list the secrets", |session| {
            session.rows(
                &format!(
                    "SELECT {COLUMNS} FROM secrets
                     WHERE space_id = ?1 AND name > ?2 AND record <> '' ORDER BY name LIMIT ?3"
                ),
                values![space.as_str(), cursor.unwrap_or_default(), sql_limit(limit)],
                read_row,
            )
        })?;
        Page::cut(rows, page_size(limit), |row| row.name.clone()).try_map(SecretRow::into_secret)
    }

    /// Sets a secret, or changes it. A conflict when somebody else has changed it since it was
    /// looked at, or when the value was sealed with another key than all others are.
    pub fn put_secret(&self, space: &SpaceId, write: SecretWrite, by: &Actor) -> Result<Secret> {
        let (space, by) = (space.clone(), by.clone());
        self.write(move |chains| put(chains, &space, write, &by))
    }

    /// Removes a secret with all its values, and revokes its grants: those that were in force.
    pub fn remove_secret(
        &self,
        space: &SpaceId,
        name: &SecretName,
        by: &Actor,
    ) -> Result<(Secret, Vec<SecretGrant>)> {
        let (space, name, by) = (space.clone(), name.clone(), by.clone());
        self.write(move |chains| {
            let session = chains.session();
            let secret = existing(session, &space, &name)?;
            let forged = is_forged(session, Guarded::Secrets, &space, name.as_str())?;
            let revoked = secret_grants::revoke_all(chains, &space, &name, &by)?;
            secret_values::forget(session, &space, &name)?;
            session
                .execute(
                    "UPDATE secrets SET record = '' WHERE space_id = ?1 AND name = ?2",
                    values![space.as_str(), name.as_str()],
                )
                .doing("remove the secret")?;
            stamp(session, &space)?;
            let details = json!({ "name": name, "version": secret.version });
            let draft = entry(&space, "secret.removed", Some(&by), &name, details)?;
            chains.append_ending(draft, (Guarded::Secrets, name.as_str()), forged)?;
            Ok((secret, revoked))
        })
    }

    /// Writes down, before it starts, what an exec is given. A conflict when one of the secrets
    /// was removed, or one of the grants was revoked, since they were looked at.
    pub fn use_secrets(
        &self,
        ids: &Correlation,
        exec: &ExecId,
        given: &[SecretGiven],
    ) -> Result<()> {
        if given.is_empty() {
            return Ok(());
        }
        let (ids, exec, given) = (ids.clone(), exec.clone(), given.to_vec());
        self.write(move |chains| {
            for one in &given {
                use_one(chains, &ids, &exec, one)?;
            }
            Ok(())
        })
    }

    /// Counts the changes of a space's secrets and grants: what was remembered at the same count
    /// still holds.
    pub fn secrets_stamp(&self, space: &SpaceId) -> Result<u64> {
        let stamp: Option<i64> = self.ask("look at the secrets", |session| {
            session.row(
                "SELECT stamp FROM secrets_stamps WHERE space_id = ?1",
                values![space.as_str()],
                |row| row.get(0),
            )
        })?;
        Ok(stamp.unwrap_or(0).unsigned_abs())
    }
}

fn put(chains: &mut Chains<'_>, space: &SpaceId, write: SecretWrite, by: &Actor) -> Result<Secret> {
    let session = chains.session();
    let now = chains.now();
    ensure_unchanged(session, Guarded::Secrets, space, write.name.as_str())?;
    let row = find(session, space, &write.name)?;
    let version = row.as_ref().map_or(0, |row| row.version.unsigned_abs());
    if version != write.seen {
        return Err(changed_meanwhile(&write.name));
    }
    let before = row
        .filter(|row| row.record != REMOVED)
        .map(SecretRow::into_secret)
        .transpose()?;
    if before.is_none() {
        ensure_room(session, space)?;
    }
    let version = match &write.value {
        Some(value) => {
            if value.version != version + 1 {
                return Err(internal("a value was sealed for another version"));
            }
            secret_values::insert(chains, space, &write.name, value, by)?;
            value.version
        }
        None if before.is_none() => return Err(changed_meanwhile(&write.name)),
        None => version,
    };
    let secret = Secret {
        name: write.name,
        version,
        hosts: write.hosts,
        deliveries: write.deliveries,
        created_at: before.as_ref().map_or(now, |before| before.created_at),
        updated_at: now,
        last_used_at: before.as_ref().and_then(|before| before.last_used_at),
    };
    let record = serde_json::to_string(&secret)
        .map_err(|error| internal("the secret cannot be written").caused_by(error))?;
    session
        .execute(
            "INSERT INTO secrets (space_id, name, version, last_used_at, record)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (space_id, name) DO UPDATE SET version = excluded.version,
                 last_used_at = excluded.last_used_at, record = excluded.record",
            values![
                space.as_str(),
                secret.name.as_str(),
                version.cast_signed(),
                secret.last_used_at.map(|at| at.as_microsecond()),
                record
            ],
        )
        .doing("write the secret")?;
    stamp(session, space)?;
    let event = match (&before, &write.value) {
        (None, _) => "secret.set",
        (Some(_), Some(_)) => "secret.rotated",
        (Some(_), None) => "secret.changed",
    };
    let details = json!({
        "name": secret.name,
        "version": version,
        "hosts": secret.hosts,
        "deliveries": secret.deliveries,
    });
    let draft = entry(space, event, Some(by), &secret.name, details)?;
    chains.append_about(draft, &[(Guarded::Secrets, secret.name.as_str())])?;
    Ok(secret)
}

fn use_one(
    chains: &mut Chains<'_>,
    ids: &Correlation,
    exec: &ExecId,
    given: &SecretGiven,
) -> Result<()> {
    let session = chains.session();
    let space = &ids.space_id;
    existing(session, space, &given.name)?;
    ensure_unchanged(session, Guarded::Secrets, space, given.name.as_str())?;
    if let Some(grant) = &given.grant_id {
        secret_grants::ensure_in_force(session, space, grant, chains.now())?;
    }
    session
        .execute(
            "UPDATE secrets SET last_used_at = ?3 WHERE space_id = ?1 AND name = ?2",
            values![
                space.as_str(),
                given.name.as_str(),
                chains.now().as_microsecond()
            ],
        )
        .doing("note the use of the secret")?;
    let details = json!({
        "name": given.name,
        "version": given.version,
        "delivery": given.delivery,
        "grant_id": given.grant_id,
    });
    let mut draft = entry(space, "secret.used", None, &given.name, details)?;
    draft.exec_id = Some(exec.clone());
    draft.ids = canonical(&summary::ids(ids));
    chains.append_about(draft, &[(Guarded::Secrets, given.name.as_str())])?;
    Ok(())
}

fn changed_meanwhile(name: &SecretName) -> Error {
    Error::new(
        Code::Conflict,
        Stage::Parse,
        format!("the secret `{name}` was changed by somebody else at the same time"),
    )
    .hint("look at it, and try again")
}
