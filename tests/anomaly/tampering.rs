//! The ledger as a file that somebody can write to: whatever is changed in it is found.

use glovebox_model::ReceiptRef;
use rusqlite::Connection;

use crate::bench::Bench;

/// A ledger of ten runs, and the receipt of each.
fn ten_runs() -> (Bench, Vec<ReceiptRef>) {
    let bench = Bench::new();
    let receipts = (0..10)
        .map(|number| {
            let word = number.to_string();
            let record = bench.record(0, &[], &["echo", &word]);
            serde_json::from_value(record["receipt"].clone()).unwrap()
        })
        .collect();
    bench.assert_sound(&[]);
    (bench, receipts)
}

fn database(bench: &Bench) -> Connection {
    Connection::open(bench.state().join("glovebox.db")).unwrap()
}

/// Without the triggers and checks that stop mistakes: whoever owns the file can drop them. With what
/// puts the triggers back, so that nobody misses them.
fn unguarded(bench: &Bench) -> (Connection, String) {
    let database = database(bench);
    database
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;")
        .unwrap();
    let triggers: Vec<(String, String)> = database
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        .unwrap()
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    let mut again = String::new();
    for (trigger, sql) in triggers {
        database
            .execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
        again.push_str(&format!("{sql};"));
    }
    (database, again)
}

/// Each change alone, on a ledger of its own; the change must really have changed something.
fn found(change: &str) {
    let (bench, _) = ten_runs();
    let (database, again) = unguarded(&bench);
    let before = database.total_changes();
    database.execute_batch(change).unwrap();
    assert_ne!(
        database.total_changes(),
        before,
        "nothing changed: {change}"
    );
    database.execute_batch(&again).unwrap();
    drop(database);
    let verification = bench.verify(&[]);
    assert!(!verification.is_sound(), "not found: {change}");
    let place = verification
        .problems
        .iter()
        .filter_map(|problem| problem.seq)
        .next();
    assert!(place.is_some(), "{:?}", verification.problems);
}

#[test]
fn an_edited_entry_is_found() {
    found(
        "UPDATE ledger_entries SET body = replace(body, '\"status\"', '\"statue\"') WHERE seq = 8",
    );
}

#[test]
fn an_edited_time_is_found() {
    found("UPDATE ledger_entries SET at = at + 1 WHERE seq = 8");
}

#[test]
fn a_deleted_entry_is_found() {
    found("DELETE FROM ledger_entries WHERE seq = 8");
}

#[test]
fn reordered_entries_are_found() {
    found(
        "UPDATE ledger_entries SET seq = -1 WHERE seq = 8;
         UPDATE ledger_entries SET seq = 8 WHERE seq = 10;
         UPDATE ledger_entries SET seq = 10 WHERE seq = -1;",
    );
}

#[test]
fn a_cut_tail_is_found() {
    found("DELETE FROM ledger_entries WHERE seq > 16");
}

#[test]
fn an_edited_record_is_found() {
    found(
        "UPDATE sandbox_execs SET record = replace(record, 'succeeded', 'failed') WHERE opened_seq = 7",
    );
}

#[test]
fn a_deleted_record_is_found() {
    found("DELETE FROM sandbox_execs WHERE opened_seq = 7");
}

#[test]
fn a_record_that_no_entry_opened_is_found() {
    found(
        "INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record)
         SELECT space_id, 'e_00000000000000000000000000000000', owner_id, 99, 100, closed_hash, record
         FROM sandbox_execs WHERE opened_seq = 7",
    );
}

/// The tail, its rows, and the head put back as it was signed at the time: without a receipt that is
/// a ledger that simply ends earlier.
#[test]
fn a_ledger_put_back_to_an_older_state_is_found_by_a_receipt() {
    let bench = Bench::new();
    bench.run(&[], &["true"]).assert_code(0);
    let database = bench.state().join("glovebox.db");
    Connection::open(&database)
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let old = std::fs::read(&database).unwrap();
    let record = bench.record(0, &[], &["true"]);
    let receipt: ReceiptRef = serde_json::from_value(record["receipt"].clone()).unwrap();
    bench.assert_sound(std::slice::from_ref(&receipt));

    for name in ["glovebox.db-wal", "glovebox.db-shm"] {
        let _ = std::fs::remove_file(bench.state().join(name));
    }
    std::fs::write(&database, old).unwrap();
    bench.assert_sound(&[]);
    let verification = bench.verify(std::slice::from_ref(&receipt));
    assert!(!verification.is_sound(), "the receipt proves the cut");
}

#[test]
fn the_receipt_of_every_run_holds_and_a_forged_one_does_not() {
    let (bench, receipts) = ten_runs();
    bench.assert_sound(&receipts);
    let mut forged = receipts[3].clone();
    let first = if forged.hash.starts_with('0') {
        "1"
    } else {
        "0"
    };
    forged.hash.replace_range(..1, first);
    assert!(!bench.verify(&[forged]).is_sound());
}

/// A head that does not fit the ledger stops the next run: nothing is appended to a broken chain.
#[test]
fn nothing_runs_on_a_ledger_whose_head_is_forged() {
    let (bench, _) = ten_runs();
    database(&bench)
        .execute_batch("UPDATE ledger_heads SET hash = zeroblob(32)")
        .unwrap();
    let ended = bench.run(&[], &["sh", "-c", ": > ran"]);
    assert_ne!(ended.code(), Some(0));
    ended.assert_says(&["error["]);
    assert!(!bench.mark("ran").exists(), "it ran: {}", ended.stderr());
    bench.assert_nothing_left();
}
