//! Who may have a secret without being asked about each time. A person makes a grant; it ends by
//! itself, and can be revoked before.

use std::collections::BTreeSet;

use glovebox_model::{
    Code, Correlation, Error, GrantId, Page, Result, SecretGrant, SecretName, SpaceId, Stage,
    Vouched,
};
use jiff::Timestamp;
use serde_json::json;

use crate::administration::Actor;
use crate::approvals::after_cursor;
use crate::failure::{Doing, internal, tampered};
use crate::ledger::chain::Chains;
use crate::ledger::row_proof::{Guarded, ensure_unchanged, is_forged};
use crate::page::{page_size, sql_limit};
use crate::secrets::{entry, existing, stamp};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// More than anybody grants by hand; what is beyond is asked.
const IN_FORCE_MOST: i64 = 1000;

const COLUMNS: &str = "grant_id, record, revoked_at";

/// Which grants of secrets to list.
#[derive(Debug, Clone, Default)]
pub struct SecretGrantFilter {
    pub secret: Option<SecretName>,
    pub conversation_id: Option<String>,
    pub agent_id: Option<String>,
    /// Also those that were revoked or have expired.
    pub include_ended: bool,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl SecretGrantFilter {
    fn query<'v>(
        &'v self,
        session: &Session,
        space: &'v SpaceId,
        now: Timestamp,
    ) -> Result<(String, Vec<Value<'v>>)> {
        let mut values: Vec<Value<'v>> = vec![sql_limit(self.limit).into(), space.as_str().into()];
        let mut conditions = vec!["space_id = ?2".to_owned()];
        let texts = [
            ("secret", self.secret.as_ref().map(|name| name.as_str())),
            ("conversation_id", self.conversation_id.as_deref()),
            ("agent_id", self.agent_id.as_deref()),
        ];
        for (column, wanted) in texts {
            let Some(wanted) = wanted else { continue };
            values.push(session.indexed(wanted).into());
            conditions.push(format!("{column} = ?{}", values.len()));
        }
        if !self.include_ended {
            values.push(now.as_microsecond().into());
            conditions.push(format!(
                "revoked_at IS NULL AND expires_at > ?{}",
                values.len()
            ));
        }
        let cursor = self.cursor.as_deref();
        after_cursor("grant_id", cursor, &mut values, &mut conditions)?;
        let sql = format!(
            "SELECT {COLUMNS}, created_at FROM secret_grants WHERE {}
             ORDER BY created_at DESC, grant_id DESC LIMIT ?1",
            conditions.join(" AND ")
        );
        Ok((sql, values))
    }
}

/// Whether it is for what has these ids. What names a conversation alone is for whoever is known to
/// take part in it; every agent can say so.
fn is_meant(grant: &SecretGrant, ids: &Correlation, vouched: Vouched) -> bool {
    let same = |own: &Option<String>, asked: &Option<String>| {
        own.as_ref().is_none_or(|own| asked.as_ref() == Some(own))
    };
    (grant.agent_id.is_some() || grant.conversation_id.is_some() && vouched.proves_conversation())
        && same(&grant.conversation_id, &ids.conversation_id)
        && same(&grant.agent_id, &ids.agent_id)
}

struct GrantRow {
    grant_id: String,
    record: String,
    revoked_at: Option<i64>,
}

fn read_row(row: &Row<'_>) -> SqlResult<GrantRow> {
    Ok(GrantRow {
        grant_id: row.get(0)?,
        record: row.get(1)?,
        revoked_at: row.get(2)?,
    })
}

impl GrantRow {
    fn into_grant(self) -> Result<SecretGrant> {
        let unreadable = || tampered(format!("the grant `{}` cannot be read", self.grant_id));
        let mut grant: SecretGrant = serde_json::from_slice(self.record.as_bytes())
            .map_err(|error| unreadable().caused_by(error))?;
        if grant.grant_id.as_str() != self.grant_id {
            return Err(unreadable());
        }
        let revoked = self.revoked_at.map(Timestamp::from_microsecond);
        grant.revoked_at = revoked.transpose().map_err(|_| unreadable())?;
        Ok(grant)
    }
}

fn find(session: &Session, space: &SpaceId, id: &GrantId) -> Result<SecretGrant> {
    session
        .row(
            &format!("SELECT {COLUMNS} FROM secret_grants WHERE grant_id = ?1 AND space_id = ?2"),
            values![id.as_str(), space.as_str()],
            read_row,
        )
        .doing("read the grant")?
        .ok_or_else(|| not_found(id))?
        .into_grant()
}

