//! The rows of `sandboxes`: what they hold and how they change, always inside a transaction.

use glovebox_model::{Result, Sandbox, SandboxId, SandboxState};
use serde_json::Value as Json;

use crate::failure::{Doing, internal, tampered};
use crate::sql::{Row, Session, SqlResult, Value, values};

/// A sandbox of the registry, and who has it standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub sandbox: Sandbox,
    /// `None`: nobody, so it may be claimed.
    pub owner: Option<String>,
}

pub(crate) const COLUMNS: &str = "sandbox_id, record, owner_id, opened_seq";

pub(crate) struct SandboxRow {
    sandbox_id: String,
    record: String,
    owner: Option<String>,
    pub(crate) opened_seq: i64,
}

pub(crate) fn read_row(row: &Row<'_>) -> SqlResult<SandboxRow> {
    Ok(SandboxRow {
        sandbox_id: row.get(0)?,
        record: row.get(1)?,
        owner: row.get(2)?,
        opened_seq: row.get(3)?,
    })
}

impl SandboxRow {
    pub(crate) fn into_registered(self) -> Result<Registered> {
        let sandbox = serde_json::from_slice(self.record.as_bytes()).map_err(|error| {
            let id = &self.sandbox_id;
            tampered(format!("the record of sandbox `{id}` cannot be read")).caused_by(error)
        })?;
        Ok(Registered {
            sandbox,
            owner: self.owner,
        })
    }
}

pub(crate) fn find(session: &Session, id: &SandboxId) -> Result<Option<Registered>> {
    session
        .row(
            &format!("SELECT {COLUMNS} FROM sandboxes WHERE sandbox_id = ?1"),
            values![id.as_str()],
            read_row,
        )
        .doing("read the sandbox")?
        .map(SandboxRow::into_registered)
        .transpose()
}

/// The columns that SQLite generates, and where each is in the record.
const BESIDE: [(&str, &str); 9] = [
    ("name", "/name"),
    ("project_id", "/project_id"),
    ("lifetime", "/lifetime"),
    ("scope", "/scope"),
    ("backend", "/config/backend"),
    ("image", "/config/image"),
    ("state", "/state"),
    ("created_at", "/created_at"),
    ("last_used_at", "/last_used_at"),
];

/// The record, and what is written beside it where the database does not generate that.
fn record_columns(
    session: &Session,
    sandbox: &Sandbox,
) -> Result<Vec<(&'static str, Value<'static>)>> {
    let wrong = |error| internal("the sandbox cannot be written").caused_by(error);
    let json = serde_json::to_value(sandbox).map_err(wrong)?;
    let text = serde_json::to_string(sandbox).map_err(wrong)?;
    let mut columns = vec![("record", Value::from(text))];
    if session.is_shared() {
        columns.extend(BESIDE.map(|(name, pointer)| {
            let text = json.pointer(pointer).and_then(Json::as_str);
            (name, Value::from(text.map(str::to_owned)))
        }));
    }
    Ok(columns)
}

pub(crate) fn insert(
    session: &Session,
    sandbox: &Sandbox,
    owner: &str,
    opened_seq: i64,
) -> Result<()> {
    let mut columns = vec![
        ("sandbox_id", Value::from(sandbox.sandbox_id.to_string())),
        ("space_id", Value::from(sandbox.space_id.to_string())),
        ("owner_id", Value::from(owner.to_owned())),
        ("opened_seq", Value::from(opened_seq)),
    ];
    columns.extend(record_columns(session, sandbox)?);
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let places: Vec<_> = (1..=columns.len()).map(|it| format!("?{it}")).collect();
    let sql = format!(
        "INSERT INTO sandboxes ({}) VALUES ({})",
        names.join(", "),
        places.join(", ")
    );
    let values: Vec<_> = columns.into_iter().map(|(_, value)| value).collect();
    session.execute(&sql, &values).doing("write the sandbox")?;
    Ok(())
}

pub(crate) fn rewrite(session: &Session, sandbox: &Sandbox) -> Result<()> {
    let columns = record_columns(session, sandbox)?;
    update(session, &sandbox.sandbox_id, columns)
}

pub(crate) fn set_owner(session: &Session, id: &SandboxId, owner: &str) -> Result<()> {
    update(session, id, vec![("owner_id", owner.to_owned().into())])
}

/// Nobody has it standing any more, so nothing of it runs and nobody is in it.
pub(crate) fn let_go(session: &Session, mut sandbox: Sandbox) -> Result<()> {
    sandbox.state = SandboxState::Down;
    sandbox.exec_id = None;
    let mut columns = record_columns(session, &sandbox)?;
    columns.push(("owner_id", Value::Null));
    update(session, &sandbox.sandbox_id, columns)
}

fn update(
    session: &Session,
    id: &SandboxId,
    columns: Vec<(&'static str, Value<'static>)>,
) -> Result<()> {
    let set: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(index, (name, _))| format!("{name} = ?{}", index + 2))
        .collect();
    let sql = format!(
        "UPDATE sandboxes SET {} WHERE sandbox_id = ?1",
        set.join(", ")
    );
    let mut values = vec![Value::from(id.as_str())];
    values.extend(columns.into_iter().map(|(_, value)| value));
    let changed = session.execute(&sql, &values).doing("write the sandbox")?;
    if changed == 1 {
        return Ok(());
    }
    Err(internal(format!("the row of sandbox `{id}` is gone")))
}

pub(crate) fn delete(session: &Session, id: &SandboxId) -> Result<()> {
    session
        .execute(
            "DELETE FROM sandboxes WHERE sandbox_id = ?1",
            values![id.as_str()],
        )
        .doing("remove the sandbox")?;
    Ok(())
}

pub(crate) fn of_owner(session: &Session, owner: &str) -> Result<Vec<Registered>> {
    session
        .rows(
            &format!(
                "SELECT {COLUMNS} FROM sandboxes WHERE owner_id = ?1 ORDER BY space_id, opened_seq"
            ),
            values![owner],
            read_row,
        )
        .doing("look for sandboxes")?
        .into_iter()
        .map(SandboxRow::into_registered)
        .collect()
}

/// What an owner had standing is nobody's, since the owner is gone.
pub(crate) fn orphan(session: &Session, owner: &str) -> Result<()> {
    for it in of_owner(session, owner)? {
        let_go(session, it.sandbox)?;
    }
    Ok(())
}
