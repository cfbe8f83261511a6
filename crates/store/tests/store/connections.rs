//! PostgreSQL as it is in life: connections die, servers meet, keys differ.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::{Duration, Instant};

use crate::common::postgres::Database;
use crate::common::{ended, kinds, postgres_fixture, run, run_one, running};
use glovebox_model::{Code, SpaceId, Status};
use glovebox_store::{EntryFilter, ExecFilter, Expectations, Kind, StateDir, Store};

const WRITERS: i64 = i64::from_be_bytes(*b"glovebox");

/// Polls until the query has a row.
fn until(database: &Database, sql: &str) -> postgres::Row {
    let since = Instant::now();
    let mut client = database.client();
    loop {
        if let Some(row) = client.query(sql, &[]).unwrap().pop() {
            return row;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "never: {sql}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_that_were_cut_are_replaced() {
    let Some(it) = postgres_fixture() else { return };
    let database = it.shared.as_ref().unwrap();
    let space = SpaceId::local();
    let record = running();
    let opened = it.store.plan("o", &record).unwrap();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| it.store.list(&space, &ExecFilter::default()).unwrap());
        }
    });
    assert!(database.disconnect_all() > 0);
    assert_eq!(it.store.get(&space, &record.exec_id).unwrap(), record);
    database.disconnect_all();
    it.store
        .close(opened, ended(record, Status::Succeeded))
        .unwrap();
    database.disconnect_all();
    assert_eq!(it.store.tail(&space, 10).unwrap().len(), 2);
    database.disconnect_all();
    it.store.ping().unwrap();
    assert!(it.store.renew("o", crate::common::HOUR).unwrap());
    it.assert_sound();
}

#[test]
fn a_writer_that_is_cut_while_it_waits_begins_again() {
    let Some(it) = postgres_fixture() else { return };
    let database = it.shared.as_ref().unwrap();
    run_one(&it.store);
    let mut blocker = database.client();
    blocker
        .batch_execute(&format!("SELECT pg_advisory_lock({WRITERS})"))
        .unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| it.store.plan("o", &running()));
        let waiting = "SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let pid: i32 = until(database, waiting).get(0);
        database
            .client()
            .execute("SELECT pg_terminate_backend($1, 10000)", &[&pid])
            .unwrap();
        until(database, &format!("{waiting} AND pid <> {pid}"));
        blocker
            .batch_execute(&format!("SELECT pg_advisory_unlock({WRITERS})"))
            .unwrap();
        let _opened = writer.join().unwrap().unwrap();
    });
    assert_eq!(kinds(&it.store).len(), 3);
    it.assert_sound();
}

/// From now on the connection dies inside of COMMIT, after everything else.
const DIES_IN_COMMIT: &str = "
    CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$;
    CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON sandbox_execs
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()";

#[test]
fn a_commit_that_was_lost_is_an_error() {
    let Some(it) = postgres_fixture() else { return };
    run_one(&it.store);
    it.execute(DIES_IN_COMMIT);
    let error = it.store.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("nothing was written"), "{error}");
    assert!(error.retry.allowed && !error.hints.is_empty());
    it.execute("DROP TRIGGER dies ON sandbox_execs");
    let _next = it.store.plan("o", &running()).unwrap();
    assert_eq!(kinds(&it.store).len(), 3);
    it.assert_sound();
}

#[test]
fn a_commit_whose_outcome_nobody_can_tell_is_an_error_that_says_so() {
    let Some(it) = postgres_fixture() else { return };
    it.execute(DIES_IN_COMMIT);
    it.store.ping().unwrap();
    let database = it.shared.as_ref().unwrap();
    database.allow_connections(false);
    let error = it.store.plan("o", &running()).unwrap_err();
    database.allow_connections(true);
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("not known"), "{error}");
    assert!(error.retry.allowed && !error.hints.is_empty());
}

