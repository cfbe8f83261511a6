//! Kinds of actions that people allowed in a conversation. A grant is made by an answer and by
//! nothing else, can be seen, and can be revoked.

use glovebox_model::{Approval, Code, Error, Grant, GrantId, Page, Result, SpaceId, Stage};
use jiff::Timestamp;
use serde_json::json;

use crate::administration::{Actor, administered_about};
use crate::approval_rows::{entry, shown};
use crate::approvals::{NewGrant, after_cursor};
use crate::failure::{Doing, at, internal, tampered};
use crate::hex;
use crate::ledger::chain::Chains;
use crate::ledger::encoding::{canonical, sha256};
use crate::ledger::row_proof::{Guarded, ensure_unchanged, is_forged};
use crate::page::{page_size, sql_limit};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// More than anybody grants by hand; what is beyond is asked again.
const IN_FORCE_MOST: i64 = 1000;

const COLUMNS: &str = "grant_id, record, used, revoked_at, expires_at, last_used_at";

/// Those in force at the time that this parameter has. Written so that the index is chosen which has
/// the order, not the one of kinds.
fn in_force_at(parameter: usize) -> String {
    format!("coalesce(revoked_at, 0) = 0 AND coalesce(expires_at, 0) > ?{parameter}")
}

/// Which grants to list.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    pub space: Option<SpaceId>,
    /// Wants a space.
    pub conversation_id: Option<String>,
    /// Also those that were revoked or have expired.
    pub include_ended: bool,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl GrantFilter {
    pub(crate) fn query(&self, session: &Session) -> Result<(String, Vec<Value<'_>>)> {
        let mut values: Vec<Value<'_>> = vec![sql_limit(self.limit).into()];
        let mut conditions = Vec::new();
        if let Some(space) = &self.space {
            values.push(space.as_str().into());
            conditions.push(format!("space_id = ?{}", values.len()));
        }
        if let Some(conversation) = &self.conversation_id {
            if self.space.is_none() {
                return Err(Error::new(
                    Code::InvalidArgument,
                    Stage::Parse,
                    "a conversation is known only in its space",
                )
                .hint("name the space too"));
            }
            values.push(session.indexed(conversation).into());
            conditions.push(format!("conversation_id = ?{}", values.len()));
        }
        if !self.include_ended {
            values.push(Timestamp::now().as_microsecond().into());
            conditions.push(in_force_at(values.len()));
        }
        after_cursor(
            "grant_id",
            self.cursor.as_deref(),
            &mut values,
            &mut conditions,
        )?;
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let sql = format!(
            "SELECT {COLUMNS}, created_at FROM grants {filter}
             ORDER BY created_at DESC, grant_id DESC LIMIT ?1"
        );
        Ok((sql, values))
    }
}

struct GrantRow {
    grant_id: String,
    record: String,
    used: i64,
    revoked_at: Option<i64>,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
}

fn read_row(row: &Row<'_>) -> SqlResult<GrantRow> {
    Ok(GrantRow {
        grant_id: row.get(0)?,
        record: row.get(1)?,
        used: row.get(2)?,
        revoked_at: row.get(3)?,
        expires_at: row.get(4)?,
        last_used_at: row.get(5)?,
    })
}

impl GrantRow {
    fn into_grant(self) -> Result<Grant> {
        let unreadable = || tampered(format!("the grant `{}` cannot be read", self.grant_id));
        let mut grant: Grant = serde_json::from_slice(self.record.as_bytes())
            .map_err(|error| unreadable().caused_by(error))?;
        let moment = |at: Option<i64>| {
            at.map(Timestamp::from_microsecond)
                .transpose()
                .map_err(|_| unreadable())
        };
        // Whichever ends earlier, or says that it was revoked, is believed. The column also says so of
        // one that had expired and made room for the next.
        grant.expires_at = grant.expires_at.min(moment(self.expires_at)?);
        let revoked = moment(self.revoked_at)?.filter(|at| !grant.has_expired(*at));
        grant.revoked_at = grant.revoked_at.or(revoked);
        grant.last_used_at = moment(self.last_used_at)?;
        grant.used = self.used.unsigned_abs();
        Ok(grant)
    }
}

fn find(session: &Session, id: &GrantId) -> Result<Option<Grant>> {
    session
        .row(
            &format!("SELECT {COLUMNS} FROM grants WHERE grant_id = ?1"),
            values![id.as_str()],
            read_row,
        )
        .doing("read the grant")?
        .map(GrantRow::into_grant)
        .transpose()
}

fn written(grant: &Grant) -> Result<String> {
    serde_json::to_string(grant)
        .map_err(|error| internal("the grant cannot be written").caused_by(error))
}

