//! A database of an older version becomes one of the present version, with everything in it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use crate::common::approval::{about_exec, yes};
use crate::common::{Fixture, fixture, kinds, queued, run_one, running};
use glovebox_model::{ApprovalState, SpaceId, Status};
use glovebox_store::{
    Admitted, ApprovalFilter, EntryFilter, ExecFilter, Kind, StateDir, Store, Terms,
};
use jiff::Timestamp;
use rusqlite::Connection;

const STEP_1: &str = include_str!("../../schema/sqlite/0001_execs_and_ledger.sql");

/// What version 1 kept.
const TABLES: [&str; 4] = [
    "ledger_entries",
    "ledger_terms",
    "ledger_heads",
    "ledger_checkpoints",
];

/// As it was before agents were told apart.
const WITHOUT_AGENTS: [&str; 3] = [
    "DROP INDEX execs_by_agent",
    "DROP INDEX execs_by_client",
    "ALTER TABLE sandbox_execs DROP COLUMN agent_id",
];
/// Its indexes go with a column.
const WITHOUT_AGENTS_SHARED: &str = "ALTER TABLE glovebox.sandbox_execs DROP COLUMN agent_id";

/// A state directory as a version that knew only step 1 left it, with one exec.
fn version_1(path: &std::path::Path) -> (StateDir, glovebox_model::Exec) {
    let now = fixture();
    let mut exec = run_one(&now.store);
    now.forget_proof();
    let closed = now.texts("SELECT lower(hex(closed_hash)) FROM sandbox_execs");
    exec.receipt.as_mut().unwrap().hash.clone_from(&closed[0]);
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
    let end = crate::common::ended(record, Status::Succeeded);
    store.close(opened, end).unwrap();
    assert_eq!(store.settings().unwrap().1, 0);
    assert_eq!(
        kinds(&store),
        [
            Kind::Planned,
            Kind::Outcome,
            // What was there is put under proof.
            Kind::Administered,
            Kind::Planned,
            Kind::Outcome
        ]
    );
    let version: i64 = Connection::open(state.database())
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 10);
    assert!(store.sandboxes_unowned().unwrap().is_empty());
    let verification = store.verify(&space, &Default::default()).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
}

/// A PostgreSQL database as a version that knew only step 1 left it.
#[test]
fn a_shared_database_of_version_1_is_brought_up_to_date() {
    let Some(it) = crate::common::postgres_fixture() else {
        return;
    };
    let exec = run_one(&it.store);
    // Long ones are kept as digests.
    let agents = ["ann".to_owned(), "\u{e9}".repeat(700)];
    for agent in &agents {
        let mut record = running();
        record.ids.agent_id = Some(agent.clone());
        let _open = it.store.plan("o", &record).unwrap();
    }
    it.forget_proof();
    let exec = it.store.get(&SpaceId::local(), &exec.exec_id).unwrap();
    it.execute(
        "DROP TABLE glovebox.sandboxes, glovebox.approvals, glovebox.grants, glovebox.secrets,
             glovebox.secret_values, glovebox.secrets_key, glovebox.secrets_stamps,
             glovebox.secret_grants, glovebox.webhooks, glovebox.outbox",
    );
    it.execute(WITHOUT_AGENTS_SHARED);
    it.execute("UPDATE glovebox.facts SET value = '1' WHERE name = 'version'");
    let store = it.open_again();
    let space = SpaceId::local();
    assert_eq!(store.get(&space, &exec.exec_id).unwrap(), exec);
    let sandbox = crate::common::sandbox("kept");
    store.sandbox_put_new(&sandbox, "o").unwrap();
    assert_eq!(store.sandbox(&space, "kept").unwrap(), sandbox);
    let version = it.texts("SELECT value FROM glovebox.facts WHERE name = 'version'");
    assert_eq!(version, ["9"]);
    for agent_id in agents.map(Some) {
        let own = ExecFilter {
            agent_id,
            ..ExecFilter::default()
        };
        assert_eq!(store.list(&space, &own).unwrap().items.len(), 1);
    }
    it.assert_sound();
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

/// Version 3 had every entry in the index at once.
#[test]
fn the_index_of_version_3_is_cut_to_what_it_reaches_now() {
    let it = fixture();
    let space = SpaceId::local();
    for _ in 0..34 {
        run_one(&it.store);
    }
    it.forget_proof();
    let connection = Connection::open(it.state.database()).unwrap();
    let terms = |connection: &Connection, sql: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM ledger_terms {sql}");
        connection.query_row(&sql, (), |row| row.get(0)).unwrap()
    };
    let reached = terms(&connection, "");
    assert_eq!(terms(&connection, "WHERE seq > 64"), 0);
    connection
        .execute_batch(
            "INSERT INTO ledger_terms SELECT space_id, 'kind=' || kind, at, seq
             FROM ledger_entries WHERE seq > 64;
             DROP TABLE approvals;
             DROP TABLE grants;
             DROP TABLE secrets;
             DROP TABLE secret_values;
             DROP TABLE secrets_key;
             DROP TABLE secrets_stamps;
             DROP TABLE secret_grants;
             DROP TABLE webhooks;
             DROP TABLE outbox;
             PRAGMA user_version = 3;",
        )
        .and_then(|()| connection.execute_batch(&WITHOUT_AGENTS.join(";")))
        .unwrap();
    assert_eq!(terms(&connection, "WHERE seq > 64"), 4);
    let store = Store::open(&it.state).unwrap();
    assert_eq!(terms(&connection, ""), reached);
    let filter = EntryFilter {
        kind: Some(Kind::Outcome),
        ..EntryFilter::default()
    };
    assert_eq!(store.query(&space, &filter).unwrap().items.len(), 34);
    let verification = store.verify(&space, &Default::default()).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
}

