//! The columns beside the record. SQLite generates them from it; PostgreSQL cannot, since its JSON
//! has no room for a NUL, so there they are filled from the record with every change of it, and
//! verification compares the two.

use glovebox_model::Result;
use serde_json::Value as Json;

use crate::failure::internal;
use crate::ledger::encoding::canonical;
use crate::sql::{Row, Session, SqlResult, Value};

/// Column and where it is in the record.
const COLUMNS: [(&str, &str); 23] = [
    ("client_id", "/client_id"),
    ("idempotency_key", "/client_id"),
    ("project_id", "/project_id"),
    ("task_id", "/ids/task_id"),
    ("conversation_id", "/ids/conversation_id"),
    ("agent_id", "/ids/agent_id"),
    ("skill_id", "/skill_id"),
    ("image", "/image"),
    ("cmd", "/cmd"),
    ("args", "/args"),
    ("cwd", "/cwd"),
    ("env_keys", "/env_keys"),
    ("policy_snapshot", "/policy_snapshot"),
    ("sandbox_id", "/sandbox_id"),
    ("status", "/status"),
    ("exit_code", "/exit_code"),
    ("error_reason", "/error"),
    ("started_at", "/started_at"),
    ("ended_at", "/ended_at"),
    ("duration_ms", "/duration_ms"),
    ("artifacts_path", "/artifacts_dir"),
    ("stdout_truncated", "/stdout_truncated"),
    ("stderr_truncated", "/stderr_truncated"),
];

/// Indexed, so long ones are kept as digests.
const INDEXED: [&str; 3] = ["task_id", "conversation_id", "agent_id"];

const NUMBERS: [&str; 4] = [
    "exit_code",
    "duration_ms",
    "stdout_truncated",
    "stderr_truncated",
];

/// What is to be written beside the record: nothing where the database generates it.
pub(crate) fn beside(
    session: &Session,
    record: &str,
) -> Result<Vec<(&'static str, Value<'static>)>> {
    if !session.is_shared() {
        return Ok(Vec::new());
    }
    let record: Json = serde_json::from_str(record)
        .map_err(|error| internal("the record is not JSON").caused_by(error))?;
    let columns = COLUMNS.iter();
    Ok(columns
        .map(|(name, pointer)| (*name, value(session, &record, name, pointer)))
        .collect())
}

/// As SQLite's `json_extract` has it.
fn value(session: &Session, record: &Json, name: &str, pointer: &str) -> Value<'static> {
    match record.pointer(pointer) {
        None | Some(Json::Null) => Value::Null,
        Some(Json::Bool(flag)) => Value::Int(i64::from(*flag)),
        Some(Json::Number(number)) => number.as_i64().into(),
        Some(Json::String(text)) if INDEXED.contains(&name) => {
            session.indexed(text).into_owned().into()
        }
        Some(Json::String(text)) => text.clone().into(),
        Some(other) => canonical(other).into(),
    }
}

/// The names of the columns that [`agree`] reads.
pub(crate) fn names(session: &Session) -> impl Iterator<Item = &'static str> {
    let shared = session.is_shared();
    COLUMNS
        .iter()
        .filter(move |_| shared)
        .map(|(name, _)| *name)
}

/// Whether the columns, from this place of the row on, say what the record says.
pub(crate) fn agree(
    session: &Session,
    record: &[u8],
    row: &Row<'_>,
    first: usize,
) -> SqlResult<bool> {
    if !session.is_shared() {
        return Ok(true);
    }
    let Ok(record) = serde_json::from_slice::<Json>(record) else {
        return Ok(false);
    };
    for (index, (name, pointer)) in COLUMNS.iter().enumerate() {
        let expected = value(session, &record, name, pointer);
        let same = if NUMBERS.contains(name) {
            let kept: Option<i64> = row.get(first + index)?;
            kept == expected.int()
        } else {
            let kept: Option<String> = row.get(first + index)?;
            kept == expected.text()
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
