//! The rows that authorise something, compared with what the entries say of them. The last entry
//! about a row stands where `ledger_rows` says: no later one names the row, and that one has the
//! digest of what is there now.

use glovebox_model::Result;

use super::operator::is_operator;
use super::row_proof::{Cells, Form, Guarded, Said, exported, name, named};
use super::walk::Walk;
use crate::failure::Doing;
use crate::sql::{Row, Session, SqlResult, Value, values};

/// Rows that are in memory at the same time.
const AT_ONCE: usize = 100;
/// So many at most: more say nothing new.
const STRANGERS_MOST: usize = 1000;

/// No entry comes after the one that is said to be the last about a row. `rows`: table, key, and
/// where an entry about it stands.
pub(super) fn check_places(
    session: &Session,
    space: &str,
    rows: &[(String, String, i64)],
    walk: &mut Walk<'_>,
) -> Result<()> {
    for some in rows.chunks(AT_ONCE) {
        let mut places = Vec::with_capacity(some.len());
        let mut values = vec![Value::from(space)];
        for (table, key, seq) in some {
            let next = values.len();
            values.extend_from_slice(values![table, key, *seq]);
            places.push(format!(
                "(CAST(?{} AS TEXT), CAST(?{} AS TEXT), CAST(?{} AS BIGINT))",
                next + 1,
                next + 2,
                next + 3
            ));
        }
        // Both databases call the columns of a list of values so.
        let sql = format!(
            "SELECT v.column1, v.column2, v.column3 FROM (VALUES {}) v WHERE NOT EXISTS (
                 SELECT 1 FROM ledger_rows r WHERE r.space_id = ?1 AND r.kind = v.column1
                 AND r.key = v.column2 AND r.seq >= v.column3)",
            places.join(", ")
        );
        let lost: Vec<(String, String, i64)> = session
            .rows(&sql, &values, |row| {
                Ok((row.text(0)?, row.text(1)?, row.get(2)?))
            })
            .doing("read where the last entries stand")?;
        for (table, key, seq) in lost {
            walk.problem(
                Some(seq.unsigned_abs()),
                format!("`{table}/{key}` is compared with no entry, or with an older one"),
            );
        }
    }
    Ok(())
}

pub(super) fn check_rows(session: &Session, space: &str, walk: &mut Walk<'_>) -> Result<()> {
    for table in Guarded::ALL {
        check_vouched(session, space, table, walk)?;
        check_strangers(session, space, table, walk)?;
    }
    check_unknown(session, space, walk)?;
    for (_, secret) in stray_values(session, Some(space))? {
        walk.problem(None, format!("a value of `secrets/{secret}` was invented"));
    }
    Ok(())
}

/// A row, and the entry that stands where the last about it should.
struct Vouched {
    key: String,
    seq: i64,
    body: Option<String>,
    cells: Option<Cells>,
}

/// The rows that entries speak of.
fn check_vouched(
    session: &Session,
    space: &str,
    table: Guarded,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let sql = format!(
        "SELECT v.key, v.seq, e.body, {}
         FROM ledger_rows v
         LEFT JOIN ledger_entries e ON e.space_id = v.space_id AND e.seq = v.seq
         LEFT JOIN {} t ON {} = v.space_id AND {} = v.key
         WHERE v.space_id = ?1 AND v.kind = ?2 AND v.key > ?3 ORDER BY v.key LIMIT {AT_ONCE}",
        table.selected(session),
        table.table(),
        table.space(),
        table.key()
    );
    let mut after = String::new();
    loop {
        let rows = session
            .rows(&sql, values![space, table.table(), &after], |row| {
                Ok(Vouched {
                    key: row.text(0)?,
                    seq: row.get(1)?,
                    body: row
                        .cell(2)?
                        .map(|body| String::from_utf8_lossy(&body).into_owned()),
                    cells: Cells::read(table, row, 3)?,
                })
            })
            .doing("read what entries are about")?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after.clone_from(&last.key);
        for row in rows {
            let said = named(&row.body.unwrap_or_default());
            let said = said.get(&(table.table().to_owned(), row.key.clone()));
            let form = Form::said(said, table);
            let digest = match row.cells {
                Some(cells) => Some(cells.digest(session, table, space, &row.key, form)?),
                None => None,
            };
            if let Some(wrong) = difference(said, digest.as_deref()) {
                let what = format!("`{}` {wrong}", name(table, &row.key));
                walk.problem(Some(row.seq.unsigned_abs()), what);
            }
        }
    }
}

/// What is wrong with a row, given what the last entry about it says and what is there.
pub(super) fn difference(said: Option<&Said>, there: Option<&str>) -> Option<&'static str> {
    match (said.map(|said| &said.digest), there) {
        (None, _) => Some("is compared with an entry that is not about it"),
        (Some(None), None) => None,
        (Some(None), Some(_)) => Some("was removed, and is there again"),
        (Some(Some(_)), None) => Some("is missing"),
        (Some(Some(said)), Some(there)) if said == there => None,
        (Some(Some(_)), Some(_)) => Some("was edited"),
    }
}

