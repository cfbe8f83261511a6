//! The official Python clients, of both eras, over both ways.

use support::{McpTools, wait_until};

use crate::ground::{ASKING, Ground, Mode, Way};
use crate::wire::{LEGACY, MODERN};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Everything that `clients.py` does, and what it left behind.
fn once_through(way: Way, mode: Mode, version: &str) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let ground = Ground::new(way, ASKING);
    let report = ground.script(&tools, "clients", mode);
    assert_eq!(report["version"], version, "{report}");
    let named = |name: &str| ground.work().join(name).exists();
    assert!(named("agreed"), "what a person agreed to did not happen");
    assert!(
        !named("denied") && !named("waits"),
        "something happened that was not agreed to"
    );
    assert!(named("notes/a.txt"), "a file that was written is not there");
    // The program whose call was called off was stopped, and its record says so.
    let is_recorded = wait_until(PATIENCE, || {
        let sleeps = |it: &serde_json::Value| it.to_string().contains("sleep(600)");
        let execs = ground.execs();
        let slept = execs.iter().find(|it| sleeps(it));
        slept.is_some_and(|it| it["status"] == "canceled")
    });
    assert!(is_recorded, "{:#?}", ground.execs());
    if way == Way::Http {
        assert_agreed_by_a_person(&ground);
    }
    ground.end();
}

/// Who agreed is on record, and is not the agent.
fn assert_agreed_by_a_person(ground: &Ground) {
    let execs = ground.execs();
    let touched = execs
        .iter()
        .find(|it| it["status"] == "succeeded" && it.to_string().contains("agreed"))
        .expect("what was agreed to");
    let exec = touched["exec_id"].as_str().expect("an id");
    let record = ground.client().record(exec);
    assert_eq!(record["consent"]["agreed"], "people", "{record}");
    let by = serde_json::json!(["a person at robot's host"]);
    assert_eq!(record["consent"]["by"], by, "{record}");
    let approval = record["consent"]["approval_id"].as_str().expect("an id");
    let approval = ground.client().get(&format!("/v1/approvals/{approval}"));
    assert!(
        approval.text().contains("elicitation"),
        "{}",
        approval.text()
    );
}

#[test]
fn the_first_era_over_stdio() {
    once_through(Way::Stdio, Mode::First, LEGACY);
}

#[test]
fn the_first_era_over_http() {
    once_through(Way::Http, Mode::First, LEGACY);
}

#[test]
fn today_over_stdio() {
    once_through(Way::Stdio, Mode::Auto, MODERN);
}

#[test]
fn today_over_http() {
    once_through(Way::Http, Mode::Auto, MODERN);
}

#[test]
fn today_with_the_old_handshake_over_stdio() {
    once_through(Way::Stdio, Mode::Legacy, LEGACY);
}

#[test]
fn today_with_the_old_handshake_over_http() {
    once_through(Way::Http, Mode::Legacy, LEGACY);
}

#[test]
fn today_without_finding_out_over_stdio() {
    once_through(Way::Stdio, Mode::Modern, MODERN);
}

#[test]
fn today_without_finding_out_over_http() {
    once_through(Way::Http, Mode::Modern, MODERN);
}