/// With the answer that makes it.
pub(crate) fn insert(
    chains: &mut Chains<'_>,
    approval: &Approval,
    by: &str,
    new: NewGrant,
) -> Result<()> {
    let session = chains.session();
    let Some(conversation) = approval.ids.conversation_id.clone() else {
        return Err(internal("a grant belongs to no conversation"));
    };
    let indexed = session.indexed(&conversation).into_owned();
    // By its digest: a kind may be longer than an index takes, and is only compared.
    let kind = kind_digest(&new.kind);
    let now = chains.now().as_microsecond();
    let there = session
        .row(
            &format!(
                "SELECT {COLUMNS} FROM grants WHERE space_id = ?1 AND conversation_id = ?2
                 AND kind = ?3 AND revoked_at IS NULL"
            ),
            values![approval.space_id.as_str(), &indexed, &kind],
            read_row,
        )
        .doing("look for the grant")?;
    let mut ended = None;
    if let Some(there) = there {
        ensure_unchanged(
            session,
            Guarded::Grants,
            &approval.space_id,
            &there.grant_id,
        )?;
        if there.expires_at.unwrap_or(0) > now {
            return end_earlier(chains, approval, by, there.into_grant()?, new.expires_at);
        }
        // The index holds one of a kind that was not revoked: an expired one makes room.
        session
            .execute(
                "UPDATE grants SET revoked_at = ?2 WHERE grant_id = ?1",
                values![&there.grant_id, now],
            )
            .doing("end the expired grant")?;
        ended = Some(there.grant_id);
    }
    let grant = Grant {
        id: new.id,
        space_id: approval.space_id.clone(),
        conversation_id: conversation,
        kind: new.kind,
        shown: new.shown,
        approval_id: approval.id.clone(),
        granted_by: by.to_owned(),
        created_at: chains.now(),
        revoked_at: None,
        revoked_by: None,
        expires_at: Some(new.expires_at),
        used: 0,
        last_used_at: None,
    };
    session
        .execute(
            "INSERT INTO grants (grant_id, space_id, conversation_id, kind, created_at, revoked_at,
                 expires_at, used, record)
             VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?7, 0, ?6)",
            values![
                grant.id.as_str(),
                grant.space_id.as_str(),
                &indexed,
                &kind,
                grant.created_at.as_microsecond(),
                written(&grant)?,
                new.expires_at.as_microsecond()
            ],
        )
        .doing("write the grant")?;
    let details = json!({
        "grant_id": grant.id,
        "kind_sha256": kind,
        "expires_at": grant.expires_at,
    });
    let made = std::iter::once(grant.id.as_str());
    let about = made.chain(ended.as_deref()).map(|id| (Guarded::Grants, id));
    let about: Vec<_> = about.collect();
    chains.append_about(entry(approval, "grant.made", Some(by), details)?, &about)?;
    Ok(())
}

/// A kind that was allowed twice ends when the first of the two answers lets it end.
fn end_earlier(
    chains: &mut Chains<'_>,
    approval: &Approval,
    by: &str,
    grant: Grant,
    end: Timestamp,
) -> Result<()> {
    if grant.expires_at.is_none_or(|known| known <= end) {
        return Ok(());
    }
    chains
        .session()
        .execute(
            "UPDATE grants SET expires_at = ?2 WHERE grant_id = ?1",
            values![grant.id.as_str(), end.as_microsecond()],
        )
        .doing("let the grant end earlier")?;
    let details = json!({ "grant_id": grant.id, "expires_at": end });
    let about = [(Guarded::Grants, grant.id.as_str())];
    chains.append_about(
        entry(approval, "grant.shortened", Some(by), details)?,
        &about,
    )?;
    Ok(())
}

/// The entry that says what was done to a grant, and vouches for its row.
fn append(
    chains: &mut Chains<'_>,
    grant: &Grant,
    event: &str,
    by: Option<&Actor>,
    forged: bool,
) -> Result<()> {
    let details = json!({
        "grant_id": grant.id,
        "approval_id": grant.approval_id,
        "kind_sha256": kind_digest(&grant.kind),
        "used": grant.used,
    });
    let tags = vec![format!("approval:{}", grant.approval_id)];
    let mut draft = administered_about(&grant.space_id, event, by, None, tags, details)?;
    draft.ids = canonical(&json!({ "conversation_id": grant.conversation_id }));
    chains.append_ending(draft, (Guarded::Grants, grant.id.as_str()), forged)?;
    Ok(())
}

fn kind_digest(kind: &str) -> String {
    hex::encode(&sha256(kind.as_bytes()))
}

