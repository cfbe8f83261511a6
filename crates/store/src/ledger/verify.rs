//! Verifying the ledger of one space where it is kept: the chain, its signatures, the rows that it
//! vouches for, and the index that queries rely on.

use glovebox_model::{Result, SpaceId, Stage};
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::chain::{CHECKPOINT_EVERY, ENTRY_COLUMNS, StoredHead, read_entry};
use super::encoding::sha256;
use super::entry::{Kind, StoredEntry};
use super::key::{Claim, PublicKey};
use super::walk::{Expectations, Verification, Walk};
use crate::failure::{Doing, at};
use crate::hex;
use crate::store::Store;
use crate::summary::{OWNER, RECORD_DIGEST};

/// The row that an entry is about, as far as the ledger vouches for it.
struct VouchedRow {
    owner: String,
    opened_seq: i64,
    closed_seq: Option<i64>,
    closed_hash: Option<Vec<u8>>,
    record: Vec<u8>,
}

impl VouchedRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let Some(opened_seq) = row.get(10)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            opened_seq,
            closed_seq: row.get(11)?,
            closed_hash: row.get(12)?,
            owner: row.get(13)?,
            record: row.get_ref(14)?.as_bytes()?.to_vec(),
        }))
    }
}

impl Store {
    /// Looks at every entry. An error means that it could not be looked at; what is wrong with the
    /// ledger is in the result.
    pub fn verify(&self, space: &SpaceId, expectations: &Expectations) -> Result<Verification> {
        let verify = || {
            let key = self.existing_key()?.map(|key| key.public());
            self.read(|connection| {
                let mut walk = Walk::new(space.as_str(), expectations);
                let terms = walk_entries(connection, space, &mut walk)?;
                check_terms(connection, space, terms, &mut walk)?;
                check_strangers(connection, space, &mut walk)?;
                check_head(connection, space, key.as_ref(), &mut walk)?;
                check_checkpoints(connection, space, key.as_ref(), &mut walk)?;
                Ok(walk.finish())
            })
        };
        verify().map_err(at(Stage::Close))
    }
}

/// Returns how many terms the entries have.
fn walk_entries(connection: &Connection, space: &SpaceId, walk: &mut Walk<'_>) -> Result<u64> {
    let what = "read the ledger";
    let mut select = connection
        .prepare_cached(&format!(
            "SELECT {ENTRY_COLUMNS}, x.opened_seq, x.closed_seq, x.closed_hash, x.owner_id, x.record
             FROM ledger_entries e
             LEFT JOIN sandbox_execs x ON x.space_id = e.space_id AND x.exec_id = e.exec_id
             WHERE e.space_id = ?1 ORDER BY e.seq"
        ))
        .doing(what)?;
    let mut indexed = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ledger_terms
             WHERE space_id = ?1 AND term = ?2 AND at = ?3 AND seq = ?4)",
        )
        .doing(what)?;
    let mut rows = select.query([space.as_str()]).doing(what)?;
    let mut terms = 0;
    while let Some(row) = rows.next().doing(what)? {
        let entry = read_entry(row).doing(what)?;
        walk.entry(&entry);
        check_row(&entry, VouchedRow::read(row).doing(what)?, walk);
        for term in entry.terms().unwrap_or_default() {
            terms += 1;
            let found: bool = indexed
                .query_row(params![entry.space, term, entry.at_us, entry.seq], |row| {
                    row.get(0)
                })
                .doing(what)?;
            if !found {
                walk.problem_here("entry is missing from the index: queries do not find it");
            }
        }
    }
    Ok(terms)
}

fn check_row(entry: &StoredEntry, row: Option<VouchedRow>, walk: &mut Walk<'_>) {
    if entry.exec_id.is_empty() {
        return;
    }
    let id = &entry.exec_id;
    let Some(row) = row else {
        walk.problem_here(format!("the row of exec `{id}` is missing"));
        return;
    };
    let Some(kind) = Kind::parse(&entry.kind) else {
        walk.problem_here(format!("entry has the unknown kind `{}`", entry.kind));
        return;
    };
    let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
    let opens = matches!(kind, Kind::Planned | Kind::Refused);
    let closes = matches!(kind, Kind::Outcome | Kind::Recovered | Kind::Refused);
    if opens && row.opened_seq != entry.seq {
        walk.problem_here(format!(
            "the row of exec `{id}` names another opening entry"
        ));
    }
    if opens && body.get(OWNER).and_then(Value::as_str) != Some(&row.owner) {
        walk.problem_here(format!("the row of exec `{id}` names another owner"));
    }
    if closes && (row.closed_seq, row.closed_hash) != (Some(entry.seq), Some(entry.hash.clone())) {
        walk.problem_here(format!(
            "the row of exec `{id}` names another closing entry"
        ));
    }
    let vouches = closes || row.closed_seq.is_none();
    let digest = hex::encode(&sha256(&row.record));
    if vouches && body.get(RECORD_DIGEST).and_then(Value::as_str) != Some(&digest) {
        walk.problem_here(format!("the record of exec `{id}` was edited"));
    }
}

