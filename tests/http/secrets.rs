//! Secrets over the API: a value goes in and never comes out, in no answer, no log and no file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Database, Response, Server, Start, Trial, still_there, wait_until};

const SOON: Duration = Duration::from_secs(60);
const VALUE: &str = "ghp_Zk3vXq81LmNc02QpRt";
const VALUE_BASE64: &str = "Z2hwX1prM3ZYcTgxTG1OYzAyUXBSdA==";
const OTHER_BASE64: &str = "YW5vdGhlci1WYWx1ZS0yNzE4";
const HEX_KEY: &str = "a53f0c7d2a9b1e4f5a8c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f901a2b";

fn put(client: &Client, name: &str, body: &Value) -> Response {
    client.send("PUT", &format!("/v1/secrets/{name}"), Some(body))
}

#[track_caller]
fn done(answer: Response) -> Value {
    assert!(
        matches!(answer.status, 200 | 201),
        "{}: {}",
        answer.status,
        answer.text()
    );
    answer.json()
}

/// The value as it is and as it is easily made readable again.
fn forms() -> Vec<Vec<u8>> {
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        VALUE.as_bytes().to_vec(),
        VALUE_BASE64.trim_end_matches('=').as_bytes().to_vec(),
        hex.clone().into_bytes(),
        hex.to_uppercase().into_bytes(),
    ]
}

#[track_caller]
fn assert_hidden(what: &str, bytes: &[u8]) {
    for form in forms() {
        let shown = bytes.windows(form.len()).any(|part| part == form);
        assert!(!shown, "{what} has the value");
    }
}

fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in still_there(fs::read_dir(directory)).into_iter().flatten() {
        let entry = entry.unwrap();
        let Some(kind) = still_there(entry.file_type()) else {
            continue;
        };
        match (kind.is_dir(), kind.is_file()) {
            (true, _) => files(&entry.path(), into),
            (_, true) => into.push(entry.path()),
            _ => {}
        }
    }
}

fn assert_nowhere_in(directory: &Path) {
    let mut all = Vec::new();
    files(directory, &mut all);
    assert!(all.len() > 3, "{all:?}");
    for path in all {
        if let Some(bytes) = still_there(fs::read(&path)) {
            assert_hidden(&path.display().to_string(), &bytes);
        }
    }
}

