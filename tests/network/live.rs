//! The log of a network while its exec still runs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Gate, Start};

use crate::ground::{Ground, UNAWARE};

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of a command as they come, until it ends.
fn lines(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// Goes on to the first attempt that fits.
#[track_caller]
fn next(lines: &Receiver<String>, host: &str, code: &str) -> Value {
    let mut others = Vec::new();
    loop {
        let line = lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|_| panic!("no {code} of {host}: {others:?}"));
        let attempt: Value = serde_json::from_str(&line).unwrap();
        if attempt["host"] == host && attempt["code"] == code {
            return attempt;
        }
        others.push(attempt);
    }
}

#[test]
fn attempts_are_told_while_the_exec_still_runs() {
    let ground = Ground::new(Caller::Root, "", "").unwrap();
    let server = Start::default()
        .outside("GLOVEBOX_CONFIG", ground.config.to_string_lossy())
        .on(&ground.trial);
    let client = server.client();
    let gates = ["first", "second"].map(|name| Gate::new(&ground.trial, name));
    let script = ground.fill(&format!(
        "{UNAWARE}curl -sS --max-time 20 http://ok.test:HTTP/hello\n{}\n\
         curl -s --max-time 20 http://other.test:HTTP/hello\n{}",
        gates[0].wait(),
        gates[1].wait()
    ));
    let exec = client.begin(&json!({
        "project_id": "p",
        "exec": {"kind": "argv", "command": "/bin/sh", "args": ["-c", script]},
        "policy_overrides": {"network": "allowlist", "timeout": "5m"},
    }));
    let address = format!("http://{}", server.address);
    let words = ["logs", "--network", "--follow", "--json", &exec];
    let by_server = ["--server", &address];
    // Whoever has the state directory needs no server to read it.
    let mut followers: Vec<Child> = [&by_server[..], &[]]
        .iter()
        .map(|options| {
            let mut command = ground.glovebox();
            command.env("GLOVEBOX_TOKEN", &server.token);
            let command = command.args(*options).args(words);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let told: Vec<Receiver<String>> = followers.iter_mut().map(lines).collect();

    // A page waits for something new, and comes with it long before its time is over.
    let mut after = 0;
    let mut read = |host: &str, code: &str| {
        let (mut seen, since) = (Vec::new(), Instant::now());
        loop {
            let path = format!("/v1/execs/{exec}/network?after={after}&wait_ms=20000");
            let asked = Instant::now();
            let page = client.get(&path).json();
            assert!(page["next"].as_u64().unwrap() >= after, "{page}");
            assert_eq!(page["complete"], false, "{page}");
            after = page["next"].as_u64().unwrap();
            let attempts = page["attempts"].as_array().unwrap().clone();
            // An exec that is slow to start has nothing to tell in all that time.
            let waited = asked.elapsed() >= Duration::from_secs(19) && since.elapsed() < PATIENCE;
            assert!(!attempts.is_empty() || waited, "nothing came: {seen:?}");
            seen.extend(attempts);
            if seen
                .iter()
                .any(|it| it["host"] == host && it["code"] == code)
            {
                return seen;
            }
        }
    };
    let first = read("ok.test", "OK");
    for lines in &told {
        next(lines, "ok.test", "OK");
    }
    assert!(first.iter().all(|it| it["host"] == "ok.test"), "{first:?}");
    assert_eq!(client.record(&exec)["status"], "running");

    gates[0].open();
    // Nothing is told twice, but the end of what was let through before.
    let second = read("other.test", "NOT_IN_ALLOWLIST");
    assert!(
        second.iter().all(|it| !first.contains(it)),
        "{first:?} {second:?}"
    );
    for lines in &told {
        let refused = next(lines, "other.test", "NOT_IN_ALLOWLIST");
        assert!(refused["hint"].as_str().unwrap().contains("--ask"));
    }
    assert_eq!(client.record(&exec)["status"], "running");

    gates[1].open();
    client.ended(&exec);
    let path = format!("/v1/execs/{exec}/network?wait_ms=20000");
    let page = client.get(&path).json();
    assert_eq!(page["complete"], true, "{page}");
    assert!(page["attempts"].as_array().unwrap().len() >= first.len() + second.len());
    for (mut follower, lines) in followers.into_iter().zip(told) {
        assert!(follower.wait().unwrap().success());
        drop(lines);
    }
    assert_eq!(server.stop(), 0);
    ground.end();
}
