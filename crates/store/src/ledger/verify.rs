//! Verifying the ledger of one space where it is kept: the chain, its signatures, the rows that it
//! vouches for, and the index that queries rely on.

use std::collections::BTreeSet;

use glovebox_model::{Code, Result, SpaceId, Stage};

use super::chain::{CHECKPOINT_EVERY, ENTRY_COLUMNS, StoredHead, read_entry};
use super::entry::StoredEntry;
use super::index;
use super::kept_head::KeptHead;
use super::key::{Claim, PublicKey};
use super::operator::{Notes, is_operator};
use super::row_check;
use super::row_proof::{Guarded, Threads, named};
use super::vouch::{VouchedRow, Vouching};
use super::walk::{Expectations, Verification, Walk};
use crate::failure::{Doing, at};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// Rows that are in memory at the same time.
const AT_ONCE: usize = 500;
/// Terms that are looked for in one statement.
const TERMS_AT_ONCE: usize = 250;
/// So many at most: more say nothing new.
const DAMAGES_MOST: usize = 100;
/// Who remembers where the operator's chain was.
const KEPT: &str = "`ledger.head` beside the key";
/// Checkpoints that are named where some are missing.
const MISSED_MOST: u64 = 100;

impl Store {
    /// Looks at every entry of a space, and at the rows that they vouch for. An error means that it
    /// could not be looked at; what is wrong is in the result.
    pub fn verify(&self, space: &SpaceId, expectations: &Expectations) -> Result<Verification> {
        let verify = || {
            let key = self.existing_key()?.map(|key| key.public());
            self.read_with_kept_head(|session, kept| {
                let (space, key) = (space.as_str(), key.as_ref());
                let mut notes = Notes::default();
                let kept = kept.filter(|_| is_operator(space));
                let mut walk = Walk::new(space, expectations);
                if let Some(kept) = kept {
                    walk.await_entry(kept.seq, &kept.hash, KEPT);
                }
                for damage in damages(session)? {
                    walk.problem(None, damage);
                }
                // Its last head that the operator's chain has; whether that chain is whole is seen
                // when all are verified.
                notes.read_last(session, space, key, &mut walk)?;
                notes.expect(space, &mut walk);
                check_space(session, space, key, &mut walk, |_, _| {})?;
                if !is_operator(space) {
                    notes.check(space, &mut walk);
                }
                Ok(walk.finish())
            })
        };
        or_tampered(verify())
    }

    /// The same for all spaces, each compared with what the operator's chain says of it. It goes
    /// from page to page: what it holds in memory does not grow with the entries.
    pub fn verify_all(&self, expectations: &Expectations) -> Result<Verification> {
        let verify = || {
            let key = self.existing_key()?.map(|key| key.public());
            self.read_with_kept_head(|session, kept| {
                check_all(session, key.as_ref(), kept, expectations)
            })
        };
        or_tampered(verify())
    }
}

/// A ledger of which nothing can be believed is a finding, too.
fn or_tampered(verified: Result<Verification>) -> Result<Verification> {
    match verified {
        Err(error) if error.code == Code::LedgerTampered => {
            Ok(Verification::of_nothing(error.message))
        }
        other => other.map_err(at(Stage::Close)),
    }
}

/// What SQLite finds wrong with its own file, such as rows that an index does not have: a search
/// along that index would not find them.
fn damages(session: &Session) -> Result<Vec<String>> {
    if session.is_shared() {
        return Ok(Vec::new());
    }
    let sql = format!("PRAGMA integrity_check({DAMAGES_MOST})");
    let lines: Vec<String> = session
        .rows(&sql, &[], |row| row.text(0))
        .doing("check the database")?;
    let damages = lines.into_iter().filter(|line| line != "ok");
    Ok(damages
        .map(|line| format!("`glovebox.db` is damaged: {line}"))
        .collect())
}

