//! The tables, indexes and triggers of the embedded database are part of what is trusted; and what
//! is known from outside of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::Ordering;

use crate::common::{Fixture, PATIENCE, fixture, lift_triggers, run, run_one, running, running_in};
use glovebox_model::{Code, SpaceId};
use glovebox_store::{Expectations, ExportFormat, Store, read_checkpoints, verify_export};

/// Nothing is written by who has it open, nobody opens it, and verification says so.
fn assert_refused(it: &Fixture, change: &str) {
    let error = it.store.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{change}: {error}");
    let problems = it.verify().problems;
    assert!(
        problems[0].what.contains("tables, indexes or triggers"),
        "{change}: {problems:?}"
    );
    let error = Store::open(&it.state).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{change}: {error}");
}

#[test]
fn another_shape_is_noticed_whoever_has_it_open() {
    for change in [
        "CREATE TRIGGER gone BEFORE INSERT ON ledger_entries BEGIN SELECT raise(ignore); END",
        "CREATE TRIGGER gone BEFORE UPDATE ON ledger_heads BEGIN SELECT raise(ignore); END",
        "DROP TRIGGER entries_are_not_edited",
        "DROP INDEX tokens_by_age",
        "CREATE INDEX more ON tokens (name)",
        "CREATE TABLE more (one TEXT)",
        "ALTER TABLE tokens RENAME TO real; CREATE VIEW tokens AS SELECT * FROM real",
        "DROP INDEX tokens_by_age; CREATE INDEX tokens_by_age ON tokens (created_at, token_id)
             WHERE name <> 'mine'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' STRICT', '')
             WHERE name = 'tokens'; PRAGMA schema_version = 9999",
        "ALTER TABLE settings ADD COLUMN more TEXT",
    ] {
        let it = fixture();
        run_one(&it.store);
        it.database().execute_batch(change).unwrap();
        assert_refused(&it, change);
    }
}

/// The number by which SQLite knows that the shape is another one can be put back.
/// What `ANALYZE` writes down steers searches and changes no answer.
#[test]
fn a_database_that_was_analysed_is_ours() {
    let it = fixture();
    it.database().execute_batch("ANALYZE").unwrap();
    assert!(it.verify().is_sound());
}

#[test]
fn who_had_it_open_is_not_led_astray_by_an_old_number() {
    let it = fixture();
    run_one(&it.store);
    let database = it.database();
    let version: i64 = database
        .pragma_query_value(None, "schema_version", |row| row.get(0))
        .unwrap();
    let trigger =
        "CREATE TRIGGER gone BEFORE INSERT ON ledger_entries BEGIN SELECT raise(ignore); END";
    database.execute_batch(trigger).unwrap();
    database
        .pragma_update(None, "schema_version", version)
        .unwrap();
    drop(database);
    // It has read the shape before, and does not know the trigger.
    run_one(&it.store);
    assert_eq!(
        it.texts("SELECT CAST(count(*) AS TEXT) FROM ledger_entries"),
        ["4"]
    );
    let error = Store::open(&it.state).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
}

/// A row that no index has is found by no search, and would be missed by none.
#[test]
fn a_row_that_an_index_does_not_have_is_found() {
    let it = fixture();
    run_one(&it.store);
    it.assert_sound();
    let database = it.database();
    let again = lift_triggers(&database);
    let sql: String = database
        .query_row(
            "SELECT sql FROM sqlite_master WHERE name = 'entries_by_time'",
            (),
            |row| row.get(0),
        )
        .unwrap();
    database
        .execute_batch(&format!(
            "DROP INDEX entries_by_time; {sql} WHERE seq <> 1; PRAGMA writable_schema = ON;
             UPDATE sqlite_master SET sql = '{sql}' WHERE name = 'entries_by_time';
             PRAGMA schema_version = 9999; PRAGMA writable_schema = OFF; {again}"
        ))
        .unwrap();
    drop(database);
    let problems = it.verify().problems;
    let says = |what: &str| problems.iter().any(|problem| problem.what.contains(what));
    assert!(says("missing from index entries_by_time"), "{problems:?}");
}

/// A number is not walked up to.
#[test]
fn a_gap_without_end_is_named_and_not_walked() {
    let it = fixture();
    run_one(&it.store);
    it.drop_triggers();
    let far = "UPDATE ledger_entries SET seq = 9223372036854775807 WHERE seq = 2";
    assert_eq!(it.execute(far), 1);
    let problems = it.verify().problems;
    assert!(problems.len() < 1000, "{}", problems.len());
    let says = |what: &str| problems.iter().any(|problem| problem.what.contains(what));
    assert!(says("entries 2 to 9223372036854775806 are missing"));
    assert!(says("more checkpoints are missing"));
}