fn not_found(id: &GrantId) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no grant `{id}`"),
    )
    .hint("list them: `glovebox approval grants`")
}

impl Store {
    /// Another space's is not found, unless no space is named.
    pub fn grant(&self, space: Option<&SpaceId>, id: &GrantId) -> Result<Grant> {
        let found = self.read(|session| find(session, id))?;
        found
            .filter(|it| space.is_none_or(|space| it.space_id == *space))
            .ok_or_else(|| not_found(id))
    }

    /// Newest first.
    pub fn grants(&self, filter: &GrantFilter) -> Result<Page<Grant>> {
        self.read(|session| {
            let (sql, values) = filter.query(session)?;
            let rows = session
                .rows(&sql, &values, |row| {
                    Ok((read_row(row)?, row.get::<i64>(6)?))
                })
                .doing("list the grants")?;
            let cursor = |(row, at): &(GrantRow, i64)| format!("{at}.{}", row.grant_id);
            Page::cut(rows, page_size(filter.limit), cursor).try_map(|(row, _)| row.into_grant())
        })
    }

    /// Those that are in force in a conversation, newest first.
    pub fn grants_for(&self, space: &SpaceId, conversation: &str) -> Result<Vec<Grant>> {
        let now = Timestamp::now();
        let rows = self.ask("look for grants", |session| {
            let conversation = session.indexed(conversation);
            session.rows(
                &format!(
                    "SELECT {COLUMNS} FROM grants
                     WHERE space_id = ?1 AND conversation_id = ?2 AND {}
                     ORDER BY created_at DESC, grant_id DESC LIMIT ?3",
                    in_force_at(4)
                ),
                values![
                    space.as_str(),
                    conversation,
                    IN_FORCE_MOST,
                    now.as_microsecond()
                ],
                read_row,
            )
        })?;
        let grants = rows.into_iter().map(GrantRow::into_grant);
        grants
            .filter(|it| !matches!(it, Ok(grant) if !grant.is_in_force(now)))
            .collect()
    }

    /// Counts a use. A conflict when it has ended meanwhile: then people must be asked.
    pub fn use_grant(&self, id: &GrantId) -> Result<Grant> {
        let id = id.clone();
        self.write(move |chains| {
            let session = chains.session();
            let mut grant = find(session, &id)?.ok_or_else(|| not_found(&id))?;
            ensure_unchanged(session, Guarded::Grants, &grant.space_id, id.as_str())?;
            let now = chains.now();
            if !grant.is_in_force(now) {
                let ended = match (&grant.revoked_by, grant.has_expired(now)) {
                    (Some(by), _) => format!("was revoked by `{}`", shown(by)),
                    (None, true) => "has expired".to_owned(),
                    (None, false) => "was revoked".to_owned(),
                };
                let message = format!("the grant `{id}` {ended}");
                return Err(Error::new(Code::Conflict, Stage::Obtain, message)
                    .hint("try again to be asked"));
            }
            session
                .execute(
                    "UPDATE grants SET used = used + 1, last_used_at = ?2 WHERE grant_id = ?1",
                    values![id.as_str(), now.as_microsecond()],
                )
                .doing("count the use of the grant")?;
            grant.used += 1;
            grant.last_used_at = Some(now);
            append(chains, &grant, "grant.used", None, false)?;
            Ok(grant)
        })
        .map_err(at(Stage::Obtain))
    }

    /// From now on people are asked again. Revoking it again changes nothing; another space's is
    /// not found, unless no space is named.
    pub fn revoke_grant(&self, space: Option<&SpaceId>, id: &GrantId, by: &Actor) -> Result<Grant> {
        let (space, id, by) = (space.cloned(), id.clone(), by.clone());
        self.write(move |chains| {
            let session = chains.session();
            let mut grant = find(session, &id)?
                .filter(|it| space.as_ref().is_none_or(|space| it.space_id == *space))
                .ok_or_else(|| not_found(&id))?;
            let forged = is_forged(session, Guarded::Grants, &grant.space_id, id.as_str())?;
            if grant.revoked_at.is_some() {
                return Ok(grant);
            }
            grant.revoked_at = Some(chains.now());
            grant.revoked_by = Some(by.name.clone());
            session
                .execute(
                    "UPDATE grants SET revoked_at = ?2, record = ?3 WHERE grant_id = ?1",
                    values![id.as_str(), chains.now().as_microsecond(), written(&grant)?],
                )
                .doing("revoke the grant")?;
            append(chains, &grant, "grant.revoked", Some(&by), forged)?;
            Ok(grant)
        })
        .map_err(at(Stage::Obtain))
    }
}