fn check_all(
    session: &Session,
    key: Option<&PublicKey>,
    kept: Option<&KeptHead>,
    expectations: &Expectations,
) -> Result<Verification> {
    let operator = SpaceId::local();
    let operator = operator.as_str();
    let mut notes = Notes::default();
    let known = expectations.narrowed(operator);
    let mut walk = Walk::new(operator, &known);
    if let Some(kept) = kept {
        walk.await_entry(kept.seq, &kept.hash, KEPT);
    }
    for damage in damages(session)? {
        walk.problem(None, damage);
    }
    check_space(session, operator, key, &mut walk, |entry, walk| {
        notes.entry(entry, key, walk);
    })?;
    notes.check_places(session, &mut walk)?;
    let mut all = walk.finish();
    all.all_spaces = true;
    let mut spaces = spaces(session)?;
    spaces.extend(notes.spaces().cloned());
    spaces.extend(expectations.spaces().map(str::to_owned));
    spaces.remove(operator);
    for space in spaces {
        let known = expectations.narrowed(&space);
        let mut walk = Walk::new(&space, &known);
        notes.expect(&space, &mut walk);
        check_space(session, &space, key, &mut walk, |_, _| {})?;
        notes.check(&space, &mut walk);
        all.add(walk.finish());
    }
    Ok(all)
}

/// Every space that any row belongs to, whatever the operator's chain knows.
pub(super) fn spaces(session: &Session) -> Result<BTreeSet<String>> {
    let ledger = [
        "ledger_entries",
        "ledger_heads",
        "ledger_checkpoints",
        "ledger_terms",
        "ledger_rows",
        "sandbox_execs",
        "secret_values",
    ];
    let guarded = Guarded::ALL.into_iter();
    let guarded = guarded.filter(|table| table.space() == "t.space_id");
    let tables = ledger.into_iter().chain(guarded.map(Guarded::table));
    let each: Vec<String> = tables
        .map(|table| format!("SELECT DISTINCT space_id FROM {table}"))
        .collect();
    let spaces: Vec<String> = session
        .rows(&each.join(" UNION "), &[], |row| row.text(0))
        .doing("look for spaces")?;
    Ok(spaces.into_iter().collect())
}

/// One space. `and` is shown each entry, after the walk has passed it.
fn check_space<'e>(
    session: &Session,
    space: &str,
    key: Option<&PublicKey>,
    walk: &mut Walk<'e>,
    and: impl FnMut(&StoredEntry, &mut Walk<'e>),
) -> Result<()> {
    let terms = walk_entries(session, space, walk, and)?;
    check_terms(session, space, terms, walk)?;
    for stranger in strangers(session, space)? {
        let what = stranger.what();
        walk.problem(Some(stranger.place.unsigned_abs()), what);
    }
    row_check::check_rows(session, space, walk)?;
    check_head(session, space, key, walk)?;
    check_checkpoints(session, space, key, walk)
}

/// Returns how many terms the index has to have.
fn walk_entries<'e>(
    session: &Session,
    space: &str,
    walk: &mut Walk<'e>,
    mut and: impl FnMut(&StoredEntry, &mut Walk<'e>),
) -> Result<u64> {
    let sql = format!(
        "SELECT {ENTRY_COLUMNS}, {}
         FROM ledger_entries e
         LEFT JOIN sandbox_execs x ON x.space_id = e.space_id AND x.exec_id = e.exec_id AND {}
         WHERE e.space_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT {AT_ONCE}",
        VouchedRow::columns(session),
        VouchedRow::CLOSES
    );
    let reach = index::reach(session, space).doing("read the ledger")?;
    let (mut vouching, mut threads) = (Vouching::default(), Threads::default());
    let (mut after, mut terms) = (i64::MIN, 0);
    loop {
        let rows = session
            .rows(&sql, values![space, after], |row| {
                Ok((read_entry(row)?, VouchedRow::read(session, row, 10)?))
            })
            .doing("read the ledger")?;
        walk.ensure_awaited()?;
        let Some((last, _)) = rows.last() else { break };
        after = last.seq;
        let mut entries = Vec::with_capacity(rows.len());
        let mut places = Vec::new();
        for (entry, row) in rows {
            walk.entry(&entry);
            vouching.entry(&entry, row, walk);
            let said = named(&entry.body);
            threads.entry(&entry, &said, walk);
            places.extend(said.into_keys().map(|(table, key)| (table, key, entry.seq)));
            and(&entry, walk);
            entries.push(entry);
        }
        terms += check_indexed(session, &entries, reach, walk)?;
        row_check::check_places(session, space, &places, walk)?;
    }
    vouching.finish(walk, |id| VouchedRow::of(session, space, id))?;
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

fn check_terms(session: &Session, space: &str, expected: u64, walk: &mut Walk<'_>) -> Result<()> {
    let count: Option<i64> = session
        .row(
            "SELECT count(*) FROM ledger_terms WHERE space_id = ?1",
            values![space],
            |row| row.get(0),
        )
        .doing("read the ledger's index")?;
    if count.unwrap_or_default().unsigned_abs() > expected {
        walk.problem(None, "the index names properties that no entry has");
    }
    Ok(())
}

/// A row that no entry opened, or that claims an end which no entry is.
pub(super) struct Stranger {
    pub(super) exec_id: String,
    /// Where it says that it was opened or closed.
    place: i64,
    opened: bool,
}

impl Stranger {
    fn what(&self) -> String {
        let id = &self.exec_id;
        match self.opened {
            false => format!("exec `{id}` has a row, and no entry opened it"),
            true => format!("exec `{id}` is closed, and no entry closed it"),
        }
    }
}

/// So many at most: more say nothing new.
const STRANGERS_MOST: usize = 1000;

pub(super) fn strangers(session: &Session, space: &str) -> Result<Vec<Stranger>> {
    let of = |end: &str| {
        format!(
            "SELECT x.exec_id, x.{end} FROM sandbox_execs x WHERE x.space_id = ?1
             AND x.{end} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_entries e
                 WHERE e.space_id = x.space_id AND e.seq = x.{end} AND e.exec_id = x.exec_id)
             LIMIT {STRANGERS_MOST}"
        )
    };
    let mut found = Vec::new();
    for (end, opened) in [("opened_seq", false), ("closed_seq", true)] {
        let read = |row: &Row<'_>| {
            Ok(Stranger {
                exec_id: row.text(0)?,
                place: row.get(1)?,
                opened,
            })
        };
        let rows = session.rows(&of(end), values![space], read);
        found.extend(rows.doing("read the execs")?);
    }
    Ok(found)
}