/// What was kept before there were approvals is there, and can be asked about.
fn approvals_come_to(it: &Fixture, as_before: &[&str]) {
    let space = SpaceId::local();
    let mut ended = run_one(&it.store);
    let waiting = queued();
    let terms = Terms {
        sealed_call: Some(b"the call"),
        ..Terms::default()
    };
    let admitted = it.store.admit("o", &waiting, terms).unwrap();
    let Admitted::Opened(opened) = admitted else {
        panic!("{admitted:?}");
    };
    it.forget_proof();
    for step in as_before {
        it.execute(step);
    }
    let store = it.open_again();
    // The chain was written anew.
    ended.receipt = store.get(&space, &ended.exec_id).unwrap().receipt;
    assert_eq!(store.get(&space, &ended.exec_id).unwrap(), ended);
    assert_eq!(store.get(&space, &waiting.exec_id).unwrap(), waiting);
    let none = store.approvals(&ApprovalFilter::default()).unwrap();
    assert!(none.items.is_empty());
    let mut record = waiting.clone();
    record.status = Status::AwaitingApproval;
    let asked = about_exec(&record);
    store
        .await_again("o", &opened, &record, None, &asked)
        .unwrap();
    store
        .reply(&asked.id, yes("ann"), Timestamp::now())
        .unwrap();
    let used = store.queue_approved("o", &opened, &waiting, None, &asked.id, "d1");
    assert_eq!(used.unwrap().state, ApprovalState::Used);
    it.assert_sound();
}

#[test]
fn a_database_of_version_4_learns_of_approvals() {
    approvals_come_to(
        &fixture(),
        &[
            "DROP TABLE approvals",
            "DROP TABLE grants",
            "DROP TABLE secrets",
            "DROP TABLE secret_values",
            "DROP TABLE secrets_key",
            "DROP TABLE secrets_stamps",
            "DROP TABLE secret_grants",
            "DROP TABLE webhooks",
            "DROP TABLE outbox",
            WITHOUT_AGENTS[0],
            WITHOUT_AGENTS[1],
            WITHOUT_AGENTS[2],
            "PRAGMA user_version = 4",
        ],
    );
}

#[test]
fn a_shared_database_of_version_3_learns_of_approvals() {
    let Some(it) = crate::common::postgres_fixture() else {
        return;
    };
    approvals_come_to(
        &it,
        &[
            "DROP TABLE glovebox.approvals, glovebox.grants, glovebox.secrets,
                 glovebox.secret_values, glovebox.secrets_key, glovebox.secrets_stamps,
                 glovebox.secret_grants, glovebox.webhooks, glovebox.outbox",
            WITHOUT_AGENTS_SHARED,
            "UPDATE glovebox.facts SET value = '3' WHERE name = 'version'",
        ],
    );
}