/// An agent that was not granted a secret learns nothing from what is masked: a right guess looks like a
/// wrong one, in output, arguments, names and errors, and its beginning is not held back.
#[test]
fn a_guess_of_a_secret_that_was_not_granted_looks_like_any_other() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let admin = server.client();
    done(put(
        &admin,
        "github",
        &json!({"value_base64": VALUE_BASE64, "hosts": ["api.example:443"]}),
    ));
    let agent = server.client_of(&server.token_of("agent", "local", "guesser"));
    let wrong = VALUE.replace("Zk3v", "Zk3w");
    let tried = |client: &Client, guess: &str, conversation: &str| {
        let script =
            format!("echo {guess}; echo {guess} >&2; echo {guess} > /workspace/artifacts/{guess}");
        let body = json!({
            "task_ref": {"conversation_id": conversation},
            "exec": {"kind": "argv", "command": "sh", "args": ["-c", script, guess]},
            "wait": true,
        });
        let ran = client.post("/v1/execs", &body);
        assert_eq!(ran.status, 200, "{}", ran.text());
        let id = ran.json()["exec_id"].as_str().unwrap().to_owned();
        let mut seen = vec![ran.text()];
        for part in ["", "/events", "/stdout", "/artifacts"] {
            let part = client.get(&format!("/v1/execs/{id}{part}"));
            seen.push(part.text());
        }
        seen
    };
    for part in tried(&agent, VALUE, "free") {
        assert!(!part.contains("[secret"), "{part}");
    }
    let (right, other) = (tried(&agent, VALUE, "free"), tried(&agent, &wrong, "free"));
    for (right, other) in right.iter().zip(&other) {
        let counts = (right.matches(VALUE).count(), other.matches(&wrong).count());
        assert_eq!(counts.0, counts.1, "{right}\n{other}");
    }
    // It is masked for people, and for an agent from when it was granted, in that conversation.
    assert!(tried(&admin, VALUE, "free")[0].contains("[secret github]"));
    let grant = json!({"secret": "github", "conversation_id": "nightly", "agent_id": "guesser"});
    done(admin.post("/v1/secret-grants", &grant));
    let granted = tried(&agent, VALUE, "nightly");
    assert!(granted[0].contains("[secret github]"), "{}", granted[0]);
    assert_hidden("what was granted", granted[0].as_bytes());
    assert!(!tried(&agent, VALUE, "free")[0].contains("[secret"));
    // What is only brokered is in no program's hands: a guess is a guess. People do not see it.
    let grant = json!({
        "secret": "github", "conversation_id": "abroad", "agent_id": "guesser",
        "deliveries": ["broker"],
    });
    done(admin.post("/v1/secret-grants", &grant));
    let brokered = tried(&agent, VALUE, "abroad");
    for part in &brokered {
        assert!(!part.contains("[secret"), "{part}");
    }
    let ran: Value = serde_json::from_str(&brokered[0]).unwrap();
    let id = ran["exec_id"].as_str().unwrap();
    let for_people = admin.get(&format!("/v1/execs/{id}")).text();
    assert!(for_people.contains("[secret github]"), "{for_people}");
    assert_hidden("what was brokered", for_people.as_bytes());
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_value_is_in_no_answer_no_log_and_no_file() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut server = Start::default().outside("GLOVEBOX_LOG", "trace").on(&trial);
    let client = server.client();
    let body = json!({"value_base64": VALUE_BASE64, "hosts": ["api.github.com:443"]});
    let keyed = client.clone().with("Idempotency-Key", "set-once");
    let first = put(&keyed, "github", &body);
    assert_hidden("the answer", &first.body);
    let first = done(first);
    assert_eq!(first["version"], 1);
    assert_eq!(first["deliveries"], json!(["file", "descriptor", "broker"]));
    let again = put(&keyed, "github", &body);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(done(again), first);
    let other = put(&keyed, "github", &json!({"value_base64": OTHER_BASE64}));
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "idempotency_conflict")
    );
    // The same value without a key is no other version; another one is.
    assert_eq!(done(put(&client, "github", &body))["version"], 1);
    let rotated = done(put(
        &client,
        "github",
        &json!({"value_base64": OTHER_BASE64}),
    ));
    assert_eq!(rotated["version"], 2);
    assert_eq!(rotated["hosts"], first["hosts"]);

    // Nor does a request that is refused come back with what was in it.
    let refused = [
        json!({"value_base64": format!("{VALUE_BASE64}!")}),
        json!({"value_base64": VALUE}),
        json!({"value_base64": [VALUE_BASE64]}),
        json!({"value": VALUE_BASE64, "value_base64": VALUE_BASE64}),
        json!({"value_base64": VALUE_BASE64, "deliveries": ["mail"]}),
        json!({"value_base64": VALUE_BASE64, "deliveries": []}),
        json!({"value_base64": VALUE_BASE64, "hosts": ["10.0.0.1:443"]}),
        json!({"value_base64": VALUE_BASE64, "hosts": ["*.github.com:443"]}),
        json!({"value_base64": VALUE_BASE64, "hosts": [], "deliveries": ["broker"]}),
        json!({"value_base64": "c2hvcnQ="}),
        json!({}),
    ];
    for body in &refused {
        let answer = put(&client, "refused", body);
        let code = answer.code();
        let known = ["invalid_argument", "conflict"].contains(&code.as_str());
        assert!(known, "{code}: {body}");
        assert_hidden("the refusal", &answer.body);
    }
    let bad_name = put(&client, "no..name", &body);
    assert_eq!(
        (bad_name.status, bad_name.code().as_str()),
        (400, "invalid_argument")
    );

    for path in [
        "/v1/secrets",
        "/v1/audit?limit=1000",
        "/v1/audit/export",
        "/metrics",
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_hidden(path, &answer.body);
    }
    let listed = done(client.get("/v1/secrets"));
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let audit = client.get("/v1/audit?tag=secret:github").text();
    for event in ["secret.set", "secret.rotated"] {
        assert!(audit.contains(event), "{audit}");
    }
    let mode = fs::metadata(trial.state().join("secrets.key")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
        0o600
    );
    assert_nowhere_in(&trial.state());

    let gone = done(client.send("DELETE", "/v1/secrets/github", None));
    assert_eq!(
        (&gone["secret"]["version"], &gone["still_held"]),
        (&json!(2), &json!([]))
    );
    let again = client.send("DELETE", "/v1/secrets/github", None);
    assert_eq!((again.status, again.code().as_str()), (404, "not_found"));
    let logged = wait_until(SOON, || server.said().contains("/v1/secrets/{name}"));
    let said = server.said();
    assert!(logged, "the log says nothing: {said}");
    assert_hidden("the log", said.as_bytes());
    assert_nowhere_in(&trial.state());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_person_grants_and_an_agent_does_not() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let role = |role: &str| server.client_of(&server.token_of(role, "local", role));
    let (agent, approver, auditor) = (role("agent"), role("approver"), role("auditor"));
    done(put(
        &server.client(),
        "github",
        &json!({"value_base64": VALUE_BASE64}),
    ));

    let grant = json!({"secret": "github", "conversation_id": "c-1"});
    for client in [&agent, &auditor] {
        let refused = client.post("/v1/secret-grants", &grant);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "forbidden")
        );
    }
    for client in [&agent, &approver, &auditor] {
        let set = put(client, "github", &json!({"value_base64": OTHER_BASE64}));
        assert_eq!((set.status, set.code().as_str()), (403, "forbidden"));
        let gone = client.send("DELETE", "/v1/secrets/github", None);
        assert_eq!((gone.status, gone.code().as_str()), (403, "forbidden"));
    }
    // Not even the names.
    for path in ["/v1/secrets", "/v1/secret-grants"] {
        let refused = agent.get(path);
        assert_eq!(refused.status, 403);
        assert!(!refused.text().contains("github"), "{}", refused.text());
        assert_eq!(approver.get(path).status, 200);
        assert_eq!(auditor.get(path).status, 200);
    }

    let made = done(approver.post("/v1/secret-grants", &grant));
    assert_eq!(made["granted_by"], "approver");
    assert_eq!(made["deliveries"], json!(["file", "descriptor"]));
    let id = made["grant_id"].as_str().unwrap();
    for wrong in [
        json!({"secret": "github"}),
        json!({"secret": "github", "agent_id": "a", "deliveries": ["env"]}),
        json!({"secret": "github", "agent_id": "a", "expires_at": "2099-01-01T00:00:00Z"}),
    ] {
        let answer = approver.post("/v1/secret-grants", &wrong);
        assert_eq!(answer.code(), "conflict", "{wrong}: {}", answer.text());
    }
    let past = json!({"secret": "github", "agent_id": "a", "expires_at": "2020-01-01T00:00:00Z"});
    assert_eq!(approver.post("/v1/secret-grants", &past).status, 409);
    let unknown = approver.post(
        "/v1/secret-grants",
        &json!({"secret": "none", "agent_id": "a"}),
    );
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "not_found")
    );

    let path = format!("/v1/secret-grants/{id}");
    assert_eq!(agent.send("DELETE", &path, None).status, 403);
    let revoked = done(approver.send("DELETE", &path, None));
    assert!(revoked["revoked"][0]["revoked_at"].is_string(), "{revoked}");
    assert_eq!(done(approver.send("DELETE", &path, None)), revoked);
    let live = done(approver.get("/v1/secret-grants"));
    assert_eq!(live["items"], json!([]));
    let all = done(approver.get("/v1/secret-grants?all=true&secret=github"));
    assert_eq!(all["items"][0]["grant_id"], id);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_secret_is_its_spaces_alone() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let admin = |space: &str| server.client_of(&server.token_of("admin", space, space));
    let (red, blue) = (admin("red"), admin("blue"));
    done(put(&red, "token", &json!({"value_base64": VALUE_BASE64})));
    assert_eq!(done(blue.get("/v1/secrets"))["items"], json!([]));
    let grant = json!({"secret": "token", "agent_id": "a"});
    assert_eq!(blue.post("/v1/secret-grants", &grant).status, 404);
    let made = done(red.post("/v1/secret-grants", &grant));
    let path = format!("/v1/secret-grants/{}", made["grant_id"].as_str().unwrap());
    assert_eq!(blue.send("DELETE", &path, None).status, 404);
    // The same name is another secret.
    assert_eq!(
        done(put(&blue, "token", &json!({"value_base64": OTHER_BASE64})))["version"],
        1
    );
    done(blue.send("DELETE", "/v1/secrets/token", None));
    assert_eq!(done(red.get("/v1/secrets"))["items"][0]["version"], 1);
    assert_eq!(
        done(red.get("/v1/secret-grants"))["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// What the kernel shows of a process's environment.
fn environment(server: &Server) -> Vec<u8> {
    fs::read(format!("/proc/{}/environ", server.pid())).unwrap()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[test]
fn a_key_from_the_environment_stays_in_no_environment() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let start = Start::default().outside("GLOVEBOX_SECRETS_KEY", HEX_KEY);
    let server = start.on(&trial);
    let shown = environment(&server);
    assert!(holds(&shown, "PATH="), "the control");
    assert!(!holds(&shown, HEX_KEY));
    let body = json!({"value_base64": VALUE_BASE64});
    done(put(&server.client(), "token", &body));
    assert!(!trial.state().join("secrets.key").exists());
    assert_eq!(server.stop(), 0);

    let mut without = Start::default().on(&trial);
    let refused = put(&without.client(), "token", &body);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "store_unavailable")
    );
    // What needs no key works.
    assert_eq!(
        done(without.client().get("/v1/secrets"))["items"][0]["version"],
        1
    );
    // The operator is told what is missing; callers learn nothing of the host.
    let told = wait_until(SOON, || without.said().contains("sealed with the key"));
    assert!(told, "{}", without.said());
    assert_eq!(without.stop(), 0);

    let server = start.on(&trial);
    assert_eq!(done(put(&server.client(), "token", &body))["version"], 1);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn two_servers_with_one_key_have_the_same_secrets() {
    let Some(database) = Database::new() else {
        return;
    };
    let trials = [(); 3].map(|()| Trial::in_memory(Caller::Root).unwrap());
    let (keys, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let with = |keys: &Path| {
        let keys = keys.to_str().unwrap();
        Start::default().with(["--database", database.url(), "--keys-dir", keys])
    };
    let one = with(keys.path()).on(&trials[0]);
    let two = with(keys.path()).on(&trials[1]);
    let body = json!({"value_base64": VALUE_BASE64});
    assert_eq!(done(put(&one.client(), "token", &body))["version"], 1);
    let there = two.client_of(&one.token_of("admin", "local", "both"));
    assert_eq!(done(put(&there, "token", &body))["version"], 1);
    let rotated = json!({"value_base64": OTHER_BASE64});
    assert_eq!(done(put(&there, "token", &rotated))["version"], 2);
    assert_eq!(done(put(&one.client(), "token", &rotated))["version"], 2);

    // Whoever has another key changes nothing and is told.
    for name in ["ledger.key", "token.key", "queue.key"] {
        fs::copy(keys.path().join(name), other.path().join(name)).unwrap();
    }
    let three = with(other.path()).on(&trials[2]);
    let stranger = three.client_of(&one.token_of("admin", "local", "stranger"));
    let refused = put(&stranger, "token", &body);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "store_unavailable")
    );
    assert_eq!(done(put(&one.client(), "token", &rotated))["version"], 2);
    let kept =
        database.psql("SELECT string_agg(encode(sealed, 'hex'), '') FROM glovebox.secret_values");
    assert!(kept.len() > 100, "{kept}");
    assert_hidden("the database", kept.as_bytes());
    for server in [one, two, three] {
        assert_eq!(server.stop(), 0);
    }
    trials.into_iter().for_each(Trial::end);
}

