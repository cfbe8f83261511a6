//! What is done to a sandbox that stands already, left out one at a time: the tests of such sandboxes
//! must notice each.

use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Server, Start, Trial, python, wait_until};

/// A way to see that something is missing.
type Observe = fn(&Server) -> Value;

const PARTS: &[(&str, Observe)] = &[
    ("sweep", left_behind),
    ("detach", left_behind),
    ("attach ReadOnly", attached),
    ("attach NoSuid", attached),
    ("attach NoDev", attached),
];

fn serve(trial: &Trial, part: &str) -> Server {
    let config = trial.home().join("config.toml");
    std::fs::write(
        &config,
        "[pool]\nmin = 1\npython = 0\nmax = 2\nacquire_timeout = \"20s\"\n",
    )
    .unwrap();
    Start::default()
        .with(["--config", &config.to_string_lossy()])
        .outside("GLOVEBOX_MUTATION", part)
        .on(trial)
}

/// What an exec finds of the one before it in a sandbox that is kept.
fn left_behind(server: &Server) -> Value {
    let exec = |code: &str| {
        let answer = server.exec(&json!({
            "project_id": "p", "sandbox": {"lifetime": "agent"}, "task_ref": {"agent_id": "a"},
            "policy_overrides": {"pids": 64, "timeout": "60s"},
            "exec": {"kind": "argv", "command": python(), "args": ["-c", code]},
        }));
        answer.json()
    };
    exec(include_str!("leave.py"));
    let said = exec(include_str!("look.py"));
    let found: Value =
        serde_json::from_str(said["stdout"].as_str().unwrap_or("")).unwrap_or(Value::Null);
    // Numbers and ids are others each time; that there are any is what counts.
    json!({"status": said["status"], "clean": found == json!([])})
}

/// How the directories of an exec are mounted in a sandbox that was made before it.
fn attached(server: &Server) -> Value {
    let body = json!({"project_id": "p", "policy_overrides": {"pids": 64}, "exec":
        {"kind": "argv", "command": python(), "args": ["-c", include_str!("seen.py")]}});
    let hits = || {
        server.client().get("/v1/pool").json()["hits"]
            .as_u64()
            .unwrap_or(0)
    };
    let mut said = Value::Null;
    let came = wait_until(Duration::from_secs(60), || {
        let before = hits();
        said = server.exec(&body).json();
        hits() > before
    });
    assert!(came, "it was never warm");
    let seen: Value = serde_json::from_str(said["stdout"].as_str().unwrap()).unwrap();
    let mounts = seen["mounts"].as_array().unwrap().iter();
    mounts
        .filter(|it| {
            it[0]
                .as_str()
                .is_some_and(|it| it.starts_with("/workspace/"))
        })
        .cloned()
        .collect::<Vec<_>>()
        .into()
}

#[test]
fn a_removed_step_of_a_sandbox_that_stands_is_noticed() {
    let observe = |part: &str, way: Observe| {
        let trial = Trial::new(Caller::Root).unwrap();
        let server = serve(&trial, part);
        let seen = way(&server);
        assert_eq!(server.stop(), 0);
        trial.end();
        seen
    };
    let (clean, mounted) = (observe("", left_behind), observe("", attached));
    assert_eq!(clean, json!({"status": "succeeded", "clean": true}));
    assert_eq!(mounted.as_array().map(Vec::len), Some(3), "{mounted}");
    for (part, way) in PARTS {
        let seen = observe(part, *way);
        let intact = if seen.is_array() { &mounted } else { &clean };
        println!("{part:<16} {seen}");
        assert_ne!(&seen, intact, "nobody notices that `{part}` is missing");
    }
}
