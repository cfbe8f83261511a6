//! Kept sandboxes over HTTP, beyond one server's life and under many clients.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Docker, Start, Trial, wait_until, with};

use crate::pool_fire::serve;

const PATIENCE: Duration = Duration::from_secs(60);

fn run(client: &Client, place: Value, script: &str) -> Value {
    let body = json!({"sandbox": place, "task_ref": {"agent_id": "ann"},
                      "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]}});
    let answer = client.post("/v1/execs", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn a_sandbox_is_known_after_a_restart_and_built_again_when_it_is_used() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut server = Start::default().on(&trial);
    let client = server.client();
    let request = json!({"lifetime": "agent", "agent_id": "ann"});
    let made = client.post("/v1/sandboxes", &request);
    assert_eq!(made.status, 201, "{}", made.text());
    let id = made.json()["sandbox_id"].as_str().unwrap().to_owned();
    assert_eq!(made.json()["project_id"], "agent-ann");
    let record = run(&client, json!({"lifetime": "agent"}), "echo 1 > kept");
    assert_eq!(record["sandbox_id"], id.as_str(), "{record}");
    server.kill();

    let server = Start::default().on(&trial);
    let client = server.client();
    let row = client.get(&format!("/v1/sandboxes/{id}")).json();
    assert_eq!(row["state"], "down", "{row}");
    assert_eq!(client.post("/v1/sandboxes", &request).code(), "conflict");
    let record = run(&client, json!({"id": id}), "cat kept");
    assert_eq!(
        (&record["stdout"], &record["sandbox_id"]),
        (&json!("1\n"), &json!(id)),
        "{record}"
    );
    // A workspace does not go from under it.
    let refused = client.send("DELETE", "/v1/workspaces/agent-ann", None);
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"));
    let removed = client.send("DELETE", &format!("/v1/sandboxes/{id}"), None);
    assert_eq!(removed.status, 200, "{}", removed.text());
    let gone = client.send("DELETE", "/v1/workspaces/agent-ann", None);
    assert_eq!(gone.status, 204, "{}", gone.text());
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn many_at_once_make_one_and_take_turns() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    // Each waits for those before it to be written down.
    let patient = "[sandbox]\nacquire_timeout = \"2m\"\n";
    let server = serve(&trial, patient).on(&trial);
    let client = server.client();
    // Whoever is in it is alone: each finds the mark of nobody.
    let script =
        "mkdir /workspace/work/in || exit 7; ls /proc | grep -c '^[0-9]'; rmdir /workspace/work/in";
    let records: Vec<Value> = thread::scope(|scope| {
        let asked: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| run(&client, json!({"lifetime": "agent"}), script)))
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut ids = BTreeSet::new();
    for record in &records {
        assert_eq!(record["status"], "succeeded", "{record}");
        ids.insert(record["sandbox_id"].as_str().unwrap());
    }
    assert_eq!(ids.len(), 1);
    let listed = client.get("/v1/sandboxes?agent_id=ann").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["items"][0]["uses"], 12);

    let made: Vec<u16> = thread::scope(|scope| {
        let request = json!({"lifetime": "shared"});
        let asked: Vec<_> = (0..8)
            .map(|_| {
                let (client, request) = (client.clone(), request.clone());
                scope.spawn(move || client.post("/v1/sandboxes", &request).status)
            })
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(
        made.iter().all(|status| matches!(status, 201 | 409 | 503)) && made.contains(&201),
        "{made:?}"
    );
    let shared = client.get("/v1/sandboxes?lifetime=shared").json();
    assert_eq!(shared["items"].as_array().unwrap().len(), 1, "{shared}");
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_key_makes_one_sandbox_and_a_replay_outlives_it() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let keyed = |key: &str| client.clone().with("Idempotency-Key", key);
    let request = json!({"lifetime": "session", "session_id": "talk"});
    let first = keyed("make").post("/v1/sandboxes", &request);
    let again = keyed("make").post("/v1/sandboxes", &request);
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!((again.status, again.text()), (201, first.text()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = with(request, json!({"session_id": "other"}));
    let other = keyed("make").post("/v1/sandboxes", &other);
    assert_eq!(other.code(), "idempotency_conflict");

    let id = first.json()["sandbox_id"].as_str().unwrap().to_owned();
    let body = json!({"sandbox": {"id": id}, "exec": {"kind": "argv", "command": "true"}});
    let ran = keyed("run").post("/v1/execs", &body);
    assert_eq!(ran.status, 200, "{}", ran.text());
    let removed = client.send("DELETE", &format!("/v1/sandboxes/{id}"), None);
    assert_eq!(removed.status, 200, "{}", removed.text());
    let again = keyed("run").post("/v1/execs", &body);
    assert_eq!((again.status, again.text()), (200, ran.text()));
    assert_eq!(client.post("/v1/execs", &body).status, 404);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn nothing_of_the_host_is_told_to_whoever_does_not_run_it() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client_of(&server.token_of("admin", "blue", "chief"));
    let request = json!({"lifetime": "shared"});
    let home = trial.home().display().to_string();
    for answer in [
        client.post("/v1/sandboxes/explain", &request),
        client.post("/v1/sandboxes", &request),
        client.get("/v1/sandboxes"),
    ] {
        assert!(answer.status < 300, "{}", answer.text());
        assert!(!answer.text().contains(&home), "{}", answer.text());
    }
    let explained = client.post("/v1/sandboxes/explain", &request).json();
    assert_eq!(explained["sources"], json!([]));
    let explained = server.client().post("/v1/sandboxes/explain", &request);
    assert!(
        !explained.json()["sources"].as_array().unwrap().is_empty(),
        "{}",
        explained.text()
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// One that was used a moment ago is kept when the configuration changes, but never for an exec that
/// demands more than it gives.
#[test]
fn what_stands_must_give_what_is_demanded() {
    let Some(docker) = Docker::shared() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .outside("DOCKER_HOST", docker.host())
        .on(&trial);
    let client = server.client();
    let usual = run(&client, json!({"lifetime": "agent"}), "true");
    assert_eq!(usual["backend"], "native", "{usual}");
    let id = usual["sandbox_id"].as_str().unwrap();
    for place in [json!({"lifetime": "agent"}), json!({"id": id})] {
        let body = json!({"sandbox": place, "task_ref": {"agent_id": "ann"},
                          "policy_overrides": {"require": ["own_kernel"]},
                          "exec": {"kind": "argv", "command": "true"}});
        let answer = client.post("/v1/execs", &body);
        let ran = answer.status == 200 && answer.json()["status"] == "succeeded";
        assert!(!ran, "it ran on the host's kernel: {}", answer.text());
    }
    // Whoever demands nothing more still has it.
    let again = run(&client, json!({"lifetime": "agent"}), "true");
    assert_eq!(again["sandbox_id"], id, "{again}");
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_container_is_probed_and_kept_and_tells_nothing_of_the_host() {
    let Some(docker) = Docker::shared() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    const SECRET: &str = "a-value-of-the-operator-4711";
    let text =
        format!("[docker]\nsetup_command = \"true {SECRET}\"\nenv = {{ WORD = \"{SECRET}\" }}\n");
    fs::write(&config, text).unwrap();
    let server = Start::default()
        .with(["--config", config.to_str().unwrap()])
        .outside("DOCKER_HOST", docker.host())
        .on(&trial);
    let client = server.client();
    // A probe has few seconds, and a container may take them all.
    let mut health = client.get("/sandbox/health?probe=1");
    wait_until(PATIENCE, || {
        if health.json()["probe_ok"] != true {
            health = client.get("/sandbox/health?probe=1");
        }
        health.json()["probe_ok"] == true
    });
    assert_eq!(health.json()["probe_ok"], true, "{}", health.text());
    assert_eq!(health.json()["runtime_mode"], "native");
    for field in ["docker_cli_path", "docker_version", "docker_context"] {
        assert!(
            health.json()[field].is_string(),
            "{field}: {}",
            health.text()
        );
    }
    let probe = client.get("/v1/execs?limit=1").json()["items"][0].clone();
    assert_eq!(
        (&probe["backend"], &probe["cmd"]),
        (&json!("docker"), &json!("true")),
        "{probe}"
    );

    let agent = server.client_of(&server.token_of("agent", "blue", "ann"));
    let health = agent.get("/sandbox/health").json();
    assert!(health["docker_cli_path"].is_null(), "{health}");
    let request = json!({"lifetime": "agent", "policy_overrides": {"backend": "docker"}});
    let made = agent.post("/v1/sandboxes", &request);
    assert_eq!(made.status, 201, "{}", made.text());
    let name = made.json()["name"].as_str().unwrap().to_owned();
    // What the probe ran in is removed a moment after its record is there.
    let alone = wait_until(PATIENCE, || {
        docker.containers(&trial.state()) == [name.as_str()]
    });
    assert!(alone, "{:?}", docker.containers(&trial.state()));
    let body = json!({"sandbox": {"name": name},
                      "exec": {"kind": "argv", "command": "sh", "args": ["-c", "echo $WORD > note; id -u"]}});
    let ran = agent.post("/v1/execs", &body);
    assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
    assert_ne!(ran.json()["stdout"], "0\n");
    for answer in [
        made,
        agent.get("/v1/sandboxes"),
        agent.post("/v1/sandboxes/explain", &request),
    ] {
        assert!(answer.status < 300, "{}", answer.text());
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
    }
    let removed = agent.send("DELETE", &format!("/v1/sandboxes/{name}"), None);
    assert_eq!(removed.status, 200, "{}", removed.text());
    assert!(!removed.text().contains(SECRET), "{}", removed.text());
    assert_eq!(docker.containers(&trial.state()), Vec::<String>::new());
    assert_eq!(server.stop(), 0);
    trial.end();
}
