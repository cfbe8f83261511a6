//! Sandboxes that stood before their exec, and sandboxes that stay after it. What is new there: mounts
//! that are attached to a sandbox that is locked already, a channel to an interpreter that runs, and a
//! first process that outlives what it started.

use std::time::Duration;

use serde_json::{Value, json};
use support::{
    Caller, Client, Fixtures, Row, Server, Start, Trial, Verdict, inside, parse_rows, probe_source,
    python, wait_until,
};

/// What every exec here asks for, so that all are of one shape.
fn limits() -> Value {
    json!({"pids": 64, "memory": "512M", "timeout": "60s"})
}

/// With a pool, and with a secret in its environment that nobody inside may see.
fn serve(trial: &Trial, secret: &str) -> Server {
    let config = trial.home().join("config.toml");
    let pool = "[pool]\nmin = 2\npython = 2\nmax = 12\nacquire_timeout = \"20s\"\n";
    std::fs::write(&config, pool).unwrap();
    let start = Start::default().with(["--config", &config.to_string_lossy()]);
    start.outside("HOST_ENVIRONMENT", secret).on(trial)
}

fn hits(server: &Server, kind: &str) -> u64 {
    let stats = server.client().get("/v1/pool").json();
    assert_eq!(stats["enabled"], true, "{stats}");
    let shapes = stats["shapes"].as_array().unwrap().iter();
    shapes
        .filter(|it| it["kind"] == kind)
        .filter_map(|it| it["hits"].as_u64())
        .sum()
}

/// Sends it until it is a warm sandbox's: the first of a shape only shows the pool what is wanted.
fn warmly(server: &Server, kind: &str, body: &Value) -> Value {
    let mut record = Value::Null;
    let came = wait_until(Duration::from_secs(60), || {
        let before = hits(server, kind);
        let answer = server.exec(body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        record = answer.json();
        hits(server, kind) > before
    });
    assert!(
        came,
        "no `{kind}` was ever warm: {}",
        server.client().get("/v1/pool").text()
    );
    record
}

/// All of it: the record has only an excerpt.
fn stdout(client: &Client, record: &Value) -> Vec<u8> {
    let id = record["exec_id"].as_str().unwrap();
    let answer = client.get(&format!("/v1/execs/{id}/stdout"));
    assert_eq!(answer.status, 200, "{record}");
    answer.body
}

fn assert_all_held(rows: &[Row]) {
    let may_skip = [
        "a-set-user-id-program",
        "a-signal-to-the-host",
        "a-pidfd-of-the-host",
    ];
    let bad: Vec<_> = rows
        .iter()
        .filter(|row| match row.verdict {
            Verdict::Held | Verdict::Noted => false,
            Verdict::Skipped => !may_skip.contains(&row.id.as_str()),
            Verdict::Crossed => true,
        })
        .collect();
    assert!(rows.len() > 90, "only {} probes ran", rows.len());
    assert!(bad.is_empty(), "{bad:#?}");
}

/// How the probes are brought in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A command in a sandbox that stood.
    Command,
    /// Code for an interpreter that ran already.
    Interpreter,
    /// A command in a sandbox that is kept.
    Kept,
}

fn probe(way: Way) {
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    let server = serve(&trial, &fixtures.secret);
    let told = inside(&fixtures, &trial);
    let told = told.iter().map(String::as_str).chain(["PROBE_FIRST=1"]);
    let body = match way {
        Way::Interpreter => {
            let env: Value = told
                .map(|it| it.split_once('=').unwrap())
                .map(|(key, value)| (key.to_owned(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            json!({"project_id": "p", "policy_overrides": limits(), "exec":
                {"kind": "argv", "command": "python3", "args": ["-c", probe_source()], "env": env}})
        }
        Way::Command | Way::Kept => {
            let args: Vec<&str> = told.chain([python(), "-c", probe_source()]).collect();
            let mut body = json!({"project_id": "p", "policy_overrides": limits(), "exec":
                {"kind": "argv", "command": "/usr/bin/env", "args": args}});
            if way == Way::Kept {
                body["sandbox"] = json!({"lifetime": "agent"});
                body["task_ref"] = json!({"agent_id": "a"});
            }
            body
        }
    };
    let record = match way {
        Way::Command => warmly(&server, "native", &body),
        Way::Interpreter => warmly(&server, "python", &body),
        Way::Kept => {
            // The second is the one of which there was another before.
            server.exec(
                &json!({"sandbox": {"lifetime": "agent"}, "task_ref": {"agent_id": "a"},
                "project_id": "p", "policy_overrides": limits(),
                "exec": {"kind": "argv", "command": "true"}}),
            );
            server.exec(&body).json()
        }
    };
    assert_eq!(record["status"], "succeeded", "{record}");
    let rows = parse_rows(&stdout(&server.client(), &record));
    fixtures.assert_untouched(Caller::Root);
    for row in &rows {
        println!(
            "{:<40} {:<12} {:?} {}",
            row.id, row.class, row.verdict, row.detail
        );
    }
    assert_all_held(&rows);
    drop(fixtures);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn our_probes_are_held_in_a_warm_sandbox() {
    probe(Way::Command);
}

#[test]
fn our_probes_are_held_in_an_interpreter_that_ran_already() {
    probe(Way::Interpreter);
}

#[test]
fn our_probes_are_held_in_a_kept_sandbox() {
    probe(Way::Kept);
}

const SEEN: &str = include_str!("seen.py");

/// A sandbox made ahead, attached to its exec later, is the sandbox that would have been made then.
#[test]
fn a_warm_sandbox_is_the_one_that_would_have_been_made() {
    let trial = Trial::new(Caller::Root).unwrap();
    let server = serve(&trial, "nothing");
    let body = |command: &str, tag: &str| {
        json!({"project_id": "p", "policy_overrides": limits(),
               "exec": {"kind": "argv", "command": command, "args": ["-c", SEEN], "env": {"TAG": tag}}})
    };
    let client = server.client();
    let seen = |record: &Value| -> Value {
        assert_eq!(record["status"], "succeeded", "{record}");
        serde_json::from_slice(&stdout(&client, record)).unwrap()
    };
    let warm = seen(&warmly(&server, "native", &body(python(), "t")));
    let running = seen(&warmly(&server, "python", &body("python3", "t")));
    assert_eq!(server.stop(), 0);

    let config = trial.home().join("cold.toml");
    std::fs::write(&config, "[pool]\nenabled = false\n").unwrap();
    let server = Start::default()
        .with(["--config", &config.to_string_lossy()])
        .on(&trial);
    let client = server.client();
    let record = server.exec(&body(python(), "t")).json();
    let cold: Value = serde_json::from_slice(&stdout(&client, &record)).unwrap();
    assert_eq!(server.stop(), 0);
    for (name, other) in [("warm", &warm), ("interpreter", &running)] {
        for (key, value) in cold.as_object().unwrap() {
            assert_eq!(
                &other[key], value,
                "{name}: `{key}` differs from a cold sandbox's"
            );
        }
    }
    trial.end();
}
