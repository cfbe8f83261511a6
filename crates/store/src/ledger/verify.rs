//! Verifying the ledger of one space where it is kept: the chain, its signatures, the rows that it
//! vouches for, and the index that queries rely on.

use glovebox_model::{Result, SpaceId, Stage};

use super::chain::{CHECKPOINT_EVERY, ENTRY_COLUMNS, StoredHead, read_entry};
use super::entry::StoredEntry;
use super::index;
use super::key::{Claim, PublicKey};
use super::vouch::{VouchedRow, Vouching};
use super::walk::{Expectations, Verification, Walk};
use crate::failure::{Doing, at};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// Rows that are in memory at the same time.
const AT_ONCE: usize = 500;
/// Terms that are looked for in one statement.
const TERMS_AT_ONCE: usize = 250;

impl Store {
    /// Looks at every entry. An error means that it could not be looked at; what is wrong with the
    /// ledger is in the result.
    pub fn verify(&self, space: &SpaceId, expectations: &Expectations) -> Result<Verification> {
        let verify = || {
            let key = self.existing_key()?.map(|key| key.public());
            self.read(|session| {
                let mut walk = Walk::new(space.as_str(), expectations);
                let terms = walk_entries(session, space, &mut walk)?;
                check_terms(session, space, terms, &mut walk)?;
                check_strangers(session, space, &mut walk)?;
                check_head(session, space, key.as_ref(), &mut walk)?;
                check_checkpoints(session, space, key.as_ref(), &mut walk)?;
                Ok(walk.finish())
            })
        };
        verify().map_err(at(Stage::Close))
    }
}

/// Returns how many terms the index has to have.
fn walk_entries(session: &Session, space: &SpaceId, walk: &mut Walk<'_>) -> Result<u64> {
    let sql = format!(
        "SELECT {ENTRY_COLUMNS}, {}
         FROM ledger_entries e
         LEFT JOIN sandbox_execs x ON x.space_id = e.space_id AND x.exec_id = e.exec_id
         WHERE e.space_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT {AT_ONCE}",
        VouchedRow::columns(session)
    );
    let reach = index::reach(session, space.as_str()).doing("read the ledger")?;
    let mut vouching = Vouching::default();
    let (mut after, mut terms) = (i64::MIN, 0);
    loop {
        let rows = session
            .rows(&sql, values![space.as_str(), after], |row| {
                Ok((read_entry(row)?, VouchedRow::read(session, row, 10)?))
            })
            .doing("read the ledger")?;
        let Some((last, _)) = rows.last() else { break };
        after = last.seq;
        let mut entries = Vec::with_capacity(rows.len());
        for (entry, row) in rows {
            walk.entry(&entry);
            vouching.entry(&entry, row, walk);
            entries.push(entry);
        }
        terms += check_indexed(session, &entries, reach, walk)?;
    }
    vouching.finish(walk);
    Ok(terms)
}

/// Whether each entry that the index reaches is found by all of its terms; returns how many there
/// are.
fn check_indexed(
    session: &Session,
    entries: &[StoredEntry],
    reach: i64,
    walk: &mut Walk<'_>,
) -> Result<u64> {
    let terms: Vec<(String, &StoredEntry)> = entries
        .iter()
        .filter(|entry| entry.seq <= reach)
        .flat_map(|entry| {
            let terms = entry.terms().unwrap_or_default();
            terms.into_iter().map(move |term| (term, entry))
        })
        .collect();
    for some in terms.chunks(TERMS_AT_ONCE) {
        let mut places = Vec::with_capacity(some.len());
        let mut values = vec![Value::from(&some[0].1.space)];
        for (term, entry) in some {
            let next = values.len();
            values.extend_from_slice(values![session.indexed(term), entry.at_us, entry.seq]);
            places.push(format!(
                "(CAST(?{} AS TEXT), CAST(?{} AS BIGINT), CAST(?{} AS BIGINT))",
                next + 1,
                next + 2,
                next + 3
            ));
        }
        // Both databases call the columns of a list of values so.
        let sql = format!(
            "SELECT v.column3 FROM (VALUES {}) v WHERE NOT EXISTS (
                 SELECT 1 FROM ledger_terms t WHERE t.space_id = ?1 AND t.term = v.column1
                 AND t.at = v.column2 AND t.seq = v.column3)",
            places.join(", ")
        );
        let missing: Vec<i64> = session
            .rows(&sql, &values, |row| row.get(0))
            .doing("read the ledger's index")?;
        for seq in missing {
            walk.problem(
                Some(seq.unsigned_abs()),
                "entry is missing from the index: queries do not find it",
            );
        }
    }
    Ok(terms.len() as u64)
}

