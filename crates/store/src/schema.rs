//! The database's shape and how an older one becomes the present one.

use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::adoption;
use crate::failure::{Doing, internal, tampered};
use crate::ledger::key::LedgerKey;
use crate::sql::{Session, Shape};
use crate::state_dir::StateDir;

/// Step N brings version N-1 to version N. Steps are only ever added.
const STEPS: &[&str] = &[
    include_str!("../schema/sqlite/0001_execs_and_ledger.sql"),
    include_str!("../schema/sqlite/0002_server.sql"),
    include_str!("../schema/sqlite/0003_sandboxes.sql"),
    include_str!("../schema/sqlite/0004_index_in_batches.sql"),
    include_str!("../schema/sqlite/0005_approvals.sql"),
    include_str!("../schema/sqlite/0006_secrets.sql"),
    include_str!("../schema/sqlite/0007_outbox.sql"),
    include_str!("../schema/sqlite/0008_grants_expire.sql"),
    include_str!("../schema/sqlite/0009_rows_under_proof.sql"),
    include_str!("../schema/sqlite/0010_agents.sql"),
];

/// The version that has rows under proof.
const PROVEN: i64 = 9;

const LATEST: i64 = STEPS.len() as i64;

/// Brings the embedded database to the latest version; costs one read when it is there already.
/// `key`: that of its ledger, made when there is none and none is missed.
pub(crate) fn bring_up(
    session: &Session,
    state: &StateDir,
    patience: Duration,
    key: impl FnOnce() -> Result<LedgerKey>,
) -> Result<()> {
    let Session::Sqlite(connection, shape) = session else {
        return Ok(());
    };
    if is_up(connection, shape)? {
        return Ok(());
    }
    // Switching to the write-ahead log cannot be part of a transaction, so one process at a time.
    let _alone = state.exclusively(patience)?;
    // In this order: the key has its name only when the database has its tables.
    let begun = state.has_begun()?;
    if is_up(connection, shape)? {
        return Ok(());
    }
    let from = version(connection)?;
    if from == 0 {
        if begun {
            return Err(state.database_is_gone());
        }
        start_afresh(connection)?;
    }
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
            .doing("prepare the database")?;
    let done = usize::try_from(from).unwrap_or(STEPS.len());
    for step in &STEPS[done..] {
        transaction.execute_batch(step).map_err(not_older)?;
    }
    let key_path = state.ledger_key();
    if from < PROVEN {
        let key = match from {
            0 => LedgerKey::begin(&key_path),
            _ => key(),
        };
        adoption::put_under_proof(session, &key?)?;
    }
    transaction
        .pragma_update(None, "user_version", LATEST)
        .doing("bring the database up to date")?;
    shape
        .ensure_ours(connection)
        .doing("bring the database up to date")?;
    transaction
        .commit()
        .doing("bring the database up to date")?;
    match from {
        0 => LedgerKey::confirm(&key_path),
        _ => Ok(()),
    }
}

/// Whether it has the latest version; one that says so has its shape, too. One view for both.
fn is_up(connection: &Connection, shape: &Shape) -> Result<bool> {
    let what = "read the database";
    connection.execute_batch("BEGIN DEFERRED").doing(what)?;
    let is_latest = version(connection)? == LATEST;
    if is_latest {
        shape.ensure_ours(connection).doing(what)?;
    }
    connection.execute_batch("COMMIT").doing(what)?;
    Ok(is_latest)
}

/// A step fails by itself only on tables that no older version had.
fn not_older(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::Unknown) => {
            tampered("the database claims to be of an older version, and has not its tables")
                .caused_by(error)
        }
        _ => {
            let failed: rusqlite::Result<()> = Err(error);
            let failed = failed.doing("bring the database up to date").err();
            failed.unwrap_or_else(|| internal("the database cannot be brought up to date"))
        }
    }
}

fn version(connection: &Connection) -> Result<i64> {
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .doing("read the database")?;
    if (0..=LATEST).contains(&version) {
        return Ok(version);
    }
    Err(newer(version, LATEST)
        .hint("it was written by a newer `glovebox`: use that one, or name another `--state-dir`"))
}

pub(crate) fn newer(version: i64, latest: i64) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!(
            "the database has version {version} and this `glovebox` knows versions up to {latest}"
        ),
    )
}

fn start_afresh(connection: &Connection) -> Result<()> {
    let what = "prepare the database";
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
        .doing(what)?;
    if tables != 0 {
        return Err(Error::new(
            Code::StoreUnavailable,
            Stage::Open,
            "`glovebox.db` is another program's database",
        )
        .hint("name another `--state-dir`"));
    }
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .doing(what)?;
    if mode != "wal" {
        return Err(Error::new(
            Code::StoreUnavailable,
            Stage::Open,
            "the state directory's file system cannot share memory between processes",
        )
        .hint("name a `--state-dir` on a local file system"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SHAPE, shape_of};

    /// When a step was added: the value on the left is the new one of [`SHAPE`].
    #[test]
    fn the_steps_lead_to_the_shape_that_is_asked_for() {
        let connection = Connection::open_in_memory().unwrap();
        for step in STEPS {
            connection.execute_batch(step).unwrap();
        }
        assert_eq!(shape_of(&connection).unwrap(), SHAPE);
    }
}