#[test]
fn a_commit_that_was_done_is_no_error_when_its_answer_is_lost() {
    // The server's settings are changed, so it must be one of our own.
    let Some(database) = Database::create_alone() else {
        return;
    };
    let it = crate::common::over(database);
    run_one(&it.store);
    let database = it.shared.as_ref().unwrap();
    // A commit is done here and waits for a standby that never comes.
    database.wait_for_standby("nobody");
    thread::scope(|scope| {
        let writer = scope.spawn(|| it.store.plan("o", &running()));
        let waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        let pid: i32 = until(database, waiting).get(0);
        let mut client = database.client();
        client
            .execute("SELECT pg_terminate_backend($1, 10000)", &[&pid])
            .unwrap();
        let _opened = writer.join().unwrap().unwrap();
    });
    database.wait_for_standby("");
    assert_eq!(kinds(&it.store).len(), 3);
    let _next = it.store.plan("o", &running()).unwrap();
    it.assert_sound();
}

#[test]
fn a_database_that_stays_locked_is_busy_and_nothing_is_half_written() {
    let Some(it) = postgres_fixture() else { return };
    let database = it.shared.as_ref().unwrap();
    let patience = Duration::from_secs(1);
    let store = Store::connect_with_patience(&it.state, &database.url, patience).unwrap();
    let record = running();
    let opened = it.store.plan("o", &record).unwrap();
    let mut blocker = database.client();
    blocker
        .batch_execute(&format!("SELECT pg_advisory_lock({WRITERS})"))
        .unwrap();
    let error = store.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::Busy, "{error}");
    assert!(error.retry.allowed);
    let unclosed = store
        .close(opened, ended(record, Status::Succeeded))
        .unwrap_err();
    assert_eq!(unclosed.error.code, Code::Busy);
    assert!(
        it.store.renew("o", crate::common::HOUR).unwrap(),
        "no writer is in the way"
    );
    blocker
        .batch_execute(&format!("SELECT pg_advisory_unlock({WRITERS})"))
        .unwrap();
    it.store.close(unclosed.opened, *unclosed.record).unwrap();
    assert_eq!(kinds(&it.store), [Kind::Planned, Kind::Outcome]);
    it.assert_sound();
}

#[test]
fn servers_that_start_at_once_agree_on_one_schema_and_key() {
    let Some(database) = Database::create() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    thread::scope(|scope| {
        for number in 0..8 {
            let (path, url) = (&path, &database.url);
            scope.spawn(move || {
                let state = StateDir::open(path).unwrap();
                let store = crate::common::opened(&state, Some(url));
                assert!(store.is_shared());
                let owner = format!("server{number}");
                store.enlist(&owner, crate::common::HOUR).unwrap();
                for _ in 0..5 {
                    let record = running();
                    let opened = store.plan(&owner, &record).unwrap();
                    store
                        .close(opened, ended(record, Status::Succeeded))
                        .unwrap();
                }
            });
        }
    });
    let state = StateDir::open(&path).unwrap();
    let store = Store::connect(&state, &database.url).unwrap();
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 8 * 5 * 2);

    let stranger = StateDir::open(dir.path().join("other")).unwrap();
    let error = Store::connect(&stranger, &database.url).unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("another key"), "{error}");
    assert!(error.hints[0].contains("copy `ledger.key`"), "{error:?}");
    let stranger = stranger.with_keys(&path).unwrap();
    assert!(Store::connect(&stranger, &database.url).is_ok());
}

#[test]
fn a_newer_database_is_refused() {
    let Some(it) = postgres_fixture() else { return };
    it.execute("UPDATE facts SET value = '99' WHERE name = 'version'");
    let url = &it.shared.as_ref().unwrap().url;
    let error = Store::connect(&it.state, url).unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("99"), "{error}");
    assert!(error.hints[0].contains("newer"), "{error:?}");
}