fn check_terms(
    session: &Session,
    space: &SpaceId,
    expected: u64,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let count: Option<i64> = session
        .row(
            "SELECT count(*) FROM ledger_terms WHERE space_id = ?1",
            values![space.as_str()],
            |row| row.get(0),
        )
        .doing("read the ledger's index")?;
    if count.unwrap_or_default().unsigned_abs() > expected {
        walk.problem(None, "the index names properties that no entry has");
    }
    Ok(())
}

/// A row, and the entries that stand where it says that it was opened and closed.
struct Placed {
    exec_id: String,
    opened: i64,
    opener: Option<String>,
    closed: Option<i64>,
    closer: Option<String>,
}

impl Placed {
    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self {
            exec_id: row.get(0)?,
            opened: row.get(1)?,
            opener: row.get(2)?,
            closed: row.get(3)?,
            closer: row.get(4)?,
        })
    }
}

/// Rows that no entry opened, or that claim an end which no entry is.
fn check_strangers(session: &Session, space: &SpaceId, walk: &mut Walk<'_>) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let rows = session
            .rows(
                &format!(
                    "SELECT x.exec_id, x.opened_seq, o.exec_id, x.closed_seq, c.exec_id
                     FROM sandbox_execs x
                     LEFT JOIN ledger_entries o ON o.space_id = x.space_id AND o.seq = x.opened_seq
                     LEFT JOIN ledger_entries c ON c.space_id = x.space_id AND c.seq = x.closed_seq
                     WHERE x.space_id = ?1 AND x.opened_seq > ?2
                     ORDER BY x.opened_seq LIMIT {AT_ONCE}"
                ),
                values![space.as_str(), after],
                Placed::read,
            )
            .doing("read the execs")?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.opened;
        for row in rows {
            let id = row.exec_id;
            if row.opener.as_ref() != Some(&id) {
                walk.problem(
                    Some(row.opened.unsigned_abs()),
                    format!("exec `{id}` has a row, and no entry opened it"),
                );
            }
            if let Some(closed) = row.closed
                && row.closer.as_ref() != Some(&id)
            {
                walk.problem(
                    Some(closed.unsigned_abs()),
                    format!("exec `{id}` is closed, and no entry closed it"),
                );
            }
        }
    }
}

fn check_head(
    session: &Session,
    space: &SpaceId,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let stored = StoredHead::read(session, space.as_str()).doing("read the ledger's head")?;
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
    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self {
            seq: row.get(0)?,
            hash: row.get(1)?,
            signature: row.get(2)?,
            entry_hash: row.get(3)?,
        })
    }
}

fn check_checkpoints(
    session: &Session,
    space: &SpaceId,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let checkpoints = session
        .rows(
            "SELECT c.seq, c.hash, c.signature, e.hash FROM ledger_checkpoints c
             LEFT JOIN ledger_entries e ON e.space_id = c.space_id AND e.seq = c.seq
             WHERE c.space_id = ?1 ORDER BY c.seq",
            values![space.as_str()],
            StoredCheckpoint::read,
        )
        .doing("read the ledger's checkpoints")?;
    let mut due = CHECKPOINT_EVERY;
    for checkpoint in checkpoints {
        let StoredCheckpoint {
            seq,
            hash,
            signature,
            entry_hash,
        } = checkpoint;
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