/// Nobody has to wait for who has gone.
#[test]
fn a_verification_that_nobody_waits_for_stops() {
    let it = fixture();
    run_one(&it.store);
    let gone = Expectations::default();
    gone.abandoned.store(true, Ordering::Relaxed);
    let error = it.store.verify_all(&gone).unwrap_err();
    assert_eq!(error.code, Code::Canceled, "{error}");
}

/// The operator's chain was once shorter, and truly signed. The file beside its key says that it was
/// longer.
#[test]
fn an_operators_chain_that_was_put_back_is_missed() {
    let it = fixture();
    run_one(&it.store);
    let before = it.copy();
    for _ in 0..130 {
        run_one(&it.store);
    }
    it.assert_sound();
    let kept = it.state.ledger_key().with_file_name("ledger.head");
    assert!(kept.exists());
    std::fs::copy(
        &kept,
        before.state.ledger_key().with_file_name("ledger.head"),
    )
    .unwrap();
    let problems = before.verify().problems;
    let what = "`ledger.head` beside the key names entry 256, which is not there";
    assert!(problems[0].what.contains(what), "{problems:?}");
    let error = Store::open_to_serve(&before.state, PATIENCE).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered, "{error}");
    let hints = error.hints.join(" ");
    assert!(hints.contains("on purpose"), "{hints}");
    drop(Store::open_to_serve(&it.state, PATIENCE).unwrap());
}

/// A line that is not compared, or that another reader understands otherwise.
#[test]
fn an_export_that_can_be_read_in_two_ways_is_refused() {
    let it = fixture();
    run_one(&it.store);
    let mut export = Vec::new();
    let (space, form) = (SpaceId::local(), ExportFormat::Jsonl);
    it.store.export(&space, form, &mut export).unwrap();
    let export = String::from_utf8(export).unwrap();
    let verify = |text: &str| verify_export(text.as_bytes(), &Expectations::default()).unwrap();
    let sound = verify(&export);
    assert!(sound.is_sound(), "{:?}", sound.problems);
    assert!(sound.signed_by.is_some());
    let is_exec = |line: &&str| line.contains("\"type\":\"exec\"");
    let exec = export.lines().find(is_exec).unwrap();
    let forged = exec.replace("\"owner\":\"", "\"owner\":\"x");
    for changed in [
        export.replace(exec, &format!("{forged}\n{exec}")),
        export.replacen("\"body\":{", "\"body\":{\"cmd\":\"id\",", 1),
        export.replacen("\"kind\":", "\"kind\":\"refused\",\"kind\":", 1),
        export.replace(
            "\"type\":\"checkpoint\",",
            "\"type\":\"checkpoint\",\"note\":1,",
        ),
    ] {
        assert_ne!(changed, export);
        assert!(!verify(&changed).is_sound(), "{changed}");
    }
}

/// An export of all spaces has a checkpoint of each, and each is used.
#[test]
fn every_checkpoint_of_a_file_is_used() {
    let it = fixture();
    let other: SpaceId = "other".parse().unwrap();
    run_one(&it.store);
    run(&it.store, running_in(other.clone()));
    let before = it.copy();
    run(&it.store, running_in(other.clone()));
    let mut export = Vec::new();
    it.store
        .export_all(ExportFormat::Jsonl, &mut export)
        .unwrap();
    let known = Expectations {
        checkpoints: read_checkpoints(export.as_slice()).unwrap(),
        ..Expectations::default()
    };
    assert_eq!(known.checkpoints.len(), 2);
    let sound = it.store.verify_all(&known).unwrap();
    assert!(sound.is_sound(), "{:?}", sound.problems);
    assert!(before.verify().is_sound());
    let problems = before.store.verify_all(&known).unwrap().problems;
    let what = "the outside checkpoint names entry 4, which is not there";
    assert!(
        problems
            .iter()
            .any(|it| it.space_id.as_deref() == Some("other") && it.what == what),
        "{problems:?}"
    );
    let one = it.store.verify(&other, &known).unwrap();
    assert!(one.is_sound(), "{:?}", one.problems);
}

#[test]
fn a_database_that_others_may_write_is_refused() {
    let it = fixture();
    run_one(&it.store);
    for (mode, refused) in [(0o620, true), (0o602, true), (0o644, false)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(it.state.database(), mode).unwrap();
        let opened = Store::open(&it.state);
        assert_eq!(opened.is_err(), refused, "{opened:?}");
        if let Err(error) = opened {
            assert_eq!(error.code, Code::StoreUnavailable, "{error}");
            assert!(error.hints[0].contains("chmod 600"), "{error:?}");
        }
    }
}
