//! Many execs of two spaces and two agents each, mixed, on one server that hands out warm and kept
//! sandboxes. Each leaves a canary wherever it can and looks for those of others.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, Start, Trial, python};

const HANDS: usize = 4;

/// More on request: `GLOVEBOX_TEST_CANARIES=5000`.
fn asked() -> Option<usize> {
    let asked = std::env::var("GLOVEBOX_TEST_CANARIES").ok();
    asked.and_then(|text| text.parse().ok())
}

/// Without a request it goes on for so long: many times what it takes, but on a disk that is busy
/// elsewhere.
const LONG: Duration = Duration::from_secs(90);
/// So many there are in any case.
const LEAST: usize = 60;

/// How an exec gets its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Command,
    Interpreter,
    Kept,
}

struct Scope {
    /// In canaries.
    word: &'static str,
    agent: &'static str,
    client: Client,
}

fn body(scope: &Scope, way: Way, number: usize) -> Value {
    let code = include_str!("canary.py");
    let kept = if way == Way::Kept { "kept" } else { "" };
    let number = number.to_string();
    let exec = match way {
        // An interpreter takes code and nothing else, so its arguments are put into it.
        Way::Interpreter => {
            let arguments = json!(["-c", scope.word, number, kept]);
            let code = format!("import sys; sys.argv = {arguments}\n{code}");
            json!({"kind": "argv", "command": "python3", "args": ["-c", code]})
        }
        Way::Command | Way::Kept => json!({"kind": "argv", "command": python(),
                                           "args": ["-c", code, scope.word, number, kept]}),
    };
    let mut body = json!({
        "project_id": scope.word,
        "task_ref": {"agent_id": scope.agent},
        "exec": exec,
        "policy_overrides": {"timeout": "60s"},
    });
    // An empty one: Python would read the names of the files that earlier execs left beside it.
    body["exec"]["cwd"] = json!("/workspace/artifacts");
    if way == Way::Kept {
        body["sandbox"] = json!({"lifetime": "agent"});
    }
    body
}

#[test]
fn no_exec_sees_anything_of_another() {
    let trial = Trial::new(Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    std::fs::write(
        &config,
        "[pool]\nmin = 3\npython = 3\nmax = 16\nacquire_timeout = \"20s\"\n\
         [sandbox]\nacquire_timeout = \"150s\"\n",
    )
    .unwrap();
    let server = Start::default()
        .with(["--config", &config.to_string_lossy()])
        .on(&trial);
    let client =
        |space: &str| server.client_of(&server.token_of("admin", space, &format!("{space}-x")));
    let (one, two) = (client("one"), client("two"));
    let scope = |word, agent, client: &Client| Scope {
        word,
        agent,
        client: client.clone(),
    };
    let scopes = [
        scope("onea", "a", &one),
        scope("oneb", "b", &one),
        scope("twoa", "a", &two),
        scope("twob", "b", &two),
    ];
    let (next, seen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (since, done) = (Instant::now(), AtomicUsize::new(0));
    let is_enough = |number: usize| match asked() {
        Some(asked) => number >= asked,
        None => number >= 90 || (number >= LEAST && since.elapsed() > LONG),
    };
    std::thread::scope(|threads| {
        for _ in 0..HANDS {
            threads.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if is_enough(number) {
                        return;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    let way = [Way::Interpreter, Way::Command, Way::Kept][number % 3];
                    let scope = &scopes[(number / 3 + number) % scopes.len()];
                    let answer = scope.client.post("/v1/execs", &body(scope, way, number));
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    let record = answer.json();
                    assert_eq!(record["status"], "succeeded", "{record}");
                    let said: Value =
                        serde_json::from_str(record["stdout"].as_str().unwrap()).unwrap();
                    assert!(said["left"].as_u64() >= Some(5), "{said}");
                    if said["found"] != json!([]) {
                        let line = format!(
                            "exec {number} of {} ({way:?}): {}",
                            scope.word, said["found"]
                        );
                        seen.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let stats = server.client().get("/v1/pool").json();
    let of = |key: &str| stats[key].as_u64().unwrap();
    let done = done.into_inner();
    println!(
        "{done} execs; pool: {} hits, {} misses, {} built",
        of("hits"),
        of("misses"),
        of("built")
    );
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_empty(), "{}", seen.join("\n"));
    // Most of those that could be warm were, or nothing was tested.
    assert!(of("hits") * 3 > done as u64, "{stats}");
    assert_eq!(server.stop(), 0);
    trial.end();
}
