//! A database of an older version becomes one of the present version, with everything in it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;

use common::{fixture, kinds, run_one, running};
use glovebox_model::{SpaceId, Status};
use glovebox_store::{Admitted, ExecFilter, Kind, StateDir, Store, Terms};
use rusqlite::Connection;

const STEP_1: &str = include_str!("../schema/sqlite/0001_execs_and_ledger.sql");

/// What version 1 kept.
const TABLES: [&str; 4] = [
    "ledger_entries",
    "ledger_terms",
    "ledger_heads",
    "ledger_checkpoints",
];

/// A state directory as a version that knew only step 1 left it, with one exec.
fn version_1(path: &std::path::Path) -> (StateDir, glovebox_model::Exec) {
    let now = fixture();
    let exec = run_one(&now.store);
    let state = StateDir::open(path).unwrap();
    fs::copy(now.state.ledger_key(), state.ledger_key()).unwrap();
    let old = Connection::open(state.database()).unwrap();
    old.pragma_update(None, "journal_mode", "wal").unwrap();
    old.execute_batch(STEP_1).unwrap();
    let from = now.state.database();
    old.execute("ATTACH ?1 AS now", [from.to_str().unwrap()])
        .unwrap();
    for table in TABLES {
        let copy = format!("INSERT INTO {table} SELECT * FROM now.{table}");
        old.execute_batch(&copy).unwrap();
    }
    let columns = "space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record";
    let copy =
        format!("INSERT INTO sandbox_execs ({columns}) SELECT {columns} FROM now.sandbox_execs");
    old.execute_batch(&copy).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    (state, exec)
}

#[test]
fn a_database_of_version_1_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let (state, exec) = version_1(&dir.path().join("old"));
    let space = SpaceId::local();
    let store = Store::open(&state).unwrap();
    assert_eq!(store.get(&space, &exec.exec_id).unwrap(), exec);
    let filter = ExecFilter {
        project_id: Some(exec.project_id.clone()),
        ..ExecFilter::default()
    };
    assert_eq!(store.list(&space, &filter).unwrap().items, [exec]);
    let verification = store.verify(&space, &Default::default()).unwrap();
    assert!(verification.is_sound(), "{verification:?}");

    let record = running();
    let admitted = store.admit("o", &record, Terms::default()).unwrap();
    let Admitted::Opened(opened) = admitted else {
        panic!("{admitted:?}");
    };
    let end = common::ended(record, Status::Succeeded);
    store.close(opened, end).unwrap();
    assert_eq!(store.settings().unwrap().1, 0);
    assert_eq!(
        kinds(&store),
        [Kind::Planned, Kind::Outcome, Kind::Planned, Kind::Outcome]
    );
    let version: i64 = Connection::open(state.database())
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 2);
    let verification = store.verify(&space, &Default::default()).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
}

#[test]
fn many_who_open_an_old_database_at_once_bring_it_up_once() {
    let dir = tempfile::tempdir().unwrap();
    let (state, exec) = version_1(&dir.path().join("old"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let store = Store::open(&state).unwrap();
                assert!(store.get(&SpaceId::local(), &exec.exec_id).is_ok());
                store.ping().unwrap();
            });
        }
    });
}

#[test]
fn keys_may_be_kept_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let open = || StateDir::open(dir.path().join("state")).unwrap();
    let state = open().with_keys(&keys).unwrap();
    assert_eq!(state.keys(), keys);
    run_one(&Store::open(&state).unwrap());
    assert!(keys.join("ledger.key").exists());
    assert!(!state.path().join("ledger.key").exists());
    fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let error = open().with_keys(&keys).unwrap_err();
    assert!(error.message.contains("written by others"), "{error}");
}