#[test]
fn what_a_running_exec_has_already_is_said_when_it_is_taken_back() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    done(put(
        &client,
        "github",
        &json!({"value_base64": VALUE_BASE64}),
    ));
    let grant = json!({"secret": "github", "conversation_id": "c-1"});
    let grant = done(client.post("/v1/secret-grants", &grant));
    let body = json!({
        "wait": false,
        "project_id": "holder",
        "task_ref": {"conversation_id": "c-1"},
        "secrets": [{"name": "github", "variable": "GH_FILE"}],
        "exec": {"kind": "argv", "command": "sh", "args": ["-c",
            "test -s \"$GH_FILE\" && : > there; while :; do sleep 0.1; done"]},
    });
    let started = client.post("/v1/execs", &body);
    assert_eq!(started.status, 202, "{}", started.text());
    let id = started.json()["exec_id"].as_str().unwrap().to_owned();
    let there = || client.get("/v1/workspaces/holder/files/there").status == 200;
    assert!(
        wait_until(SOON, there),
        "{}",
        client.get(&format!("/v1/execs/{id}")).text()
    );
    let path = format!("/v1/secret-grants/{}", grant["grant_id"].as_str().unwrap());
    let revoked = done(client.send("DELETE", &path, None));
    let held = json!([{"exec_id": id, "secret": "github", "version": 1, "delivery": "file"}]);
    assert_eq!(revoked["still_held"], held);
    let gone = done(client.send("DELETE", "/v1/secrets/github", None));
    assert_eq!(gone["still_held"], held);
    let canceled = client.post(&format!("/v1/execs/{id}/cancel"), &json!({}));
    assert_eq!(canceled.status, 200, "{}", canceled.text());
    let used = client.get("/v1/audit?tag=secret:github").text();
    for event in ["secret.used", "secret.grant_revoked", "secret.removed"] {
        assert!(used.contains(event), "{event}: {used}");
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
