//! What the host shows of our own processes while a secret is in use: not the secret.

use std::fs;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use support::{Caller, Gate, Start, Trial, wait_until};

use crate::canary::{grant, order};
use crate::ground::Ground;

/// Of this test alone: it looks at everything that runs.
const VALUE: &str = "prcs-8Zq1xWv7Tn4Lk2Rd";

/// Processes whose environment or arguments have it: their names, and whether they are in a sandbox.
fn showing() -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let shown = ["environ", "cmdline"].map(|it| fs::read(path.join(it)).unwrap_or_default());
        let has = |bytes: &Vec<u8>| {
            bytes
                .windows(VALUE.len())
                .any(|part| part == VALUE.as_bytes())
        };
        if !shown.iter().any(has) {
            continue;
        }
        // One that ended meanwhile cannot be asked where it was.
        let Ok(status) = fs::read_to_string(path.join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        // Everybody but the first of it: that one is ours.
        let inside = field("NSpid:").split_whitespace().count() > 1
            && field("NSpid:").split_whitespace().last() != Some("1");
        found.push((field("Name:"), inside));
    }
    found
}

#[test]
fn no_process_of_ours_shows_a_secret() {
    let ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = Start::default()
        .outside("GLOVEBOX_CONFIG", ground.config.to_string_lossy())
        .on(&ground.trial);
    let client = server.client();
    let secret = json!({
        "value_base64": STANDARD.encode(VALUE),
        "hosts": [ground.fill("ok.test:TLS")],
        "deliveries": ["file", "descriptor", "broker", "env"],
    });
    let set = client.send("PUT", "/v1/secrets/canary", Some(&secret));
    assert_eq!(set.status, 200, "{}", set.text());
    grant(&client);
    for (delivery, name) in [
        ("file", "one"),
        ("descriptor", "two"),
        ("broker", "three"),
        ("env", "four"),
    ] {
        let gate = Gate::new(&ground.trial, name);
        let script = format!("touch here-{name}; {}", gate.wait());
        let exec = client.begin(&order(&["/bin/sh", "-c", &script], delivery));
        let is_there = || gate.file(&format!("here-{name}")).is_some();
        assert!(wait_until(Duration::from_secs(60), is_there));
        let shown = showing();
        match delivery {
            // There it is the program's own, and nobody else's.
            "env" => {
                assert!(!shown.is_empty(), "nobody looked");
                assert!(shown.iter().all(|(_, inside)| *inside), "{shown:?}");
            }
            _ => assert_eq!(shown, [], "{delivery}"),
        }
        gate.open();
        let record = client.ended(&exec);
        assert_eq!(record["status"], "succeeded", "{record}");
    }
    assert_eq!(server.stop(), 0);
    ground.end();
}

/// The soft limit; none of a process that has ended.
fn core_limit(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let mut lines = text.lines();
    let limits = lines.find_map(|line| line.strip_prefix("Max core file size"))?;
    limits.split_whitespace().next().map(str::to_owned)
}

#[test]
fn no_core_is_written() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let script = "ulimit -Sc; ulimit -Hc; ulimit -c unlimited 2>/dev/null && echo raised; true";
    // Whoever starts it may have allowed cores.
    let outcome = trial
        .run(["/bin/sh", "-c", script])
        .through(["prlimit", "--core=unlimited:unlimited"])
        .json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "0\n0\n");
    let server = Start::default().on(&trial);
    assert_eq!(core_limit(server.pid()).as_deref(), Some("0"));
    let mut found: Vec<String> = Vec::new();
    let looked = wait_until(Duration::from_secs(60), || {
        let below = Command::new("pgrep")
            .args(["-P", &server.pid().to_string()])
            .output()
            .unwrap();
        let below = String::from_utf8(below.stdout).unwrap();
        let pids = below.lines().map(|it| it.parse().unwrap());
        found = pids.filter_map(core_limit).collect();
        !found.is_empty()
    });
    assert!(looked, "it started nobody");
    assert!(found.iter().all(|limit| limit == "0"), "{found:?}");
    assert_eq!(server.stop(), 0);
    trial.end();
}
