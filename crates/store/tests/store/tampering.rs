//! Every way to change a ledger behind its back is found, and the place is named.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

use crate::common::{Fixture, copy_state, ended, fixture, on_both_databases, run_one, running};
use glovebox_model::{Code, ReceiptRef, SpaceId, Status};
use glovebox_store::{
    Checkpoint, Expectations, ExportFormat, StateDir, Store, Verification, verify_export,
};

/// Five closed execs (entries 1 to 10), one that is still open (11) and one refused (12).
struct Ledger {
    it: Fixture,
    receipts: Vec<ReceiptRef>,
}

fn ledger(it: Fixture) -> Ledger {
    let receipts = (0..5)
        .map(|_| run_one(&it.store).receipt.unwrap())
        .collect();
    let _open = it.store.plan("owner", &running()).unwrap();
    it.store
        .refuse(ended(running(), Status::PolicyDenied))
        .unwrap();
    Ledger { it, receipts }
}

const TABLES: [&str; 5] = [
    "sandbox_execs",
    "ledger_entries",
    "ledger_terms",
    "ledger_heads",
    "ledger_checkpoints",
];

impl Ledger {
    /// What verification says after somebody with full access to the database did this.
    fn after(&self, tamper: &str) -> Verification {
        let verify = |it: &Fixture| {
            assert!(it.execute(tamper) > 0, "changes nothing: {tamper}");
            let space = SpaceId::local();
            it.open_again().verify(&space, &Expectations::default())
        };
        if self.it.shared.is_none() {
            let copy = self.it.copy();
            copy.drop_triggers();
            return verify(&copy).unwrap();
        }
        // A copy of a whole database takes long; the tables are put back instead.
        self.it.execute(&format!(
            "DROP SCHEMA IF EXISTS saved CASCADE; CREATE SCHEMA saved; {}",
            TABLES
                .map(|name| format!("CREATE TABLE saved.{name} AS TABLE {name};"))
                .concat()
        ));
        self.it.set_triggers(false);
        let verification = verify(&self.it);
        self.it.execute(
            &TABLES
                .map(|name| format!("TRUNCATE {name}; INSERT INTO {name} TABLE saved.{name};"))
                .concat(),
        );
        self.it.set_triggers(true);
        verification.unwrap()
    }

    fn assert_found(&self, tamper: &str, at: u64, says: &str) {
        let verification = self.after(tamper);
        let found = verification
            .problems
            .iter()
            .any(|problem| problem.seq == Some(at) && problem.what.contains(says));
        assert!(
            found,
            "{tamper}\nexpected `{says}` at {at}: {verification:#?}"
        );
    }
}

on_both_databases! {
    an_untouched_ledger_is_sound,
    an_edit_of_any_column_of_an_entry_is_found,
    deleted_reordered_and_renumbered_entries_are_found,
    a_cut_tail_is_found_by_the_signed_head,
    a_forged_head_is_found,
    an_edited_or_deleted_exec_row_is_found,
    a_changed_index_is_found,
    only_a_receipt_or_an_outside_checkpoint_proves_a_rewrite_with_the_key,
    an_export_verifies_without_the_database,
    a_changed_export_is_found,
    checkpoints_are_kept_and_their_loss_is_found,
    the_ledger_refuses_casual_edits,
    an_empty_ledger_exports_and_verifies,
    the_documented_recipe_verifies_an_export,
    nothing_is_appended_to_a_ledger_that_was_tampered_with,
}

fn an_untouched_ledger_is_sound(it: Fixture) {
    let ledger = ledger(it);
    let verification = ledger.it.verify();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 12);
    assert_eq!(verification.head.unwrap().seq, 12);
    let copied = ledger.after("CREATE TABLE x (a TEXT); INSERT INTO x VALUES ('1'); DROP TABLE x;");
    assert!(copied.is_sound(), "the copy itself is sound: {copied:?}");
}

