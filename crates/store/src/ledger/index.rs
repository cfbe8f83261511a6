//! The index of the ledger: one row for everything that an entry can be found by. It is written for
//! many entries at once, since for each alone it would cost more than the entry itself; the few
//! that are not in it yet are looked at one by one by whoever searches.

use std::fmt::Write;

use super::chain::{ENTRY_COLUMNS, read_entry};
use super::entry::StoredEntry;
use crate::sql::{Session, SqlResult, Value, values};

/// The index reaches up to the last entry whose number is a multiple of this.
pub(crate) const INDEX_EVERY: i64 = 64;

/// Rows in one statement. Few on SQLite, where the statement is prepared once and kept; on a server
/// elsewhere each statement is a journey.
const ROWS_HERE: usize = 16;
const ROWS_THERE: usize = 512;

/// Entries up to this number are found by the index alone.
pub(crate) fn reaches(last_seq: i64) -> i64 {
    last_seq - last_seq.rem_euclid(INDEX_EVERY)
}

/// The same, of a ledger as it is now.
pub(crate) fn reach(session: &Session, space: &str) -> SqlResult<i64> {
    let last: Option<i64> = session.row(
        "SELECT seq FROM ledger_entries WHERE space_id = ?1 ORDER BY seq DESC LIMIT 1",
        values![space],
        |row| row.get(0),
    )?;
    Ok(reaches(last.unwrap_or(0)))
}

/// The entries after this number, oldest first; fewer than [`INDEX_EVERY`] when it is the reach.
pub(crate) fn after(session: &Session, space: &str, seq: i64) -> SqlResult<Vec<StoredEntry>> {
    session.rows(
        &format!(
            "SELECT {ENTRY_COLUMNS} FROM ledger_entries e
             WHERE e.space_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT {INDEX_EVERY}"
        ),
        values![space, seq],
        read_entry,
    )
}

/// Takes up the entries that end with this number, a multiple of [`INDEX_EVERY`]. Whatever somebody
/// wrote there before is left for verification to find.
pub(crate) fn extend(session: &Session, space: &str, to: i64) -> SqlResult<()> {
    let entries = after(session, space, to - INDEX_EVERY)?;
    let mut rows: Vec<(String, i64, i64)> = entries
        .iter()
        .flat_map(|entry| {
            // One that cannot be read any more is not ours; verification says so.
            let terms = entry.terms().unwrap_or_default();
            terms.into_iter().map(|term| (term, entry.at_us, entry.seq))
        })
        .collect();
    // In the order of the index, so that each page of it is touched once.
    rows.sort_unstable();
    let most = match session.is_shared() {
        true => ROWS_THERE,
        false => ROWS_HERE,
    };
    for some in rows.chunks(most) {
        insert(session, space, some)?;
    }
    Ok(())
}

fn insert(session: &Session, space: &str, rows: &[(String, i64, i64)]) -> SqlResult<()> {
    let mut sql = "INSERT INTO ledger_terms (space_id, term, at, seq) VALUES ".to_owned();
    let mut values: Vec<Value<'_>> = Vec::with_capacity(1 + 3 * rows.len());
    values.push(space.into());
    for (term, at, seq) in rows {
        let (comma, next) = (if values.len() > 1 { ", " } else { "" }, values.len());
        values.extend_from_slice(values![session.indexed(term), *at, *seq]);
        // Writing to a string cannot fail.
        let _ = write!(
            sql,
            "{comma}(?1, ?{}, ?{}, ?{})",
            next + 1,
            next + 2,
            next + 3
        );
    }
    sql.push_str(" ON CONFLICT (space_id, term, at, seq) DO NOTHING");
    session.execute(&sql, &values)?;
    Ok(())
}
