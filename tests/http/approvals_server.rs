//! What a server itself does where people are asked.

use std::fs;

use serde_json::{Value, json};
use support::with;

use crate::approvals_ground::{House, MANUAL};

fn touch(name: &str) -> Value {
    json!({"project_id": "p", "exec": {"kind": "argv", "command": "touch", "args": [name]}})
}

#[test]
fn a_probe_asks_nobody() {
    let house = House::open(MANUAL);
    let health = house.admin().get("/sandbox/health?probe=true").json();
    assert_eq!(health["status"], "ok", "{health}");
    let asked = house.ann.get("/v1/approvals").json();
    assert_eq!(asked["items"], json!([]), "{asked}");
    house.close();
}

#[test]
fn approvals_that_answer_themselves_are_for_loopback_alone() {
    let trial = support::Trial::in_memory(support::Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    fs::write(&config, "[approvals]\nmode = \"manual\"\nauto = true\n").unwrap();
    let start = support::Start::default().outside("GLOVEBOX_CONFIG", config.to_str().unwrap());
    let refused = trial
        .glovebox()
        .env("GLOVEBOX_CONFIG", &config)
        .args(["serve", "--listen", "0.0.0.0:0", "--insecure-plain-http"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("approvals are automatic"), "{said}");
    let server = start.on(&trial);
    let ran = server.exec(&touch("auto"));
    assert_eq!(ran.status, 200, "{}", ran.text());
    assert_eq!(ran.json()["consent"]["agreed"], "automatic");
    let more = with(
        touch("auto"),
        json!({"on_exceed": "ask", "wait": false,
                                          "policy_overrides": {"memory": "2G"}}),
    );
    let asked = server.exec(&more);
    assert_eq!(
        asked.json()["status"],
        "awaiting_approval",
        "{}",
        asked.text()
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}
