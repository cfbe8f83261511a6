//! `snapshot_before` and `glovebox workspace undo`.

use support::Caller;

use crate::ground::{Ground, assert_same};

const ALWAYS: &str = "[workspace]\nsnapshot_before = \"safe\"\n";
const WIPE: &str = "rm -rf ./* ./.[!.]*";

fn everything_comes_back(caller: Caller) {
    let Some(ground) = Ground::new(caller, ALWAYS) else {
        return;
    };
    ground.plant();
    let first = ground.tree();
    let changed =
        "echo more >> src/main.py; rm nothing; mkdir made; echo x > made/x; chmod 700 tool";
    let record = ground.run(&[], changed);
    assert_eq!(record["status"], "succeeded", "{record}");
    assert!(record["snapshot_before"].is_string(), "{record}");
    let second = ground.tree();
    assert_ne!(first, second, "the exec changed nothing");
    let wiped = ground.run(&[], WIPE);
    assert_eq!(wiped["status"], "succeeded", "{wiped}");
    assert!(ground.tree().is_empty(), "something is left");

    let undone = ground.json(&["workspace", "undo"]);
    assert_eq!(undone["exec_id"], wiped["exec_id"], "{undone}");
    assert_same(&ground.tree(), &second, "undone once");
    let undone = ground.json(&["workspace", "undo"]);
    assert_eq!(undone["exec_id"], record["exec_id"], "{undone}");
    assert_same(&ground.tree(), &first, "undone twice");
    ground
        .glovebox(&["workspace", "undo"])
        .assert_refused("not_found");
    assert_same(&ground.tree(), &first, "refused");
    ground.trial.end();
}

#[test]
fn an_exec_that_deletes_everything_is_undone_and_so_is_the_one_before() {
    everything_comes_back(Caller::Root);
}

#[test]
fn an_ordinary_users_exec_that_deletes_everything_is_undone() {
    everything_comes_back(Caller::User);
}

#[test]
fn an_undo_is_undone_and_a_named_exec_takes_all_after_it_along() {
    let ground = Ground::root(ALWAYS);
    ground.plant();
    let first = ground.tree();
    let one = ground.run(&[], "echo 1 > one");
    ground.run(&[], "echo 2 > two");
    let last = ground.tree();
    let undone = ground.json(&["workspace", "undo", one["exec_id"].as_str().unwrap()]);
    assert_same(&ground.tree(), &first, "both are gone");
    let before = undone["before"].as_str().unwrap();
    ground.json(&["snapshot", "restore", before]);
    assert_same(&ground.tree(), &last, "both are back");
    ground.trial.end();
}

#[test]
fn without_the_setting_nothing_is_taken_and_the_refusal_says_the_way_out() {
    let ground = Ground::root("");
    ground.plant();
    let record = ground.run(&[], WIPE);
    assert!(record["snapshot_before"].is_null(), "{record}");
    let refused = ground.glovebox(&["workspace", "undo"]);
    refused.assert_refused("not_found");
    assert!(
        refused.stderr.contains("snapshot_before"),
        "{}",
        refused.stderr
    );
    ground.trial.end();
}

/// A snapshot that was promised and cannot be taken: the exec does not run.
#[test]
fn an_exec_whose_snapshot_cannot_be_taken_does_not_start() {
    let ground = Ground::root(&format!("{ALWAYS}snapshots_max_bytes = \"64K\"\n"));
    ground.plant();
    let before = ground.tree();
    let words = ["run", "--toolchain", "off", "--", "/bin/sh", "-c", WIPE];
    let refused = ground.glovebox(&words);
    assert_eq!(refused.code, 125, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("\nhint: "), "{}", refused.stderr);
    assert_same(&ground.tree(), &before, "nothing ran");
    ground.trial.end();
}