fn not_found(id: &GrantId) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no grant `{id}` of a secret"),
    )
    .hint("list them: `glovebox secret grants`")
}

fn is_in_force(grant: &SecretGrant, now: Timestamp) -> bool {
    grant.revoked_at.is_none() && now < grant.expires_at
}

pub(crate) fn ensure_in_force(
    session: &Session,
    space: &SpaceId,
    id: &GrantId,
    now: Timestamp,
) -> Result<()> {
    let grant = find(session, space, id)?;
    ensure_unchanged(session, Guarded::SecretGrants, space, id.as_str())?;
    if is_in_force(&grant, now) {
        return Ok(());
    }
    let how = match grant.revoked_at {
        Some(_) => "was revoked",
        None => "has expired",
    };
    Err(Error::new(
        Code::Conflict,
        Stage::Obtain,
        format!("the grant `{id}` of the secret `{}` {how}", grant.secret),
    )
    .hint("try again to be asked")
    .hint(format!(
        "or have a person grant it anew: `glovebox secret grant {}`",
        grant.secret
    )))
}

fn revoke(
    chains: &mut Chains<'_>,
    space: &SpaceId,
    grant: SecretGrant,
    by: &Actor,
) -> Result<SecretGrant> {
    let session = chains.session();
    let now = chains.now();
    let id = grant.grant_id.as_str();
    let forged = is_forged(session, Guarded::SecretGrants, space, id)?;
    session
        .execute(
            "UPDATE secret_grants SET revoked_at = ?2 WHERE grant_id = ?1",
            values![grant.grant_id.as_str(), now.as_microsecond()],
        )
        .doing("revoke the grant")?;
    stamp(session, space)?;
    let details = json!({ "name": grant.secret, "grant_id": grant.grant_id });
    let event = "secret.grant_revoked";
    let draft = entry(space, event, Some(by), &grant.secret, details)?;
    chains.append_ending(draft, (Guarded::SecretGrants, id), forged)?;
    // As everybody reads it from now on.
    find(session, space, &grant.grant_id)
}

/// Those of a secret that are in force.
pub(crate) fn revoke_all(
    chains: &mut Chains<'_>,
    space: &SpaceId,
    name: &SecretName,
    by: &Actor,
) -> Result<Vec<SecretGrant>> {
    let rows = chains
        .session()
        .rows(
            &format!(
                "SELECT {COLUMNS} FROM secret_grants WHERE space_id = ?1 AND secret = ?2
                 AND revoked_at IS NULL AND expires_at > ?3 ORDER BY created_at, grant_id"
            ),
            values![space.as_str(), name.as_str(), chains.now().as_microsecond()],
            read_row,
        )
        .doing("look for grants")?;
    rows.into_iter()
        .map(|row| revoke(chains, space, row.into_grant()?, by))
        .collect()
}

