//! The rows of `sandbox_execs`: what they hold and how they change, always inside a transaction
//! that writes the ledger too.

use glovebox_model::{Code, Error, Exec, ExecId, ReceiptRef, Result, SpaceId, Stage, Status};

use crate::columns;
use crate::failure::{Doing, internal, tampered};
use crate::hex;
use crate::ledger::chain::Link;
use crate::ledger::encoding::{Hash, sha256};
use crate::sql::{Row, Session, SqlResult, Value, values};

/// Without what is not kept: the receipt is known from the row, the place in a queue to a server, and
/// whether its process is gone to who looks.
pub(crate) fn bare(mut record: Exec) -> Exec {
    record.receipt = None;
    record.queue_position = None;
    record.abandoned = false;
    record
}

/// A record as it is kept: without its receipt, which is known only when the entry is.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    pub(crate) text: String,
    pub(crate) digest: Hash,
}

impl StoredRecord {
    pub(crate) fn new(record: &Exec) -> Result<Self> {
        debug_assert!(record.receipt.is_none() && record.queue_position.is_none());
        debug_assert!(!record.abandoned);
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
    closed: Option<(i64, Vec<u8>)>,
}

pub(crate) fn read_row(row: &Row<'_>) -> SqlResult<ExecRow> {
    let closed_seq: Option<i64> = row.get(2)?;
    let closed_hash: Option<Vec<u8>> = row.get(3)?;
    Ok(ExecRow {
        exec_id: row.get(0)?,
        record: row.get(1)?,
        closed: closed_seq.zip(closed_hash),
    })
}

impl ExecRow {
    pub(crate) fn into_exec(self) -> Result<Exec> {
        // From bytes, as clients of the API read it: the binary then has this code once.
        let mut exec: Exec = serde_json::from_slice(self.record.as_bytes()).map_err(|error| {
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
pub(crate) fn open_of(session: &Session, owner: &str) -> Result<Vec<Exec>> {
    let rows = session
        .rows(
            &format!(
                "SELECT {COLUMNS}, space_id FROM sandbox_execs
                 WHERE owner_id = ?1 AND closed_seq IS NULL ORDER BY space_id, opened_seq"
            ),
            values![owner],
            |row| Ok((read_row(row)?, row.get(4)?)),
        )
        .doing("look for open execs")?;
    let exec = |(row, space): (ExecRow, String)| {
        let (space, id) = parse_ids(vec![(space, row.exec_id.clone())])?.remove(0);
        let mut exec = row.into_exec()?;
        // Whatever the record says: it is this row that is changed.
        (exec.ids.space_id, exec.exec_id) = (space, id);
        Ok(exec)
    };
    rows.into_iter().map(exec).collect()
}

/// The ids of the same rows, without reading what they hold.
pub(crate) fn open_ids(session: &Session, owner: &str) -> Result<Vec<(SpaceId, ExecId)>> {
    let rows: Vec<(String, String)> = session
        .rows(
            "SELECT space_id, exec_id FROM sandbox_execs
             WHERE owner_id = ?1 AND closed_seq IS NULL",
            values![owner],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .doing("look for open execs")?;
    parse_ids(rows)
}

/// Ids as they were read.
pub(crate) fn parse_ids(rows: Vec<(String, String)>) -> Result<Vec<(SpaceId, ExecId)>> {
    let parse = |(space, id): (String, String)| {
        let parsed = space.parse().ok().zip(id.parse().ok());
        parsed.ok_or_else(|| tampered("a row names no valid exec"))
    };
    rows.into_iter().map(parse).collect()
}

/// Refuses an exec id that the space has already, or a client id that its agent has.
pub(crate) fn ensure_new(session: &Session, record: &Exec) -> Result<()> {
    let space = record.ids.space_id.as_str();
    let client = record.client_id.as_ref().map(|id| id.as_str());
    let agent = session.indexed(record.ids.agent_id.as_deref().unwrap_or_default());
    let taken: Option<String> = session
        .row(
            "SELECT exec_id FROM sandbox_execs WHERE space_id = ?1 AND exec_id = ?2
             UNION ALL
             SELECT exec_id FROM sandbox_execs WHERE space_id = ?1 AND client_id = ?3
                 AND coalesce(agent_id, '') = ?4",
            values![space, record.exec_id.as_str(), client, agent.as_ref()],
            |row| row.get(0),
        )
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
    session: &Session,
    id: &(SpaceId, ExecId),
    owner: &str,
    stored: &StoredRecord,
    link: Link,
    arrival: Arrival,
) -> Result<()> {
    let closed = (arrival == Arrival::Final).then_some(link);
    let mut columns = vec![
        ("space_id", Value::from(id.0.as_str())),
        ("exec_id", Value::from(id.1.as_str())),
        ("owner_id", Value::from(owner)),
        ("opened_seq", Value::from(link.seq)),
        ("closed_seq", Value::from(closed.map(|link| link.seq))),
        (
            "closed_hash",
            Value::from(closed.as_ref().map(|link| &link.hash)),
        ),
        ("record", Value::from(&stored.text)),
    ];
    columns.extend(columns::beside(session, &stored.text)?);
    let (names, values): (Vec<&str>, Vec<Value<'_>>) = columns.into_iter().unzip();
    let places: Vec<String> = (1..=values.len())
        .map(|place| format!("?{place}"))
        .collect();
    let sql = format!(
        "INSERT INTO sandbox_execs ({}) VALUES ({})",
        names.join(", "),
        places.join(", ")
    );
    session.change_one(&sql, &values).doing("write the exec")
}

fn update<'v>(
    session: &Session,
    id: &'v (SpaceId, ExecId),
    columns: Vec<(&str, Value<'v>)>,
) -> Result<()> {
    let mut values = vec![Value::from(id.0.as_str()), Value::from(id.1.as_str())];
    let mut assignments = Vec::with_capacity(columns.len());
    for (name, value) in columns {
        values.push(value);
        assignments.push(format!("{name} = ?{}", values.len()));
    }
    let sql = format!(
        "UPDATE sandbox_execs SET {} WHERE space_id = ?1 AND exec_id = ?2",
        assignments.join(", ")
    );
    session.change_one(&sql, &values).doing("write the exec")
}

/// An open row, as far as it matters for what may be done with it.
pub(crate) struct OpenRow {
    pub(crate) owner: String,
    pub(crate) status: Option<Status>,
}

/// The row if it may still be changed.
pub(crate) fn ensure_open(session: &Session, space: &SpaceId, id: &ExecId) -> Result<OpenRow> {
    let found: Option<(bool, String, String)> = session
        .row(
            "SELECT closed_seq IS NULL, status, owner_id FROM sandbox_execs
             WHERE space_id = ?1 AND exec_id = ?2",
            values![space.as_str(), id.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .doing("read the exec")?;
    match found {
        Some((true, status, owner)) => Ok(OpenRow {
            owner,
            status: Status::parse(&status),
        }),
        Some((false, status, _)) => Err(Error::new(
            Code::Conflict,
            Stage::Close,
            format!("exec `{id}` has ended already as `{status}`"),
        )
        .of_exec(id.clone())),
        None => Err(tampered(format!("the row of exec `{id}` is gone")).of_exec(id.clone())),
    }
}

/// An exec that another server took over, after this one was taken for dead.
pub(crate) fn ensure_owned(row: &OpenRow, owner: &str, id: &ExecId) -> Result<()> {
    if row.owner == owner {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Open,
        format!("exec `{id}` belongs to another server now"),
    )
    .hint("it was taken over after this server was taken for dead")
    .of_exec(id.clone()))
}

/// Replaces the record of a row that stays open.
pub(crate) fn rewrite(
    session: &Session,
    id: &(SpaceId, ExecId),
    stored: &StoredRecord,
) -> Result<()> {
    let mut columns = vec![("record", Value::from(&stored.text))];
    columns.extend(columns::beside(session, &stored.text)?);
    update(session, id, columns)
}

pub(crate) fn set_owner<'v>(
    session: &Session,
    id: &'v (SpaceId, ExecId),
    owner: &'v str,
) -> Result<()> {
    update(session, id, vec![("owner_id", Value::from(owner))])
}

pub(crate) fn close(
    session: &Session,
    id: &(SpaceId, ExecId),
    stored: &StoredRecord,
    link: Link,
) -> Result<()> {
    let mut columns = vec![
        ("record", Value::from(&stored.text)),
        ("closed_seq", Value::from(link.seq)),
        ("closed_hash", Value::from(&link.hash)),
    ];
    columns.extend(columns::beside(session, &stored.text)?);
    update(session, id, columns)?;
    forget_call(session, id)?;
    session
        .execute(
            "DELETE FROM cancel_asks WHERE space_id = ?1 AND exec_id = ?2",
            values![id.0.as_str(), id.1.as_str()],
        )
        .doing("write the exec")?;
    Ok(())
}

pub(crate) fn keep_call(session: &Session, id: &(SpaceId, ExecId), call: &[u8]) -> Result<()> {
    session
        .execute(
            "INSERT INTO sealed_calls (space_id, exec_id, call) VALUES (?1, ?2, ?3)",
            values![id.0.as_str(), id.1.as_str(), call],
        )
        .doing("keep the call")?;
    Ok(())
}

/// When there is another one.
pub(crate) fn replace_call(
    session: &Session,
    id: &(SpaceId, ExecId),
    call: Option<&[u8]>,
) -> Result<()> {
    let Some(call) = call else { return Ok(()) };
    forget_call(session, id)?;
    keep_call(session, id, call)
}

pub(crate) fn kept_call(session: &Session, id: &(SpaceId, ExecId)) -> Result<Option<Vec<u8>>> {
    session
        .row(
            "SELECT call FROM sealed_calls WHERE space_id = ?1 AND exec_id = ?2",
            values![id.0.as_str(), id.1.as_str()],
            |row| row.get(0),
        )
        .doing("read the call")
}

pub(crate) fn forget_call(session: &Session, id: &(SpaceId, ExecId)) -> Result<()> {
    session
        .execute(
            "DELETE FROM sealed_calls WHERE space_id = ?1 AND exec_id = ?2",
            values![id.0.as_str(), id.1.as_str()],
        )
        .doing("forget the call")?;
    Ok(())
}
