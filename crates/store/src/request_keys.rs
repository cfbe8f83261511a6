//! Idempotency keys: the same key with the same request has its effect once.

use std::time::Duration;

use glovebox_model::{Code, Error, ExecId, Result, SpaceId, Stage};
use serde::{Deserialize, Serialize};

use crate::budget;
use crate::failure::{Doing, tampered};
use crate::leases;
use crate::ledger::chain::Chains;
use crate::sql::{Session, values};
use crate::store::Store;

/// Old ones that are forgotten at once, so that no call takes long.
const SWEPT_MOST: i64 = 1000;

/// A key as a caller gave it. The space is that of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// Two callers may use the same key.
    pub caller: String,
    pub key: String,
    /// Of the request; another request may not use the key.
    pub fingerprint: [u8; 32],
}

/// What to do with a request that has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// It is new: do it, and call [`Store::finish_once`].
    Proceed,
    /// It was done, with this answer.
    Done(StoredAnswer),
    /// It is being done right now.
    Busy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    pub content_type: String,
}

struct KeyRow {
    fingerprint: Vec<u8>,
    owner: String,
    exec_id: Option<String>,
    answer: Option<(i64, Vec<u8>, String)>,
}

fn find(session: &Session, space: &SpaceId, key: &RequestKey) -> Result<Option<KeyRow>> {
    session
        .row(
            "SELECT fingerprint, owner_id, exec_id, status, body, content_type FROM request_keys
             WHERE space_id = ?1 AND caller = ?2 AND key = ?3",
            values![space.as_str(), &key.caller, &key.key],
            |row| {
                let status: Option<i64> = row.get(3)?;
                let body: Option<Vec<u8>> = row.get(4)?;
                let content_type: Option<String> = row.get(5)?;
                Ok(KeyRow {
                    fingerprint: row.get(0)?,
                    owner: row.get(1)?,
                    exec_id: row.get(2)?,
                    answer: status
                        .zip(body)
                        .zip(content_type)
                        .map(|((status, body), content_type)| (status, body, content_type)),
                })
            },
        )
        .doing("look for the idempotency key")
}

impl KeyRow {
    fn exec(&self) -> Result<Option<ExecId>> {
        let parse = |id: &String| {
            id.parse()
                .map_err(|_| tampered("an idempotency key names no valid exec"))
        };
        self.exec_id.as_ref().map(parse).transpose()
    }

    fn ensure_same(&self, key: &RequestKey) -> Result<()> {
        if self.fingerprint == key.fingerprint {
            return Ok(());
        }
        self.conflict(key)
    }

    fn conflict(&self, key: &RequestKey) -> Result<()> {
        let name = &key.key;
        let exec = self.exec()?;
        let message = match &exec {
            Some(exec) => format!(
                "the idempotency key `{name}` was used for another request, which made exec `{exec}`"
            ),
            None => format!("the idempotency key `{name}` was used for another request"),
        };
        let error = Error::new(Code::IdempotencyConflict, Stage::Parse, message)
            .hint("use a new key for a new request, and the same one only to repeat it");
        Err(match exec {
            Some(exec) => error.of_exec(exec),
            None => error,
        })
    }
}

/// The exec that the same request made before.
pub(crate) fn exec_of(
    session: &Session,
    space: &SpaceId,
    key: &RequestKey,
) -> Result<Option<ExecId>> {
    let Some(row) = find(session, space, key)? else {
        return Ok(None);
    };
    row.ensure_same(key)?;
    match row.exec()? {
        Some(exec) => Ok(Some(exec)),
        // The key of a request that was no exec.
        None => row.conflict(key).map(|()| None),
    }
}

pub(crate) fn keep_exec(
    chains: &Chains<'_>,
    id: &(SpaceId, ExecId),
    owner: &str,
    key: &RequestKey,
) -> Result<()> {
    insert(chains, &id.0, owner, key, Some(&id.1))
}