fn check_head(
    session: &Session,
    space: &str,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let stored = StoredHead::read(session, space).doing("read the ledger's head")?;
    let (last_seq, last_hash) = walk.last();
    let Some(stored) = stored else {
        if last_seq != 0 {
            walk.problem_here("the ledger has entries and no signed head");
        } else if is_operator(space) {
            walk.problem(None, "the operator's ledger is gone: it has no signed head");
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
    if stored.signed_by(key, space).is_none() {
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
    space: &str,
    key: Option<&PublicKey>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let checkpoints = session
        .rows(
            "SELECT c.seq, c.hash, c.signature, e.hash FROM ledger_checkpoints c
             LEFT JOIN ledger_entries e ON e.space_id = c.space_id AND e.seq = c.seq
             WHERE c.space_id = ?1 ORDER BY c.seq",
            values![space],
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
        due = miss_checkpoints(walk, due, seq);
        if due == seq {
            due = due.saturating_add(CHECKPOINT_EVERY);
        } else {
            walk.problem(Some(seq), "a checkpoint stands where none is made");
        }
        if entry_hash.as_ref() != Some(&hash) {
            walk.problem(Some(seq), "the checkpoint is of another entry");
        }
        let parts = (hash.as_slice().try_into(), signature.as_slice().try_into());
        let signed = match (key, parts) {
            (Some(key), (Ok(hash), Ok(signature))) => {
                Claim::Checkpoint.holds(space, seq, &hash, key, &signature)
            }
            _ => false,
        };
        if !signed {
            walk.problem(Some(seq), "the checkpoint is not signed by `ledger.key`");
        }
    }
    let end = walk.last().0.unsigned_abs().saturating_add(1);
    miss_checkpoints(walk, due, end);
    Ok(())
}

/// Those that are due before a place: the first few by name, since an entry can claim any place.
/// Returns where the next one is due.
fn miss_checkpoints(walk: &mut Walk<'_>, due: u64, before: u64) -> u64 {
    let missing = before.saturating_sub(due).div_ceil(CHECKPOINT_EVERY);
    for number in 0..missing.min(MISSED_MOST) {
        let seq = due + number * CHECKPOINT_EVERY;
        walk.problem(Some(seq), "the checkpoint is missing");
    }
    if missing > MISSED_MOST {
        let more = missing - MISSED_MOST;
        walk.problem(None, format!("and {more} more checkpoints are missing"));
    }
    due.saturating_add(missing.saturating_mul(CHECKPOINT_EVERY))
}
