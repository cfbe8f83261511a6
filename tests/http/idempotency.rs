//! The same request with the same key is done once, whoever asks again and when.

use std::fs;
use std::thread;

use serde_json::{Value, json};
use support::{Caller, Client, Gate, Response, Server, Start, Trial, sh, with};

const REPLAYED: &str = "idempotency-replayed";

/// In base64.
const SECRET: &str = "Z2hwX1prM3ZYcTgxTG1OYzAyUXBSdA==";

fn keyed(client: &Client, key: &str) -> Client {
    client.clone().with("Idempotency-Key", key)
}

#[test]
fn fifty_at_once_are_one_exec_with_one_answer() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let mut server = Start::default().on(&trial);
    let client = keyed(&server.client(), "once");
    let body = sh("echo ran >> log; echo $$-$(cat /proc/sys/kernel/random/uuid)");
    let answers: Vec<Response> = thread::scope(|scope| {
        let asked: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| client.post("/v1/execs", &body)))
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!((answer.status, answer.text()), (200, answers[0].text()));
    }
    let fresh = answers.iter().filter(|it| it.header(REPLAYED).is_none());
    assert_eq!(fresh.count(), 1);
    assert_eq!(gate.file("log").as_deref(), Some("ran\n"));
    let listed = client.get("/v1/execs").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");

    let other = client.post("/v1/execs", &sh("echo other"));
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "idempotency_conflict")
    );

    server.kill();
    let server = Start::default().on(&trial);
    let client = keyed(&server.client(), "once");
    let again = client.post("/v1/execs", &body);
    assert_eq!((again.status, again.text()), (200, answers[0].text()));
    assert_eq!(again.header(REPLAYED), Some("true"));
    let other = client.post("/v1/execs", &sh("echo other"));
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "idempotency_conflict")
    );
    assert_eq!(gate.file("log").as_deref(), Some("ran\n"));

    // A key is its caller's: the same word of another token is another key.
    let agent = keyed(
        &server.client_of(&server.token_of("agent", "local", "a")),
        "once",
    );
    let own = agent.post("/v1/execs", &body);
    assert_eq!((own.status, own.header(REPLAYED)), (200, None));
    assert_ne!(own.json()["exec_id"], again.json()["exec_id"]);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn the_key_may_be_in_the_body() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let body = with(sh("echo ran >> log; cat log"), json!({"request_id": "k-1"}));
    let first = client.post("/v1/execs", &body);
    assert_eq!(
        (first.status, first.header(REPLAYED)),
        (200, None),
        "{}",
        first.text()
    );
    for again in [
        client.post("/v1/execs", &body),
        keyed(&client, "k-1").post("/v1/execs", &body),
    ] {
        assert_eq!((again.status, again.text()), (200, first.text()));
        assert_eq!(again.header(REPLAYED), Some("true"));
    }
    let two = keyed(&client, "k-2").post("/v1/execs", &body);
    // The header counts.
    assert_eq!((two.status, two.header(REPLAYED)), (200, None));
    assert_ne!(two.json()["exec_id"], first.json()["exec_id"]);
    let other = client.post(
        "/v1/execs",
        &with(body, json!({"mode": "run", "wait": false})),
    );
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "idempotency_conflict")
    );
    // A refusal is remembered with its record too.
    let refused = with(
        sh("true"),
        json!({"policy_overrides": {"network": "unrestricted"}, "request_id": "k-3"}),
    );
    let first = client.post("/v1/execs", &refused);
    let again = client.post("/v1/execs", &refused);
    assert_eq!((first.status, again.status), (403, 403));
    let id = |answer: &Response| answer.json()["error"]["exec_id"].clone();
    assert!(
        id(&first).is_string() && id(&first) == id(&again),
        "{}",
        again.text()
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn an_exec_that_was_sent_away_may_come_again_with_its_key() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = Start::default().on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 1, "max_queued": 0}));
    let holds = client.begin(&sh(&gate.wait()));
    let body = sh("echo ran >> log");
    let away = keyed(&client, "later").post("/v1/execs", &body);
    assert_eq!((away.status, away.code().as_str()), (429, "rate_limited"));
    gate.open();
    client.ended(&holds);
    let mut answer = keyed(&client, "later").post("/v1/execs", &body);
    // Its place may be given back a moment after its end.
    support::wait_until(std::time::Duration::from_secs(60), || {
        if answer.status == 429 {
            answer = keyed(&client, "later").post("/v1/execs", &body);
        }
        answer.status != 429
    });
    assert_eq!(
        (answer.status, answer.header(REPLAYED)),
        (200, None),
        "{}",
        answer.text()
    );
    let again = keyed(&client, "later").post("/v1/execs", &body);
    assert_eq!((again.status, again.header(REPLAYED)), (200, Some("true")));
    assert_eq!(gate.file("log").as_deref(), Some("ran\n"));
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// One request of a mutating operation.
struct Sample {
    path: String,
    body: Option<Value>,
    /// For a body that is no JSON.
    bytes: Option<&'static [u8]>,
}