#[test]
fn what_cannot_be_reached_is_named_without_its_password() {
    let Some(it) = postgres_fixture() else { return };
    let url = &it.shared.as_ref().unwrap().url;
    let (server, name) = url.rsplit_once('/').unwrap();
    let (_, host) = server.rsplit_once('@').unwrap();
    for url in [
        format!("postgresql://postgres:hunter2@{host}/{name}"),
        format!("postgresql://nobody:hunter2@{host}/{name}"),
        format!("{server}/nothing_of_that_name"),
        format!("postgresql://postgres:hunter2@127.0.0.1:1/{name}"),
        format!("postgresql://postgres:hunter2@{host}/{name}?sslmode=require"),
    ] {
        let error = Store::connect(&it.state, &url).unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable, "{error}");
        assert!(!error.hints.is_empty(), "{error:?}");
        let text = serde_json::to_string(&error).unwrap();
        assert!(text.contains("postgresql://"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn tls_is_spoken_only_with_who_has_the_right_certificate_and_name() {
    let Some(database) = Database::create_alone() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("state")).unwrap();
    let connect = |options: &str| Store::connect(&state, &format!("{}?{options}", database.url));
    let trusting = |file: &std::path::Path| format!("sslrootcert={}", file.display());

    let other_name = trusting(&database.offer_tls("DNS:elsewhere.example"));
    let error = connect(&format!("sslmode=verify-full&{other_name}")).unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    let root = database.offer_tls("IP:127.0.0.1");
    // It is another key now; the server takes it with its next connection.
    database.reload("ssl", "on");
    for mode in ["require", "verify-ca", "verify-full"] {
        let store = connect(&format!("sslmode={mode}&{}", trusting(&root))).unwrap();
        store.ping().unwrap();
        let encrypted = "SELECT 1 FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE a.datname = current_database() AND a.application_name = 'glovebox' AND s.ssl";
        until(&database, encrypted);
        drop(store);
    }
    // Signed by nobody whom the system trusts.
    let error = connect("sslmode=verify-full").unwrap_err();
    let text = serde_json::to_string(&error).unwrap();
    assert!(text.contains("certificate"), "{text}");
    assert!(connect("sslmode=disable").is_ok());
}

#[test]
fn columns_that_say_something_else_than_the_record_are_found() {
    let Some(it) = postgres_fixture() else { return };
    run_one(&it.store);
    let mut open = running();
    open.ids.task_id = Some("t".to_owned());
    let _open = it.store.plan("o", &open).unwrap();
    it.assert_sound();
    for (edit, seq) in [
        ("status = 'failed' WHERE opened_seq = 1", 2),
        ("exit_code = 7 WHERE opened_seq = 1", 2),
        ("task_id = NULL WHERE opened_seq = 3", 3),
    ] {
        it.execute(&format!("UPDATE sandbox_execs SET {edit}"));
        let problems = it.verify().problems;
        let found = |problem: &glovebox_store::Problem| {
            problem.seq == Some(seq) && problem.what.contains("than its record")
        };
        assert!(problems.iter().any(found), "{edit}: {problems:?}");
    }
}

#[test]
fn long_and_strange_ids_are_kept_and_found() {
    let Some(it) = postgres_fixture() else { return };
    let space = SpaceId::local();
    for task in [
        "x".repeat(100_000),
        "a\0b".to_owned(),
        "é😀'\\\"".to_owned(),
    ] {
        let mut record = running();
        record.ids.task_id = Some(task.clone());
        record.ids.agent_id = Some(task.clone());
        let done = run(&it.store, record);
        let filter = ExecFilter {
            task_id: Some(task.clone()),
            ..ExecFilter::default()
        };
        assert_eq!(it.store.list(&space, &filter).unwrap().items, [done]);
        let filter = EntryFilter {
            task_id: Some(task),
            ..EntryFilter::default()
        };
        assert_eq!(it.store.query(&space, &filter).unwrap().items.len(), 2);
    }
    it.assert_sound();
}
