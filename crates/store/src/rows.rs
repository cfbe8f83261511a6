//! The rows of `sandbox_execs`: what they hold and how they change, always inside a transaction
//! that writes the ledger too.

use glovebox_model::{Code, Error, Exec, ExecId, ReceiptRef, Result, SpaceId, Stage};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::{Doing, internal, tampered};
use crate::hex;
use crate::ledger::chain::Link;
use crate::ledger::encoding::{Hash, sha256};

/// A record as it is kept: without its receipt, which is known only when the entry is.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    pub(crate) text: String,
    pub(crate) digest: Hash,
}

impl StoredRecord {
    pub(crate) fn new(record: &Exec) -> Result<Self> {
        debug_assert!(record.receipt.is_none());
        let text = serde_json::to_string(record)
            .map_err(|error| internal("the record cannot be written").caused_by(error))?;
        let digest = sha256(text.as_bytes());
        Ok(Self { text, digest })
    }
}

pub(crate) const COLUMNS: &str = "exec_id, record, closed_seq, closed_hash";

pub(crate) struct ExecRow {
    exec_id: String,
    record: String,
    closed: Option<(i64, Hash)>,
}

pub(crate) fn read_row(row: &Row<'_>) -> rusqlite::Result<ExecRow> {
    let closed_seq: Option<i64> = row.get(2)?;
    let closed_hash: Option<Hash> = row.get(3)?;
    Ok(ExecRow {
        exec_id: row.get(0)?,
        record: row.get(1)?,
        closed: closed_seq.zip(closed_hash),
    })
}

impl ExecRow {
    pub(crate) fn into_exec(self) -> Result<Exec> {
        let mut exec: Exec = serde_json::from_str(&self.record).map_err(|error| {
            tampered(format!(
                "the record of exec `{}` cannot be read",
                self.exec_id
            ))
            .caused_by(error)
        })?;
        exec.receipt = self.closed.map(|(seq, hash)| ReceiptRef {
            seq: seq.unsigned_abs(),
            hash: hex::encode(&hash),
        });
        Ok(exec)
    }
}

/// The rows that an owner left open, in every space, oldest first.
pub(crate) fn open_of(connection: &Connection, owner: &str) -> Result<Vec<Exec>> {
    let rows = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sandbox_execs WHERE owner_id = ?1 AND closed_seq IS NULL
             ORDER BY space_id, opened_seq"
        ))
        .and_then(|mut open| {
            open.query_map([owner], read_row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        })
        .doing("look for open execs")?;
    rows.into_iter().map(ExecRow::into_exec).collect()
}

/// Refuses an exec id or client id that the space has already.
pub(crate) fn ensure_new(connection: &Connection, record: &Exec) -> Result<()> {
    let space = record.ids.space_id.as_str();
    let taken: Option<String> = connection
        .prepare_cached(
            "SELECT exec_id FROM sandbox_execs WHERE space_id = ?1 AND exec_id = ?2
             UNION ALL
             SELECT exec_id FROM sandbox_execs WHERE space_id = ?1 AND client_id = ?3",
        )
        .and_then(|mut find| {
            let client = record.client_id.as_ref().map(|id| id.as_str());
            find.query_row(params![space, record.exec_id.as_str(), client], |row| {
                row.get(0)
            })
            .optional()
        })
        .doing("look for the exec")?;
    let Some(taken) = taken else { return Ok(()) };
    let message = match &record.client_id {
        Some(client) if taken != record.exec_id.as_str() => {
            format!("the client id `{client}` belongs to exec `{taken}`")
        }
        _ => format!("there is an exec `{taken}` already"),
    };
    let error = Error::new(Code::Conflict, Stage::Open, message)
        .hint(format!("see it: `glovebox show {taken}`"));
    Err(match taken.parse() {
        Ok(id) => error.of_exec(id),
        Err(_) => error,
    })
}

/// Whether a new row is still open, or came to its end with the entry that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    Open,
    Final,
}

pub(crate) fn insert(
    connection: &Connection,
    id: &(SpaceId, ExecId),
    owner: &str,
    stored: &StoredRecord,
    link: Link,
    arrival: Arrival,
) -> Result<()> {
    let closed = (arrival == Arrival::Final).then_some(link);
    connection
        .prepare_cached(
            "INSERT INTO sandbox_execs
                 (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                id.0.as_str(),
                id.1.as_str(),
                owner,
                link.seq,
                closed.map(|link| link.seq),
                closed.map(|link| link.hash),
                stored.text
            ])
        })
        .doing("write the exec")?;
    Ok(())
}

/// Whether a row may still be closed.
pub(crate) fn ensure_open(connection: &Connection, space: &SpaceId, id: &ExecId) -> Result<()> {
    let found: Option<(bool, String)> = connection
        .prepare_cached(
            "SELECT closed_seq IS NULL, status FROM sandbox_execs
             WHERE space_id = ?1 AND exec_id = ?2",
        )
        .and_then(|mut find| {
            find.query_row(params![space.as_str(), id.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
        })
        .doing("read the exec")?;
    match found {
        Some((true, _)) => Ok(()),
        Some((false, status)) => Err(Error::new(
            Code::Conflict,
            Stage::Close,
            format!("exec `{id}` has ended already as `{status}`"),
        )
        .of_exec(id.clone())),
        None => Err(tampered(format!("the row of exec `{id}` is gone")).of_exec(id.clone())),
    }
}

pub(crate) fn close(
    connection: &Connection,
    id: &(SpaceId, ExecId),
    stored: &StoredRecord,
    link: Link,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE sandbox_execs SET record = ?3, closed_seq = ?4, closed_hash = ?5
             WHERE space_id = ?1 AND exec_id = ?2",
        )
        .and_then(|mut update| {
            update.execute(params![
                id.0.as_str(),
                id.1.as_str(),
                stored.text,
                link.seq,
                link.hash
            ])
        })
        .doing("write the exec")?;
    Ok(())
}