impl Sample {
    fn json(path: &str, body: Value) -> Self {
        Self {
            path: path.to_owned(),
            body: Some(body),
            bytes: None,
        }
    }

    fn plain(path: String) -> Self {
        Self {
            path,
            body: None,
            bytes: None,
        }
    }

    fn send(&self, client: &Client, method: &str) -> Response {
        match (&self.body, self.bytes) {
            (body, None) => client.send(method, &self.path, body.as_ref()),
            (_, Some(bytes)) => {
                let kind = Some("application/octet-stream");
                client.try_bytes(method, &self.path, kind, bytes).unwrap()
            }
        }
    }
}

/// A new operation that nobody wrote a sample for fails here.
fn sample(method: &str, route: &str, server: &Server, number: usize) -> Sample {
    let client = &server.client();
    let project = format!("p{number}");
    let exec = with(sh("echo hello > file"), json!({"project_id": project}));
    let made = || client.post("/v1/execs", &exec).json();
    let token = || {
        let body = json!({"name": format!("old-{number}"), "role": "agent"});
        let made = client.post("/v1/tokens", &body).json();
        made["token"]["token_id"].as_str().unwrap().to_owned()
    };
    // Nobody answers their own request.
    let asked = || {
        let agent = server.token_of("agent", "local", &format!("asks-{number}"));
        let touch = json!({"project_id": project, "wait": false,
            "exec": {"kind": "argv", "command": "touch", "args": ["x"]},
            "policy_overrides": {"tier": "high"}, "task_ref": {"conversation_id": "c"}});
        let exec = server.client_of(&agent).post("/v1/execs", &touch).json();
        let id = exec["approval_id"].as_str();
        let id = id.unwrap_or_else(|| panic!("nobody is asked: {exec}"));
        id.to_owned()
    };
    let secret = || {
        let name = format!("secret-{number}");
        let body = json!({"value_base64": SECRET});
        let set = client.send("PUT", &format!("/v1/secrets/{name}"), Some(&body));
        assert_eq!(set.status, 200, "{}", set.text());
        name
    };
    // One that has ended, or one that goes on.
    let session = |command: &str| {
        let body = json!({"project_id": project,
            "exec": {"kind": "argv", "command": command, "args": ["1000"]},
            "session": {"terminal": true, "yield_ms": if command == "true" { 60_000 } else { 0 }}});
        let made = client.post("/v1/sessions", &body).json();
        let id = made["session"]["session_id"].as_str();
        id.unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let of_agent = json!({"lifetime": "agent", "agent_id": format!("agent-{number}")});
    match (method, route) {
        ("post", "/v1/execs" | "/sandbox/execs") => Sample::json(route, exec),
        ("post", "/v1/execs/{id}/cancel" | "/sandbox/execs/{id}/cancel") => {
            let id = made()["exec_id"].as_str().unwrap().to_owned();
            Sample::plain(route.replace("{id}", &id))
        }
        ("post", "/v1/skills/{id}/invoke" | "/skills/{id}/invoke") => Sample::json(
            &route.replace("{id}", "shell.run"),
            json!({"project_id": project, "inputs": {"script": "echo ran >> log; cat log"}}),
        ),
        ("post", "/v1/tokens") => Sample::json(
            route,
            json!({"name": format!("new-{number}"), "role": "agent"}),
        ),
        ("delete", "/v1/tokens/{id}") => Sample::plain(route.replace("{id}", &token())),
        ("patch", "/v1/settings") => Sample::json(route, json!({"max_queued": 100 + number})),
        ("delete", "/v1/workspaces/{project}") => {
            made();
            Sample::plain(route.replace("{project}", &project))
        }
        ("delete", "/v1/workspaces/{project}/files/{path}") => {
            made();
            Sample::plain(format!("/v1/workspaces/{project}/files/file"))
        }
        ("put", "/v1/workspaces/{project}/files/{path}") => {
            made();
            Sample {
                bytes: Some(b"content"),
                ..Sample::plain(format!("/v1/workspaces/{project}/files/new"))
            }
        }
        ("put", "/v1/workspaces/{project}/archive") => {
            made();
            Sample {
                bytes: Some(&[0; 1024]),
                ..Sample::plain(route.replace("{project}", &project))
            }
        }
        ("post", route) if route.starts_with("/v1/workspaces/{project}/") => {
            made();
            let own = route.replace("{project}", &project);
            let body = match own.rsplit('/').next().unwrap() {
                "mkdir" => json!({"path": "d"}),
                "move" | "copy" => json!({"from": "file", "to": "other"}),
                "replace" => json!({"path": "file", "old": "hello", "new": "bye"}),
                "search" | "glob" => json!({"pattern": "*"}),
                "snapshots" | "reset" | "undo" => json!({}),
                "rollback" => {
                    let snapshots = format!("/v1/workspaces/{project}/snapshots");
                    assert_eq!(client.post(&snapshots, &json!({})).status, 201);
                    assert_eq!(client.get("/v1/snapshots/verify").status, 200);
                    json!({})
                }
                "fork" => json!({"into": format!("fork-{number}")}),
                "seed" => return Sample::plain(own),
                "restore" => {
                    let snapshots = format!("/v1/workspaces/{project}/snapshots");
                    let taken = client.post(&snapshots, &json!({})).json();
                    let id = taken["snapshot"]["snapshot_id"].as_str().unwrap();
                    return Sample::plain(own.replace("{id}", id));
                }
                other => panic!("`{other}` has no sample here"),
            };
            Sample::json(&own, body)
        }
        ("delete", "/v1/workspaces/{project}/snapshots/{id}") => {
            made();
            let snapshots = format!("/v1/workspaces/{project}/snapshots");
            let taken = client.post(&snapshots, &json!({})).json();
            let id = taken["snapshot"]["snapshot_id"].as_str().unwrap();
            Sample::plain(format!("{snapshots}/{id}"))
        }
        ("post", "/v1/snapshots/collect") => Sample::plain(route.to_owned()),
        ("post", "/v1/execs/{id}/apply" | "/v1/execs/{id}/rerun") => {
            let simulated = with(exec, json!({"mode": "simulate"}));
            let ran = client.post("/v1/execs", &simulated).json();
            Sample::plain(route.replace("{id}", ran["exec_id"].as_str().unwrap()))
        }
        ("post", "/v1/execs/{id}/keep" | "/v1/execs/{id}/discard") => {
            let held = with(exec, json!({"writes": "held"}));
            let ran = client.post("/v1/execs", &held).json();
            Sample::plain(route.replace("{id}", ran["exec_id"].as_str().unwrap()))
        }
        ("post", "/v1/policy/explain") => Sample::json(route, exec),
        ("post", "/v1/tools/check") => Sample::json(route, json!({"tools": ["run_code"]})),
        ("post", "/v1/webhooks/{name}/test") => Sample::plain("/v1/webhooks/ops/test".to_owned()),
        ("post", "/v1/policy/replay") => Sample::json(route, json!({"config": "", "limit": 1})),
        ("post", "/v1/approvals/{id}/reply") => {
            let route = route.replace("{id}", &asked());
            Sample::json(&route, json!({"decision": "allow_once"}))
        }
        ("post", "/v1/approvals/{id}/approve" | "/v1/approvals/{id}/deny") => {
            Sample::json(&route.replace("{id}", &asked()), json!({}))
        }
        ("delete", "/v1/sessions/{id}") => Sample::plain(route.replace("{id}", &session("true"))),
        ("post", route) if route.starts_with("/v1/sessions/{id}/") => {
            let body = match route.rsplit('/').next().unwrap() {
                "input" => json!({"text": "x"}),
                "resize" => json!({"columns": 100, "rows": 40}),
                "signal" => json!({"signal": "WINCH"}),
                _ => return Sample::plain(route.replace("{id}", &session("sleep"))),
            };
            Sample::json(&route.replace("{id}", &session("sleep")), body)
        }
        ("delete", "/v1/grants/{id}") => {
            let reply = format!("/v1/approvals/{}/reply", asked());
            let made = client.post(&reply, &json!({"decision": "allow_kind"}));
            assert_eq!(made.status, 200, "{}", made.text());
            let grants = client.get("/v1/grants").json();
            let id = grants["items"][0]["id"].as_str().unwrap().to_owned();
            Sample::plain(route.replace("{id}", &id))
        }
        ("put", "/v1/secrets/{name}") => {
            let route = route.replace("{name}", &format!("secret-{number}"));
            Sample::json(&route, json!({"value_base64": SECRET}))
        }
        ("delete", "/v1/secrets/{name}") => {
            let route = route.replace("{name}", &secret());
            Sample::plain(route)
        }
        ("post", "/v1/secret-grants") => {
            Sample::json(route, json!({"secret": secret(), "agent_id": "a"}))
        }
        ("delete", "/v1/secret-grants/{id}") => {
            let body = json!({"secret": secret(), "agent_id": "a"});
            let made = client.post("/v1/secret-grants", &body).json();
            Sample::plain(route.replace("{id}", made["grant_id"].as_str().unwrap()))
        }
        ("post", "/v1/sandboxes" | "/v1/sandboxes/explain") => Sample::json(route, of_agent),
        ("delete", "/v1/sandboxes/{id}") | ("post", "/v1/sandboxes/{id}/recreate") => {
            let made = client.post("/v1/sandboxes", &of_agent).json();
            Sample::plain(route.replace("{id}", made["sandbox_id"].as_str().unwrap()))
        }
        ("post", "/v1/sandboxes/recreate") => Sample::json(route, json!({"mismatched": true})),
        ("post", "/v1/sandboxes/prune") => Sample::plain(route.to_owned()),
        _ => panic!("`{method} {route}` has no sample here"),
    }
}

#[test]
fn every_mutating_route_takes_a_key_and_answers_a_second_time_with_the_first_answer() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let template = trial.home().join("template");
    fs::create_dir(&template).unwrap();
    let config = format!("[workspace]\nsnapshot_before = \"safe\"\ntemplate = {template:?}\n")
        + &support::outward(trial.home());
    let server = crate::pool_fire::serve(&trial, &config).on(&trial);
    let client = server.client();
    let document = client.get("/openapi.json").json();
    let mut number = 0;
    for (route, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            // What is read from outside is read anew, and kept nowhere.
            // A session that is asked for again is shown as it is then; that has a test of its own.
            if method == "get" || matches!(route.as_str(), "/v1/retrieve" | "/v1/sessions") {
                continue;
            }
            number += 1;
            let sample = sample(method, route, &server, number);
            let said = format!("{method} {route}");
            let key = format!("key-{number}");
            let method = method.to_uppercase();
            let once = keyed(&client, &key);
            let first = sample.send(&once, &method);
            assert!(
                matches!(first.status, 200 | 201 | 202 | 204),
                "{said}: {}",
                first.text()
            );
            let again = sample.send(&once, &method);
            assert_eq!(
                (again.status, again.text()),
                (first.status, first.text()),
                "{said}"
            );
            if ["/explain", "/replay", "/search", "/glob", "/check"]
                .iter()
                .any(|end| route.ends_with(end))
            {
                continue; // It changes nothing, so there is nothing to do once.
            }
            assert_eq!(first.header(REPLAYED), None, "{said}");
            assert_eq!(again.header(REPLAYED), Some("true"), "{said}");
            // The key belongs to that request alone.
            let other = once.post("/v1/tokens", &json!({"name": "x", "role": "agent"}));
            let conflict = (other.status, other.code());
            assert_eq!(conflict, (409, "idempotency_conflict".to_owned()), "{said}");
        }
    }
    assert!(number >= 10, "{number} mutating operations");
    for session in client.get("/v1/sessions").json()["sessions"]
        .as_array()
        .unwrap()
    {
        let kill = format!(
            "/v1/sessions/{}/kill",
            session["session_id"].as_str().unwrap()
        );
        assert_eq!(client.post(&kill, &json!({})).status, 200);
    }
    // Secrets of tokens are in no answer that was kept.
    let made = keyed(&client, "secret").post("/v1/tokens", &json!({"name": "s", "role": "agent"}));
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    let tail = &secret[secret.len() - 64..];
    for file in ["glovebox.db", "glovebox.db-wal"] {
        let bytes = fs::read(trial.state().join(file)).unwrap();
        assert!(
            !bytes.windows(64).any(|part| part == tail.as_bytes()),
            "in `{file}`"
        );
    }
    let bad = keyed(&client, "two words").post("/v1/execs", &sh("true"));
    assert_eq!((bad.status, bad.code().as_str()), (400, "invalid_argument"));
    let bad = keyed(&client, &"k".repeat(256)).post("/v1/execs", &sh("true"));
    assert_eq!((bad.status, bad.code().as_str()), (400, "invalid_argument"));
    assert_eq!(server.stop(), 0);
    trial.end();
}