fn an_edit_of_any_column_of_an_entry_is_found(it: Fixture) {
    let ledger = ledger(it);
    let edits = [
        ("at", "at + 1"),
        ("kind", "'refused'"),
        ("exec_id", "'e_00000000000040008000000000000000'"),
        ("ids", r#"'{"task_id":"forged"}'"#),
        ("tags", r#"'["status:failed"]'"#),
        (
            "body",
            "replace(body, '\"exit_code\":0', '\"exit_code\":1')",
        ),
        ("body", "body || ' '"),
        ("body", "'not json'"),
        ("hash", "zeroblob(32)"),
        ("hash", "zeroblob(0)"),
    ];
    for (column, value) in edits {
        let edit = format!("UPDATE ledger_entries SET {column} = {value} WHERE seq = 4");
        ledger.assert_found(&edit, 4, "entry was edited");
    }
    let edit = "UPDATE ledger_entries SET prev_hash = zeroblob(32) WHERE seq = 4";
    ledger.assert_found(edit, 4, "does not follow");
    let edit = "UPDATE ledger_entries SET space_id = 'other' WHERE seq = 4";
    ledger.assert_found(edit, 4, "entry 4 is missing");
}

fn deleted_reordered_and_renumbered_entries_are_found(it: Fixture) {
    let ledger = ledger(it);
    ledger.assert_found(
        "DELETE FROM ledger_entries WHERE seq = 4",
        4,
        "entry 4 is missing",
    );
    ledger.assert_found(
        "DELETE FROM ledger_entries WHERE seq = 1",
        1,
        "entry 1 is missing",
    );
    ledger.assert_found(
        "DELETE FROM ledger_entries WHERE seq IN (4, 5, 6)",
        4,
        "entries 4 to 6 are missing",
    );
    let swap = "UPDATE ledger_entries SET seq = 100 WHERE seq = 3;
        UPDATE ledger_entries SET seq = 3 WHERE seq = 4;
        UPDATE ledger_entries SET seq = 4 WHERE seq = 100;";
    ledger.assert_found(swap, 3, "entry was edited");
    ledger.assert_found(swap, 4, "entry was edited");
    let close_gap = "DELETE FROM ledger_entries WHERE seq = 4;
        UPDATE ledger_entries SET seq = seq - 1 WHERE seq > 4;";
    ledger.assert_found(close_gap, 4, "entry was edited");
    let number = "UPDATE ledger_entries SET seq = -4 WHERE seq = 4";
    ledger.assert_found(number, 4, "entry was edited");
}

fn a_cut_tail_is_found_by_the_signed_head(it: Fixture) {
    let ledger = ledger(it);
    let cut = "DELETE FROM ledger_entries WHERE seq > 8;
        DELETE FROM ledger_terms WHERE seq > 8;
        DELETE FROM sandbox_execs WHERE opened_seq > 8;";
    ledger.assert_found(cut, 12, "the head names entry 12");
    let moved = format!(
        "{cut} UPDATE ledger_heads SET seq = 8,
         hash = (SELECT hash FROM ledger_entries WHERE seq = 8)"
    );
    ledger.assert_found(&moved, 8, "the head is not signed");
    ledger.assert_found(
        &format!("{cut} DELETE FROM ledger_heads"),
        8,
        "no signed head",
    );
}

fn a_forged_head_is_found(it: Fixture) {
    let ledger = ledger(it);
    for edit in [
        "signature = zeroblob(64)",
        "signature = zeroblob(3)",
        "public_key = zeroblob(32)",
        "seq = 13",
        "seq = -12",
        "hash = zeroblob(32)",
    ] {
        let verification = ledger.after(&format!("UPDATE ledger_heads SET {edit}"));
        assert!(!verification.is_sound(), "{edit}");
        let says = |problem: &glovebox_store::Problem| problem.what.contains("not signed");
        assert!(verification.problems.iter().any(says), "{verification:?}");
    }
}

fn an_edited_or_deleted_exec_row_is_found(it: Fixture) {
    let ledger = ledger(it);
    let record = |seq: u64| {
        format!(
            "UPDATE sandbox_execs SET record = replace(record, 'curl', 'true')
             WHERE opened_seq = {seq}"
        )
    };
    ledger.assert_found(&record(3), 4, "was edited");
    ledger.assert_found(&record(11), 11, "was edited");
    ledger.assert_found(&record(12), 12, "was edited");
    ledger.assert_found(
        "DELETE FROM sandbox_execs WHERE opened_seq = 3",
        3,
        "is missing",
    );
    ledger.assert_found(
        "DELETE FROM sandbox_execs WHERE opened_seq = 11",
        11,
        "is missing",
    );
    let edits = [
        ("owner_id = 'somebody'", 3, "another owner"),
        ("opened_seq = 1000", 3, "another opening entry"),
        ("opened_seq = 1000", 1000, "no entry opened it"),
        ("closed_seq = 6", 4, "another closing entry"),
        ("closed_hash = zeroblob(32)", 4, "another closing entry"),
        (
            "closed_seq = NULL, closed_hash = NULL",
            4,
            "another closing entry",
        ),
        (
            "exec_id = 'e_00000000000040008000000000000000'",
            3,
            "is missing",
        ),
        ("space_id = 'other'", 3, "is missing"),
    ];
    for (edit, at, says) in edits {
        let edit = format!("UPDATE sandbox_execs SET {edit} WHERE opened_seq = 3");
        ledger.assert_found(&edit, at, says);
    }
    let closed = "UPDATE sandbox_execs SET closed_seq = 99, closed_hash = zeroblob(32)
        WHERE opened_seq = 11";
    ledger.assert_found(closed, 99, "no entry closed it");
    let status = match ledger.it.shared {
        Some(_) => ", status",
        None => "",
    };
    let invented = format!(
        "INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, record{status})
         SELECT space_id, 'e_00000000000040008000000000000000', owner_id, 77, record{status}
         FROM sandbox_execs LIMIT 1"
    );
    ledger.assert_found(&invented, 77, "no entry opened it");
}

fn a_changed_index_is_found(it: Fixture) {
    // So that it reaches up to entry 64, and not to the last.
    (0..30).for_each(|_| drop(run_one(&it.store)));
    let ledger = ledger(it);
    let hidden = "DELETE FROM ledger_terms WHERE seq = 4 AND term = 'kind=outcome'";
    ledger.assert_found(hidden, 4, "missing from the index");
    let invented =
        "INSERT INTO ledger_terms VALUES ('local', 'kind=outcome', 1, 3), ('local', 'x', 1, 3)";
    let verification = ledger.after(invented);
    assert_eq!(verification.problems.len(), 1, "{verification:?}");
    assert!(verification.problems[0].what.contains("index"));
    let ahead = "INSERT INTO ledger_terms VALUES ('local', 'kind=outcome', 1, 66)";
    assert_eq!(ledger.after(ahead).problems.len(), 1);
}

fn checkpoints_are_kept_and_their_loss_is_found(it: Fixture) {
    for _ in 0..257 {
        run_one(&it.store);
    }
    let verification = it.verify();
    assert!(verification.is_sound(), "{verification:?}");
    let kept = it.texts("SELECT CAST(seq AS TEXT) FROM ledger_checkpoints ORDER BY seq");
    assert_eq!(kept, ["256", "512"]);
    let ledger = Ledger {
        it,
        receipts: Vec::new(),
    };
    let edits = [
        (
            "DELETE FROM ledger_checkpoints WHERE seq = 256",
            256,
            "missing",
        ),
        (
            "DELETE FROM ledger_checkpoints WHERE seq = 512",
            512,
            "missing",
        ),
        (
            "UPDATE ledger_checkpoints SET signature = zeroblob(64) WHERE seq = 256",
            256,
            "not signed",
        ),
        (
            "UPDATE ledger_checkpoints SET hash = zeroblob(32) WHERE seq = 256",
            256,
            "another entry",
        ),
        (
            "UPDATE ledger_checkpoints SET seq = 300 WHERE seq = 256",
            300,
            "where none is made",
        ),
        (
            "UPDATE ledger_checkpoints SET seq = 300 WHERE seq = 256",
            256,
            "missing",
        ),
    ];
    for (edit, at, says) in edits {
        ledger.assert_found(edit, at, says);
    }
    // The kept checkpoint of entry 256 is signed by the true key, and is still not a head. Who forgets
    // where the chain was has only that to go by.
    let kept = match ledger.it.shared {
        Some(_) => "ledger.shared.head",
        None => "ledger.head",
    };
    std::fs::remove_file(ledger.it.state.path().join(kept)).unwrap();
    let passed_off = "DELETE FROM ledger_entries WHERE seq > 256;
        UPDATE ledger_heads SET seq = 256,
            hash = (SELECT hash FROM ledger_checkpoints WHERE seq = 256),
            signature = (SELECT signature FROM ledger_checkpoints WHERE seq = 256);";
    ledger.assert_found(passed_off, 256, "the head is not signed");
}

fn nothing_is_appended_to_a_ledger_that_was_tampered_with(it: Fixture) {
    run_one(&it.store);
    run_one(&it.store);
    let tampers = [
        "UPDATE ledger_heads SET seq = 2, hash = (SELECT hash FROM ledger_entries WHERE seq = 2)",
        "UPDATE ledger_heads SET signature = zeroblob(64)",
        "DELETE FROM ledger_heads",
    ];
    for tamper in tampers {
        let it = it.copy();
        it.execute(tamper);
        let later = it.open_again();
        let error = later.plan("o", &running()).unwrap_err();
        assert_eq!(error.code, Code::LedgerTampered, "{tamper}: {error}");
        assert!(!error.hints.is_empty());
        assert!(
            later
                .export(&SpaceId::local(), ExportFormat::Jsonl, &mut Vec::new())
                .is_err()
        );
        let vouched = later.checkpoint(&SpaceId::local());
        assert_eq!(vouched.unwrap_err().code, Code::LedgerTampered, "{tamper}");
        assert_eq!(it.verify().entries, 4, "{tamper}");
    }
}

#[test]
fn a_process_that_saw_more_notices_an_old_copy() {
    let it = fixture();
    run_one(&it.store);
    let old = it.dir.path().join("old");
    copy_state(it.state.path(), &old);
    run_one(&it.store);
    // The old rows with their old, truly signed head.
    it.drop_triggers();
    it.execute(&format!(
        "ATTACH '{}' AS old;
             DELETE FROM ledger_entries WHERE seq > 2; DELETE FROM ledger_terms WHERE seq > 2;
             DELETE FROM sandbox_execs WHERE opened_seq > 2;
             DELETE FROM ledger_heads; INSERT INTO ledger_heads SELECT * FROM old.ledger_heads;",
        old.join("glovebox.db").display()
    ));
    assert!(it.verify().is_sound(), "nothing inside can tell");
    let error = it.store.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
}

#[test]
fn a_missing_or_foreign_key_stops_writing_and_is_found() {
    let it = fixture();
    run_one(&it.store);
    let key = it.state.ledger_key();
    let aside = it.dir.path().join("aside");
    std::fs::rename(&key, &aside).unwrap();
    let later = Store::open(&it.state).unwrap();
    let error = later.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
    assert!(!key.exists(), "no new key is made over an old ledger");
    let problems = it.verify().problems;
    assert!(
        problems[0].what.contains("`ledger.key` is missing"),
        "{problems:?}"
    );

    let stranger = fixture();
    run_one(&stranger.store);
    std::fs::copy(stranger.state.ledger_key(), &key).unwrap();
    let error = later.plan("o", &running()).unwrap_err();
    assert_eq!(error.code, Code::LedgerTampered);
    let problems = it.verify().problems;
    assert!(
        problems[0].what.contains("not signed by `ledger.key`"),
        "{problems:?}"
    );
}

fn the_ledger_refuses_casual_edits(it: Fixture) {
    run_one(&it.store);
    for edit in [
        "UPDATE ledger_entries SET kind = 'x'",
        "DELETE FROM ledger_entries",
    ] {
        let error = it.try_execute(edit).unwrap_err();
        assert!(error.contains("append-only"), "{error}");
    }
}

fn export(store: &Store) -> Vec<u8> {
    let mut out = Vec::new();
    store
        .export(&SpaceId::local(), ExportFormat::Jsonl, &mut out)
        .unwrap();
    out
}

fn last_line_checkpoint(export: &[u8]) -> Checkpoint {
    let text = String::from_utf8(export.to_vec()).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn only_a_receipt_or_an_outside_checkpoint_proves_a_rewrite_with_the_key(it: Fixture) {
    let ledger = ledger(it);
    let checkpoint = last_line_checkpoint(&export(&ledger.it.store));
    let receipt = ledger.receipts[3].clone();

    // The owner of the key writes another history of the same length.
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("rewritten")).unwrap();
    let state = state.with_keys(ledger.it.state.path()).unwrap();
    let store = Store::open(&state).unwrap();
    for _ in 0..6 {
        run_one(&store);
    }
    let verify = |store: &Store, receipts: Vec<ReceiptRef>, checkpoint: Option<Checkpoint>| {
        let expectations = Expectations {
            receipts,
            checkpoints: checkpoint.into_iter().collect(),
            ..Expectations::default()
        };
        store.verify(&SpaceId::local(), &expectations).unwrap()
    };
    assert!(
        verify(&store, Vec::new(), None).is_sound(),
        "nothing inside can tell"
    );
    let by_receipt = verify(&store, vec![receipt.clone()], None);
    assert_eq!(by_receipt.problems.len(), 1, "{by_receipt:?}");
    assert_eq!(by_receipt.problems[0].seq, Some(receipt.seq));
    let by_checkpoint = verify(&store, Vec::new(), Some(checkpoint.clone()));
    assert_eq!(by_checkpoint.problems.len(), 1, "{by_checkpoint:?}");
    assert_eq!(by_checkpoint.problems[0].seq, Some(12));

    // The true ledger meets all of them, also after it has grown.
    run_one(&ledger.it.store);
    let all = verify(
        &ledger.it.store,
        ledger.receipts.clone(),
        Some(checkpoint.clone()),
    );
    assert!(all.is_sound(), "{all:?}");

    // A shorter one does not have the entry at all.
    let short = fixture();
    let missing = verify(&short.store, vec![receipt], None);
    assert!(
        missing.problems[0].what.contains("not there"),
        "{missing:?}"
    );
    run_one(&short.store);
    let foreign = verify(&short.store, Vec::new(), Some(checkpoint.clone()));
    assert!(
        foreign
            .problems
            .iter()
            .any(|problem| problem.what.contains("another key"))
    );

    let mut forged = checkpoint;
    forged.seq = 2;
    let forged = verify(&ledger.it.store, Vec::new(), Some(forged));
    assert!(forged.problems[0].what.contains("not signed"), "{forged:?}");
}

fn an_export_verifies_without_the_database(it: Fixture) {
    let ledger = ledger(it);
    let bytes = export(&ledger.it.store);
    let expectations = Expectations {
        receipts: ledger.receipts.clone(),
        checkpoints: vec![last_line_checkpoint(&bytes)],
        public_key: Some(last_line_checkpoint(&bytes).public_key),
        ..Expectations::default()
    };
    drop(ledger);
    let verification = verify_export(Cursor::new(&bytes), &expectations).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 12);

    let wrong_key = Expectations {
        public_key: Some("00".repeat(32)),
        ..Expectations::default()
    };
    let verification = verify_export(Cursor::new(&bytes), &wrong_key).unwrap();
    assert!(verification.problems[0].what.contains("another key"));
}

/// What `LEDGER.md` tells others to do works.
fn the_documented_recipe_verifies_an_export(it: Fixture) {
    let document = include_str!("../../LEDGER.md");
    let (_, recipe) = document.split_once("```python\n").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let ledger = ledger(it);
    let mut record = running();
    record.ids.task_id = Some("é \"quoted\" \n \u{1f} / \u{7f} 😀".to_owned());
    crate::common::run(&ledger.it.store, record);
    let exported = export(&ledger.it.store);
    let python = |input: &[u8]| {
        let mut child = Command::new("python3")
            .args(["-c", recipe])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        child.stdin.take().unwrap().write_all(input).unwrap();
        Some(child.wait_with_output().unwrap())
    };
    let Some(sound) = python(&exported) else {
        return; // No Python here.
    };
    assert!(sound.status.success());
    assert_eq!(sound.stdout, b"14 entries\n");
    let text = String::from_utf8(exported).unwrap();
    let edited = text.replacen("\"exit_code\":0", "\"exit_code\":1", 1);
    assert!(!python(edited.as_bytes()).unwrap().status.success());
}

fn an_empty_ledger_exports_and_verifies(it: Fixture) {
    let bytes = export(&it.store);
    let verification = verify_export(Cursor::new(&bytes), &Expectations::default()).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!((verification.entries, verification.head), (0, None));
    assert!(it.verify().is_sound());
}

fn a_changed_export_is_found(it: Fixture) {
    let ledger = ledger(it);
    let text = String::from_utf8(export(&ledger.it.store)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The lines of entries, by their numbers.
    let entry = |seq: usize| {
        let of = |line: &&str| line.starts_with("{\"type\":\"entry\"");
        let mut entries = lines.iter().enumerate().filter(|(_, line)| of(line));
        entries.nth(seq - 1).unwrap().0
    };
    let without = |dropped: &[usize]| -> String {
        let kept: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(index, _)| !dropped.contains(index))
            .map(|(_, line)| *line)
            .collect();
        kept.join("\n")
    };
    let end = lines.len() - 1;
    let tail: Vec<usize> = (entry(10)..end).collect();
    let swapped = {
        let mut lines = lines.clone();
        lines.swap(entry(3), entry(4));
        lines.join("\n")
    };
    let fourth = lines[entry(4)];
    let edited = |from: &str, to: &str| {
        assert!(fourth.contains(from), "{fourth}");
        text.replacen(fourth, &fourth.replacen(from, to, 1), 1)
    };
    let row = lines[entry(4) - 1];
    assert!(row.starts_with("{\"type\":\"exec\""), "{row}");
    let cases = [
        ("an entry is gone", without(&[entry(4)])),
        ("the first is gone", without(&[entry(1)])),
        ("the tail is gone", without(&tail)),
        (
            "the tail and the checkpoint are gone",
            without(&[tail.clone(), vec![end]].concat()),
        ),
        ("only the checkpoint is gone", without(&[end])),
        ("the row of an exec is gone", without(&[entry(4) - 1])),
        (
            "the row of an exec was edited",
            text.replacen(row, &row.replacen("\"owner\":\"", "\"owner\":\"x", 1), 1),
        ),
        ("two are swapped", swapped),
        ("kind", edited("\"outcome\"", "\"refused\"")),
        ("body", edited("\"exit_code\":0", "\"exit_code\":1")),
        ("time", edited("Z\"", "1Z\"")),
        ("exec", edited("e_", "e_0")),
        ("hash", edited("\"hash\":\"", "\"hash\":\"0")),
        (
            "an unknown field",
            edited("{\"", "{\"note\":\"all is well\",\""),
        ),
        ("a line after the end", format!("{text}{fourth}")),
        ("not JSON", text.replacen(fourth, "}{", 1)),
    ];
    for (what, changed) in cases {
        let verification = verify_export(Cursor::new(&changed), &Expectations::default()).unwrap();
        assert!(!verification.is_sound(), "{what}");
    }
    for (what, changed) in [
        ("empty", String::new()),
        ("no header", without(&[0])),
        (
            "another version",
            text.replacen("\"version\":2", "\"version\":3", 1),
        ),
        (
            "an older version",
            text.replacen("\"version\":2", "\"version\":1", 1),
        ),
    ] {
        let error = verify_export(Cursor::new(&changed), &Expectations::default()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{what}");
    }
}