fn insert(
    chains: &Chains<'_>,
    space: &SpaceId,
    owner: &str,
    key: &RequestKey,
    exec: Option<&ExecId>,
) -> Result<()> {
    chains
        .session()
        .execute(
            "INSERT INTO request_keys
                 (space_id, caller, key, fingerprint, owner_id, exec_id, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            values![
                space.as_str(),
                &key.caller,
                &key.key,
                &key.fingerprint,
                owner,
                exec.map(ExecId::as_str),
                chains.now().as_microsecond()
            ],
        )
        .doing("keep the idempotency key")?;
    Ok(())
}

fn remove(session: &Session, space: &SpaceId, key: &RequestKey) -> Result<()> {
    session
        .execute(
            "DELETE FROM request_keys
             WHERE space_id = ?1 AND caller = ?2 AND key = ?3 AND exec_id IS NULL",
            values![space.as_str(), &key.caller, &key.key],
        )
        .doing("free the idempotency key")?;
    Ok(())
}

impl Store {
    /// The exec that the same request made before, if any. For an answer without delay;
    /// [`Store::admit`] looks again.
    pub fn replay(&self, space: &SpaceId, key: &RequestKey) -> Result<Option<ExecId>> {
        self.read(|session| exec_of(session, space, key))
    }

    /// Takes the key for a request that makes no exec. What a dead owner was at counts as not
    /// done.
    pub fn begin_once(&self, owner: &str, space: &SpaceId, key: &RequestKey) -> Result<Once> {
        let (owner, space, key) = (owner.to_owned(), space.clone(), key.clone());
        let owners = self.owners().clone();
        self.write(move |chains| {
            let session = chains.session();
            if let Some(row) = find(session, &space, &key)? {
                row.ensure_same(&key)?;
                if row.exec_id.is_some() {
                    row.conflict(&key)?;
                }
                if let Some((status, body, content_type)) = row.answer {
                    return Ok(Once::Done(StoredAnswer {
                        status: u16::try_from(status).unwrap_or(500),
                        body,
                        content_type,
                    }));
                }
                if leases::is_alive(session, &owners, &row.owner)? {
                    return Ok(Once::Busy);
                }
                remove(session, &space, &key)?;
            }
            insert(chains, &space, &owner, &key, None)?;
            Ok(Once::Proceed)
        })
    }

    /// Keeps the answer to a request for whoever asks again; `None` frees the key.
    pub fn finish_once(
        &self,
        space: &SpaceId,
        key: &RequestKey,
        answer: Option<StoredAnswer>,
    ) -> Result<()> {
        let (space, key) = (space.clone(), key.clone());
        self.write(move |chains| {
            let session = chains.session();
            let Some(answer) = &answer else {
                return remove(session, &space, &key);
            };
            session
                .execute(
                    "UPDATE request_keys SET status = ?4, body = ?5, content_type = ?6
                     WHERE space_id = ?1 AND caller = ?2 AND key = ?3 AND exec_id IS NULL",
                    values![
                        space.as_str(),
                        &key.caller,
                        &key.key,
                        i64::from(answer.status),
                        &answer.body,
                        &answer.content_type
                    ],
                )
                .doing("keep the answer")?;
            Ok(())
        })
    }

    /// Forgets keys that are older than this, and what agents used more than an hour ago. Returns
    /// how many rows went; a bounded number, so call it again while it is not 0.
    pub fn sweep(&self, keep: Duration) -> Result<u64> {
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        self.write(move |chains| {
            let session = chains.session();
            let before = chains.now().as_microsecond().saturating_sub(keep);
            let keys = session
                .execute(
                    "DELETE FROM request_keys WHERE (space_id, caller, key) IN
                     (SELECT space_id, caller, key FROM request_keys WHERE created_at < ?1
                      ORDER BY created_at LIMIT ?2)",
                    values![before, SWEPT_MOST],
                )
                .doing("forget old idempotency keys")?;
            Ok(keys + budget::forget_old(session, chains.now(), SWEPT_MOST)?)
        })
    }
}
