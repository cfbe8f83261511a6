//! The tables, indexes and triggers of the embedded database are part of what is trusted.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{Fixture, fixture, lift_triggers, run_one, running};
use glovebox_model::Code;
use glovebox_store::Store;

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
