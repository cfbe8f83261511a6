//! The same request with the same key is done once, whoever asks again and when.

use std::fs;
use std::thread;

use serde_json::{Value, json};
use support::{Caller, Client, Gate, Response, Start, Trial, sh, with};

const REPLAYED: &str = "idempotency-replayed";

fn keyed(client: &Client, key: &str) -> Client {
    client.clone().with("Idempotency-Key", key)
}

#[test]
fn fifty_at_once_are_one_exec_with_one_answer() {
    let trial = Trial::new(Caller::Root).unwrap();
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
    let trial = Trial::new(Caller::Root).unwrap();
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
    let trial = Trial::new(Caller::Root).unwrap();
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
    support::wait_until(std::time::Duration::from_secs(10), || {
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
fn sample(method: &str, route: &str, client: &Client, number: usize) -> Sample {
    let project = format!("p{number}");
    let exec = with(sh("echo hello > file"), json!({"project_id": project}));
    let made = || client.post("/v1/execs", &exec).json();
    let token = || {
        let body = json!({"name": format!("old-{number}"), "role": "agent"});
        let made = client.post("/v1/tokens", &body).json();
        made["token"]["token_id"].as_str().unwrap().to_owned()
    };
    match (method, route) {
        ("post", "/v1/execs" | "/sandbox/execs") => Sample::json(route, exec),
        ("post", "/v1/execs/{id}/cancel" | "/sandbox/execs/{id}/cancel") => {
            let id = made()["exec_id"].as_str().unwrap().to_owned();
            Sample::plain(route.replace("{id}", &id))
        }
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
        ("post", "/v1/policy/explain") => Sample::json(route, exec),
        _ => panic!("`{method} {route}` has no sample here"),
    }
}

#[test]
fn every_mutating_route_takes_a_key_and_answers_a_second_time_with_the_first_answer() {
    let trial = Trial::new(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let document = client.get("/openapi.json").json();
    let mut number = 0;
    for (route, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if method == "get" {
                continue;
            }
            number += 1;
            let sample = sample(method, route, &client, number);
            let said = format!("{method} {route}");
            let key = format!("key-{number}");
            let method = method.to_uppercase();
            let once = keyed(&client, &key);
            let first = sample.send(&once, &method);
            assert!(
                matches!(first.status, 200 | 201 | 204),
                "{said}: {}",
                first.text()
            );
            let again = sample.send(&once, &method);
            assert_eq!(
                (again.status, again.text()),
                (first.status, first.text()),
                "{said}"
            );
            if route == "/v1/policy/explain" {
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
