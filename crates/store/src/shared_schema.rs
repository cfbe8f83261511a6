//! The shape of the PostgreSQL database, in a schema of its own.

use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};

use crate::adoption;
use crate::failure::{Doing, internal};
use crate::hex;
use crate::ledger::key::LedgerKey;
use crate::schema::newer;
use crate::sql::{Access, Session, values};
use crate::state_dir::StateDir;

/// Step N brings version N-1 to version N. Steps are only ever added.
const STEPS: &[&str] = &[
    include_str!("../schema/postgres/0001_all.sql"),
    include_str!("../schema/postgres/0002_sandboxes.sql"),
    include_str!("../schema/postgres/0003_index_in_batches.sql"),
    include_str!("../schema/postgres/0004_approvals.sql"),
    include_str!("../schema/postgres/0005_secrets.sql"),
    include_str!("../schema/postgres/0006_outbox.sql"),
    include_str!("../schema/postgres/0007_grants_expire.sql"),
    include_str!("../schema/postgres/0008_rows_under_proof.sql"),
    include_str!("../schema/postgres/0009_agents.sql"),
];

/// The version that has rows under proof.
const PROVEN: i64 = 8;

const PUBLIC_KEY: &str = "public_key";

const LATEST: i64 = STEPS.len() as i64;

/// Brings the database to the latest version, one server at a time; costs one read when it is
/// there already.
pub(crate) fn bring_up(session: &Session, state: &StateDir) -> Result<()> {
    let what = "bring the database up to date";
    if version(session)? == LATEST {
        return Ok(());
    }
    session.begin(Access::Write).doing(what)?;
    let was_shared = state.was_shared()?;
    let from = version(session)?;
    if from == 0 && was_shared {
        return Err(state.shared_database_is_gone());
    }
    let done = usize::try_from(from).unwrap_or(STEPS.len());
    for step in &STEPS[done..] {
        session.batch(step).doing(what)?;
    }
    if from < PROVEN {
        adoption::put_under_proof(session, &agree_on_key(session, &state.ledger_key())?)?;
    }
    session
        .execute(
            "INSERT INTO facts (name, value) VALUES ('version', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            values![LATEST.to_string()],
        )
        .doing(what)?;
    session.commit().doing(what)
}

fn version(session: &Session) -> Result<i64> {
    let what = "read the database";
    // Read from the catalog's tables: what a connection remembers of names is not renewed while it
    // waits for the writers' lock.
    let there = session
        .exists(
            "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'glovebox' AND c.relname = 'facts')",
            &[],
        )
        .doing(what)?;
    if !there {
        return Ok(0);
    }
    let text = fact(session, "version")?;
    let version = text
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| internal("the database has no version"))?;
    if (0..=LATEST).contains(&version) {
        return Ok(version);
    }
    Err(newer(version, LATEST)
        .hint("it was written by a newer `glovebox`: use that one, or another database"))
}

fn fact(session: &Session, name: &str) -> Result<Option<String>> {
    session
        .row(
            "SELECT value FROM facts WHERE name = ?1",
            values![name],
            |row| row.get(0),
        )
        .doing("read the database")
}

/// All servers of a database sign with one key: the first one's. Another key would make a ledger
/// that neither of them believes.
pub(crate) fn agree_on_key(session: &Session, path: &Path) -> Result<LedgerKey> {
    let refused = || {
        Error::new(
            Code::StoreUnavailable,
            Stage::Open,
            format!(
                "the ledger of this database is signed by another key than `{}`",
                path.display()
            ),
        )
        .hint("copy `ledger.key` from the server that uses the database already, with mode 600")
    };
    let key = match LedgerKey::load(path)? {
        Some(key) => key,
        // A new key would only be in the way of the right one.
        None if fact(session, PUBLIC_KEY)?.is_some() => {
            // Unless another process of this machine made both just now.
            LedgerKey::load(path)?.ok_or_else(refused)?
        }
        None => LedgerKey::load_or_create(path)?,
    };
    let ours = hex::encode(&key.public());
    session
        .execute(
            "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
            values![PUBLIC_KEY, &ours],
        )
        .doing("write to the database")?;
    if fact(session, PUBLIC_KEY)?.as_ref() == Some(&ours) {
        return Ok(key);
    }
    Err(refused())
}