impl Store {
    /// Writes a grant and the entry that says so. Its secret must be there.
    pub fn grant_secret(&self, space: &SpaceId, grant: &SecretGrant, by: &Actor) -> Result<()> {
        let (space, grant, by) = (space.clone(), grant.clone(), by.clone());
        self.write(move |chains| {
            let session = chains.session();
            existing(session, &space, &grant.secret)?;
            let record = serde_json::to_string(&grant)
                .map_err(|error| internal("the grant cannot be written").caused_by(error))?;
            let text = |id: &Option<String>| {
                let id = id.as_deref().unwrap_or_default();
                session.indexed(id).into_owned()
            };
            session
                .execute(
                    "INSERT INTO secret_grants (grant_id, space_id, secret, conversation_id,
                         agent_id, created_at, expires_at, revoked_at, record)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8)",
                    values![
                        grant.grant_id.as_str(),
                        space.as_str(),
                        grant.secret.as_str(),
                        text(&grant.conversation_id),
                        text(&grant.agent_id),
                        grant.granted_at.as_microsecond(),
                        grant.expires_at.as_microsecond(),
                        record
                    ],
                )
                .doing("write the grant")?;
            stamp(session, &space)?;
            let details = json!({
                "name": grant.secret,
                "grant_id": grant.grant_id,
                "conversation_id": grant.conversation_id,
                "agent_id": grant.agent_id,
                "deliveries": grant.deliveries,
                "expires_at": grant.expires_at,
            });
            let event = "secret.granted";
            let about = [(Guarded::SecretGrants, grant.grant_id.as_str())];
            chains.append_about(
                entry(&space, event, Some(&by), &grant.secret, details)?,
                &about,
            )?;
            Ok(())
        })
    }

    /// Another space's is not found.
    pub fn secret_grant(&self, space: &SpaceId, id: &GrantId) -> Result<SecretGrant> {
        self.read(|session| find(session, space, id))
    }

    /// Newest first.
    pub fn secret_grants(
        &self,
        space: &SpaceId,
        filter: &SecretGrantFilter,
    ) -> Result<Page<SecretGrant>> {
        self.read(|session| {
            let (sql, values) = filter.query(session, space, Timestamp::now())?;
            let rows = session
                .rows(&sql, &values, |row| {
                    Ok((read_row(row)?, row.get::<i64>(3)?))
                })
                .doing("list the grants")?;
            let cursor = |(row, at): &(GrantRow, i64)| format!("{at}.{}", row.grant_id);
            Page::cut(rows, page_size(filter.limit), cursor).try_map(|(row, _)| row.into_grant())
        })
    }

    /// The secrets that what has these ids may hold in its hands, or could have held before: one that is
    /// only brokered never gets there.
    pub fn secrets_once_handed(
        &self,
        ids: &Correlation,
        vouched: Vouched,
    ) -> Result<BTreeSet<SecretName>> {
        let rows = self.ask("look for grants", |session| {
            let text = |id: &Option<String>| {
                let id = id.as_deref().unwrap_or_default();
                session.indexed(id).into_owned()
            };
            session.rows(
                &format!(
                    "SELECT {COLUMNS} FROM secret_grants
                     WHERE space_id = ?1 AND conversation_id IN (?2, '') AND agent_id IN (?3, '')"
                ),
                values![
                    ids.space_id.as_str(),
                    text(&ids.conversation_id),
                    text(&ids.agent_id)
                ],
                read_row,
            )
        })?;
        let grants = rows.into_iter().map(GrantRow::into_grant);
        let is_handed = |it: &SecretGrant| it.deliveries.iter().any(|way| way.is_handed());
        let is_for = |grant: &Result<SecretGrant>| {
            grant
                .as_ref()
                .map_or(true, |it| is_meant(it, ids, vouched) && is_handed(it))
        };
        grants
            .filter(is_for)
            .map(|it| it.map(|grant| grant.secret))
            .collect()
    }

    /// Those that are in force for what has these ids, newest first.
    pub fn secret_grants_for(
        &self,
        ids: &Correlation,
        vouched: Vouched,
    ) -> Result<Vec<SecretGrant>> {
        let now = Timestamp::now();
        let rows = self.ask("look for grants", |session| {
            let text = |id: &Option<String>| {
                let id = id.as_deref().unwrap_or_default();
                session.indexed(id).into_owned()
            };
            session.rows(
                &format!(
                    "SELECT {COLUMNS} FROM secret_grants
                     WHERE space_id = ?1 AND conversation_id IN (?2, '') AND agent_id IN (?3, '')
                     AND revoked_at IS NULL AND expires_at > ?4
                     ORDER BY created_at DESC, grant_id DESC LIMIT ?5"
                ),
                values![
                    ids.space_id.as_str(),
                    text(&ids.conversation_id),
                    text(&ids.agent_id),
                    now.as_microsecond(),
                    IN_FORCE_MOST
                ],
                read_row,
            )
        })?;
        let grants: Vec<SecretGrant> = rows
            .into_iter()
            .map(GrantRow::into_grant)
            .collect::<Result<_>>()?;
        // The record says whom it is for; the columns only find it.
        let is_for = |grant: &SecretGrant| is_meant(grant, ids, vouched) && is_in_force(grant, now);
        Ok(grants.into_iter().filter(is_for).collect())
    }

    /// From now on it gives nothing. Revoking it again changes nothing; another space's is not
    /// found.
    pub fn revoke_secret_grant(
        &self,
        space: &SpaceId,
        id: &GrantId,
        by: &Actor,
    ) -> Result<SecretGrant> {
        let (space, id, by) = (space.clone(), id.clone(), by.clone());
        self.write(move |chains| {
            let grant = find(chains.session(), &space, &id)?;
            match grant.revoked_at {
                Some(_) => Ok(grant),
                None => revoke(chains, &space, grant, &by),
            }
        })
    }

    /// All of a secret that are in force.
    pub fn revoke_secret_grants(
        &self,
        space: &SpaceId,
        name: &SecretName,
        by: &Actor,
    ) -> Result<Vec<SecretGrant>> {
        let (space, name, by) = (space.clone(), name.clone(), by.clone());
        self.write(move |chains| {
            existing(chains.session(), &space, &name)?;
            revoke_all(chains, &space, &name, &by)
        })
    }
}