fn check_terms(
    connection: &Connection,
    space: &SpaceId,
    expected: u64,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let count: i64 = connection
        .query_row(
            "SELECT count(*) FROM ledger_terms WHERE space_id = ?1",
            [space.as_str()],
            |row| row.get(0),
        )
        .doing("read the ledger's index")?;
    if count.unsigned_abs() > expected {
        walk.problem(None, "the index names properties that no entry has");
    }
    Ok(())
}

/// Rows that no entry opened, or that claim an end which no entry is.
fn check_strangers(connection: &Connection, space: &SpaceId, walk: &mut Walk<'_>) -> Result<()> {
    let what = "read the execs";
    let mut select = connection
        .prepare_cached(
            "SELECT x.exec_id, x.opened_seq,
                 (SELECT e.exec_id FROM ledger_entries e
                  WHERE e.space_id = x.space_id AND e.seq = x.opened_seq),
                 x.closed_seq,
                 (SELECT e.exec_id FROM ledger_entries e
                  WHERE e.space_id = x.space_id AND e.seq = x.closed_seq)
             FROM sandbox_execs x WHERE x.space_id = ?1 ORDER BY x.opened_seq",
        )
        .doing(what)?;
    let mut rows = select.query([space.as_str()]).doing(what)?;
    while let Some(row) = rows.next().doing(what)? {
        let parts = || -> rusqlite::Result<_> {
            Ok((
                row.get::<_, String>(0)?,
                (row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?),
                (
                    row.get::<_, Option<i64>>(3)?,
                    row.get::<_, Option<String>>(4)?,
                ),
            ))
        };
        let (id, (opened, opener), (closed, closer)) = parts().doing(what)?;
        if opener.as_ref() != Some(&id) {
            walk.problem(
                Some(opened.unsigned_abs()),
                format!("exec `{id}` has a row, and no entry opened it"),
            );
        }
        if let Some(closed) = closed
            && closer.as_ref() != Some(&id)
        {
            walk.problem(
                Some(closed.unsigned_abs()),
                format!("exec `{id}` is closed, and no entry closed it"),
            );
        }
    }
    Ok(())
}

fn check_head(
    connection: &Connection,
    space: &SpaceId,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let stored = StoredHead::read(connection, space.as_str()).doing("read the ledger's head")?;
    let (last_seq, last_hash) = walk.last();
    let Some(stored) = stored else {
        if last_seq != 0 {
            walk.problem_here("the ledger has entries and no signed head");
        }
        return Ok(());
    };
    let ends_there = (stored.seq, stored.hash.as_slice()) == (last_seq, last_hash);
    let seq = Some(stored.seq.unsigned_abs());
    if !ends_there {
        walk.problem(
            seq,
            format!(
                "the head names entry {} and the ledger ends with entry {last_seq}, or with another hash",
                stored.seq
            ),
        );
    }
    walk.key(&stored.public_key);
    let Some(key) = key else {
        walk.problem(
            None,
            "`ledger.key` is missing, so signatures cannot be trusted",
        );
        return Ok(());
    };
    if stored.signed_by(key, space.as_str()).is_none() {
        walk.problem(seq, "the head is not signed by `ledger.key`");
    }
    Ok(())
}

struct StoredCheckpoint {
    seq: i64,
    hash: Vec<u8>,
    signature: Vec<u8>,
    /// Of the entry at that place.
    entry_hash: Option<Vec<u8>>,
}

impl StoredCheckpoint {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            hash: row.get(1)?,
            signature: row.get(2)?,
            entry_hash: row.get(3)?,
        })
    }
}

fn check_checkpoints(
    connection: &Connection,
    space: &SpaceId,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let what = "read the ledger's checkpoints";
    let mut select = connection
        .prepare_cached(
            "SELECT c.seq, c.hash, c.signature, e.hash FROM ledger_checkpoints c
             LEFT JOIN ledger_entries e ON e.space_id = c.space_id AND e.seq = c.seq
             WHERE c.space_id = ?1 ORDER BY c.seq",
        )
        .doing(what)?;
    let mut rows = select.query([space.as_str()]).doing(what)?;
    let mut due = CHECKPOINT_EVERY;
    while let Some(row) = rows.next().doing(what)? {
        let StoredCheckpoint {
            seq,
            hash,
            signature,
            entry_hash,
        } = StoredCheckpoint::read(row).doing(what)?;
        let seq = seq.unsigned_abs();
        while due < seq {
            walk.problem(Some(due), "the checkpoint is missing");
            due += CHECKPOINT_EVERY;
        }
        if due == seq {
            due += CHECKPOINT_EVERY;
        } else {
            walk.problem(Some(seq), "a checkpoint stands where none is made");
        }
        if entry_hash.as_ref() != Some(&hash) {
            walk.problem(Some(seq), "the checkpoint is of another entry");
        }
        let parts = (hash.as_slice().try_into(), signature.as_slice().try_into());
        let signed = match (key, parts) {
            (Some(key), (Ok(hash), Ok(signature))) => {
                Claim::Checkpoint.holds(space.as_str(), seq, &hash, key, &signature)
            }
            _ => false,
        };
        if !signed {
            walk.problem(Some(seq), "the checkpoint is not signed by `ledger.key`");
        }
    }
    while due <= walk.last().0.unsigned_abs() {
        walk.problem(Some(due), "the checkpoint is missing");
        due += CHECKPOINT_EVERY;
    }
    Ok(())
}
