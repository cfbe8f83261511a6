//! Stored secrets whose values stand where a record has no room for a marker.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::ground::{Ended, Ground};

fn set(ground: &Ground, name: &str, value: &str) -> Ended {
    let mut command = ground.command_in(&ground.work(), &["secret", "set", name]);
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(value.as_bytes()).unwrap();
    drop(stdin);
    Ended::of(child.wait_with_output().unwrap())
}

#[test]
fn a_secret_that_is_a_word_of_records_is_refused() {
    let ground = Ground::root("");
    for word in ["succeeded", "allowlist", "egress_only", "stdout_bytes"] {
        set(&ground, "s", word).assert_refused("invalid_argument");
    }
    ground.end();
}

/// The day stands in every record, as a time, which has no room for a marker.
#[test]
fn whatever_ran_has_its_record_even_if_a_secret_stands_in_its_ids_and_times() {
    let ground = Ground::root("");
    let first = ground.run(&[], "true");
    first.expect("succeeded", 0);
    let day = &first.record["started_at"].as_str().unwrap()[..8];
    let project = first.record["project_id"].as_str().unwrap();
    set(&ground, "day", day).assert_code(0);
    set(&ground, "project", project).assert_code(0);

    let ran = ground.run(&[], &format!("echo it is {day}"));
    ran.expect("succeeded", 0);
    assert_eq!(ran.record["stdout"], "it is [secret day]\n");
    assert_eq!(ran.record["args"][1], "echo it is [secret day]");
    assert!(ran.record["receipt"].is_object(), "{:#}", ran.record);
    let shown = ground.glovebox(&["--json", "show", ran.id()]);
    shown.assert_code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["started_at"], ran.record["started_at"]);
    assert!(!shown["args"].to_string().contains(day), "{shown:#}");
    ground.end();
}

#[test]
fn a_secret_in_a_name_that_is_no_text_is_hidden_and_the_changes_are_told() {
    let ground = Ground::root("");
    set(&ground, "pass", "xK9q2Lm8Rt4Vz7Wy").assert_code(0);
    let simulated = ground.simulate("touch plain \"$(printf 'a\\377xK9q2Lm8Rt%s' 4Vz7Wy)\"");
    simulated.expect("succeeded", 0);
    let changes = ground.glovebox(&["--json", "workspace", "changes", simulated.id()]);
    changes.assert_code(0);
    let effects = ground.effects(simulated.id());
    assert!(effects.len() >= 2, "{effects:?}");
    let hex: String = "xK9q2Lm8Rt4Vz7Wy"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mark: String = "[secret pass]"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(!changes.stdout.contains(&hex), "{}", changes.stdout);
    assert!(changes.stdout.contains(&mark), "{}", changes.stdout);
    ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    ground.end();
}