/// Rows that no entry made.
fn check_strangers(
    session: &Session,
    space: &str,
    table: Guarded,
    walk: &mut Walk<'_>,
) -> Result<()> {
    // No key is empty, so none is looked for behind one.
    let sql = format!(
        "SELECT {key} FROM {} t WHERE {of} = CAST(?1 AS TEXT) AND ({key} = '' OR NOT EXISTS (
             SELECT 1 FROM ledger_rows v WHERE v.space_id = ?1 AND v.kind = ?2 AND v.key = {key}))
         LIMIT {STRANGERS_MOST}",
        table.table(),
        key = table.key(),
        of = table.space(),
    );
    let keys = session.rows(&sql, values![space, table.table()], |row| row.text(0));
    for key in keys.doing("look for rows")? {
        let row = name(table, &key);
        walk.problem(None, format!("`{row}` is there, and no entry made it"));
    }
    Ok(())
}

/// Places of rows of no table.
fn check_unknown(session: &Session, space: &str, walk: &mut Walk<'_>) -> Result<()> {
    let mut known: Vec<String> = Guarded::ALL.map(|it| format!("'{}'", it.table())).into();
    if is_operator(space) {
        known.push("'spaces'".to_owned());
    }
    let sql = format!(
        "SELECT kind, key FROM ledger_rows WHERE space_id = ?1
         AND (kind NOT IN ({}) OR key = '') LIMIT {STRANGERS_MOST}",
        known.join(", ")
    );
    let read = |row: &Row<'_>| -> SqlResult<(String, String)> { Ok((row.text(0)?, row.text(1)?)) };
    let unknown = session.rows(&sql, values![space], read);
    for (kind, key) in unknown.doing("read where the last entries stand")? {
        walk.problem(None, format!("the place of `{kind}/{key}` was invented"));
    }
    Ok(())
}

/// Every row that is there, of all spaces or of one: its space, its name and its digest.
pub(super) fn all(session: &Session, space: Option<&str>) -> Result<Vec<(String, String, String)>> {
    let mut found = Vec::new();
    for table in Guarded::ALL {
        let mut last: Option<(String, String)> = None;
        while let Some(next) = page(session, table, space, last.as_ref(), &mut found)? {
            last = Some(next);
        }
    }
    // One without its secret is no part of any digest.
    for (of, name) in stray_values(session, space)? {
        found.push((of, format!("secret_values/{name}"), "0".repeat(64)));
    }
    Ok(found)
}

/// Returns the key and the space of the last row, as long as there are any.
fn page(
    session: &Session,
    table: Guarded,
    space: Option<&str>,
    last: Option<&(String, String)>,
    found: &mut Vec<(String, String, String)>,
) -> Result<Option<(String, String)>> {
    let (of, key) = (table.space(), table.key());
    let mut values: Vec<Value<'_>> = Vec::new();
    let mut conditions = vec!["1 = 1".to_owned()];
    if let Some((key_before, of_before)) = last {
        values.extend_from_slice(values![key_before, of_before]);
        conditions.push(format!(
            "({key}, {of}) > (CAST(?1 AS TEXT), CAST(?2 AS TEXT))"
        ));
    }
    if let Some(space) = space {
        values.push(space.into());
        conditions.push(format!("{of} = CAST(?{} AS TEXT)", values.len()));
    }
    let sql = format!(
        "SELECT {of}, {key}, {} FROM {} t WHERE {} ORDER BY {key}, {of} LIMIT {AT_ONCE}",
        table.selected(session),
        table.table(),
        conditions.join(" AND ")
    );
    let rows = session
        .rows(&sql, &values, |row| {
            Ok((row.text(0)?, row.text(1)?, Cells::read(table, row, 2)?))
        })
        .doing("read what entries are about")?;
    let last = rows.last().map(|(of, key, _)| (key.clone(), of.clone()));
    for (of, key, cells) in rows {
        let Some(cells) = cells else { continue };
        let digest = exported(session, table, cells, &of, &key)?;
        found.push((of, name(table, &key), digest));
    }
    Ok(last)
}

/// Values of secrets that are not there, by space and name.
fn stray_values(session: &Session, space: Option<&str>) -> Result<Vec<(String, String)>> {
    let (condition, values) = match space {
        Some(space) => ("x.space_id = ?1 AND", vec![Value::from(space)]),
        None => ("", Vec::new()),
    };
    let sql = format!(
        "SELECT DISTINCT x.space_id, x.name FROM secret_values x WHERE {condition}
         NOT EXISTS (SELECT 1 FROM secrets s WHERE s.space_id = x.space_id AND s.name = x.name)
         LIMIT {STRANGERS_MOST}"
    );
    session
        .rows(&sql, &values, |row| Ok((row.text(0)?, row.text(1)?)))
        .doing("read the secrets")
}
