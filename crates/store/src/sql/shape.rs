//! Whether the embedded database has our tables, indexes and triggers, and nothing else. Whoever can
//! write the file can put a view in a table's place, keep rows out of an index, or add a trigger that
//! drops what is written; and then no row that is read proves anything.

use std::cell::Cell;

use rusqlite::Connection;

use super::session::{SqlError, SqlResult};
use crate::hex;
use crate::ledger::encoding::{encode_bytes, sha256};

/// Of the latest version. The test of the steps says what it has to be when one was added.
pub(crate) const OURS: &str = "29ecf90febc14497c211c259d5d9aee7da883c6c3951e26b795df7317912c6fb";

/// The `schema_version` at which a connection found the shape to be ours. SQLite reads the shape
/// anew when that number is another one, and so do we. Each connection for itself: the number can be
/// put back, and then one that was open goes on with the shape that it has read before.
#[derive(Debug, Default)]
pub(crate) struct Shape(Cell<Option<i64>>);

impl Shape {
    /// To be called in each transaction, before anything is read in it.
    pub(crate) fn ensure_ours(&self, connection: &Connection) -> SqlResult<()> {
        let version: i64 = connection
            .prepare_cached("PRAGMA schema_version")?
            .query_row((), |row| row.get(0))?;
        if self.0.get() == Some(version) {
            return Ok(());
        }
        if digest(connection)? != OURS {
            return Err(SqlError::Tampered(
                "the tables, indexes or triggers of `glovebox.db` are not those of this version",
            ));
        }
        self.0.set(Some(version));
        Ok(())
    }
}

/// `sqlite_master`, since a table of the other name could be put in its place. What `ANALYZE` made is
/// left out: it says which index to walk, and no more.
pub(crate) fn digest(connection: &Connection) -> rusqlite::Result<String> {
    let mut select = connection.prepare(
        "SELECT type, name, tbl_name, sql FROM main.sqlite_master
         WHERE sql IS NULL OR sql NOT IN (
             'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
             'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)')
         ORDER BY type, name, rowid",
    )?;
    let mut rows = select.query(())?;
    let mut cells: Vec<Vec<u8>> = Vec::new();
    while let Some(row) = rows.next()? {
        for index in 0..4 {
            cells.push(match row.get_ref(index)? {
                rusqlite::types::ValueRef::Null => Vec::new(),
                rusqlite::types::ValueRef::Text(text) => [b"=", text].concat(),
                other => format!("{other:?}").into_bytes(),
            });
        }
    }
    let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
    Ok(hex::encode(&sha256(&encode_bytes(&cells))))
}
