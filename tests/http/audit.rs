//! The ledger over HTTP: everything once, in order, and nothing changed unseen. And what answers
//! never tell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::{Value, json};
use support::{Api, Caller, Client, Furnished, Server, Start, Trial, glovebox};

fn entries(client: &Client) -> Vec<Value> {
    let export = client.get("/v1/audit/export");
    assert_eq!(export.status, 200, "{}", export.text());
    let lines = export.text();
    let all = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    // The first line is about the export, the last is its checkpoint.
    all.filter(|line: &Value| line.get("kind").is_some())
        .collect()
}

fn verify(client: &Client) -> Value {
    let answer = client.get("/v1/audit/verify");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn every_change_is_written_once_and_in_order() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let run = |command: &str, more: Value| {
        let mut body = json!({"exec": {"kind": "argv", "command": command}});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        client.post("/v1/execs", &body)
    };
    let before = entries(&client).len();
    let mut expected: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for command in ["true", "false", "no-such-program"] {
        let record = run(command, json!({})).json();
        let id = record["exec_id"].as_str().unwrap().to_owned();
        expected.insert(id, vec!["planned", "outcome"]);
    }
    let denied = run("true", json!({"policy_overrides": {"timeout": "20h"}}));
    assert_eq!(denied.status, 403, "{}", denied.text());
    let id = denied.json()["error"]["exec_id"]
        .as_str()
        .unwrap()
        .to_owned();
    expected.insert(id, vec!["refused"]);
    // Asked again, refused before anything, or only read: nothing is written.
    let keyed = client.clone().with("Idempotency-Key", "k");
    let body = json!({"exec": {"kind": "argv", "command": "true"}});
    let id = keyed.post("/v1/execs", &body).json()["exec_id"].clone();
    expected.insert(id.as_str().unwrap().to_owned(), vec!["planned", "outcome"]);
    assert_eq!(keyed.post("/v1/execs", &body).json()["exec_id"], id);
    assert_eq!(client.post("/v1/execs", &json!({"x": 1})).status, 400);
    assert_eq!(server.nobody().post("/v1/execs", &body).status, 401);
    client.post("/v1/policy/explain", &body);
    // Administration, each once; a second revocation changes nothing.
    let made = client
        .post("/v1/tokens", &json!({"name": "n", "role": "agent"}))
        .json();
    let token = format!("/v1/tokens/{}", made["token"]["token_id"].as_str().unwrap());
    client.send("DELETE", &token, None);
    client.send("DELETE", &token, None);
    let patch = json!({"max_queued": 9});
    assert_eq!(
        client.send("PATCH", "/v1/settings", Some(&patch)).status,
        200
    );
    let all = entries(&client);
    let numbers: Vec<u64> = all.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut administered = 0;
    for entry in &all[before..] {
        let kind = entry["kind"].as_str().unwrap();
        match entry["exec_id"].as_str().filter(|id| !id.is_empty()) {
            Some(id) => found.entry(id.to_owned()).or_default().push(kind),
            None => administered += usize::from(kind == "administered"),
        }
    }
    assert_eq!(found, expected);
    assert_eq!(
        administered, 3,
        "a token made, a token revoked, settings changed"
    );
    let verified = verify(&client);
    assert_eq!(verified["sound"], true, "{verified}");
    assert_eq!(verified["entries"], all.len());
    // The pages of the query are the same entries.
    let page = client.get("/v1/audit?limit=1000").json();
    let hashes = |items: &[Value]| {
        items
            .iter()
            .map(|it| it["hash"].clone())
            .collect::<Vec<_>>()
    };
    let mut newest_first = page["items"].as_array().unwrap().clone();
    newest_first.reverse();
    assert_eq!(hashes(&newest_first), hashes(&all));
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// What somebody with the file can do who is not stopped by its triggers.
fn tamper(trial: &Trial, sql: &str) {
    let database = Connection::open(trial.state().join("glovebox.db")).unwrap();
    database
        .busy_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    let triggers: Vec<(String, String)> = database
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        .unwrap()
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    let dropped = triggers
        .iter()
        .map(|(name, _)| format!("DROP TRIGGER {name};"));
    let dropped: String = dropped.collect();
    // At once, and put back: a server that looks in between would miss them.
    database
        .execute_batch(&format!("BEGIN IMMEDIATE; {dropped} {sql};"))
        .unwrap();
    for (_, guard) in &triggers {
        // Unless their table is gone.
        let _ = database.execute_batch(guard);
    }
    database.execute_batch("COMMIT").unwrap();
}

/// What the tool that knows a checkpoint says.
fn verify_against(trial: &Trial, checkpoint: &Path) -> (bool, String) {
    let output = Command::new(glovebox())
        .arg("--state-dir")
        .arg(trial.state())
        .args(["audit", "verify", "--checkpoint"])
        .arg(checkpoint)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.success(),
        said + &String::from_utf8_lossy(&output.stderr),
    )
}

fn with_history() -> (Trial, Server) {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    for _ in 0..4 {
        let ran = server.exec(&json!({"exec": {"kind": "argv", "command": "true"}}));
        assert_eq!(ran.status, 200, "{}", ran.text());
    }
    assert_eq!(verify(&server.client())["sound"], true);
    (trial, server)
}

/// Of a server whose ledger was tampered with: it may fail to write down that it stops, and leaves
/// nothing all the same.
fn end(trial: Trial, server: Server) {
    server.stop();
    trial.end();
}

#[test]
fn the_audit_memory_is_asked_by_tags_and_by_task() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    for (command, task) in [("true", "t 1"), ("false", "t 1"), ("true", "t2")] {
        let body = json!({
            "exec": {"kind": "argv", "command": command},
            "task_ref": {"task_id": task, "workflow_id": "nightly"},
        });
        client.post("/v1/execs", &body);
    }
    let found = |query: &str| -> Vec<Value> {
        let answer = client.get(&format!("/v1/audit?{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["items"].as_array().unwrap().clone()
    };
    assert_eq!(found("tag=success").len(), 2);
    assert_eq!(
        found("tags=success,live_execution&workflow_id=nightly").len(),
        2
    );
    assert_eq!(found("tag=tool_invocation&tags=failure").len(), 1);
    assert_eq!(found("tags=tool_invocation&without=success").len(), 1);
    assert_eq!(found("tags=success,failure").len(), 0);
    assert_eq!(found("mode=run&task_id=t2").len(), 1);
    assert_eq!(found("mode=simulate").len(), 0);
    assert!(found("tier=cold").is_empty());
    let hot = found("tier=hot&tag=failure");
    assert_eq!(hot[0]["retention_tier"], "hot");
    for wrong in [
        "tags=",
        "tags=a,",
        "mode=guessed",
        "tier=tepid",
        "tag=a&tag=b",
    ] {
        assert_eq!(
            client.get(&format!("/v1/audit?{wrong}")).status,
            400,
            "{wrong}"
        );
    }

    let timeline = client.get("/v1/audit/timeline/t%201").json();
    let steps = timeline["steps"].as_array().unwrap();
    let statuses: Vec<&str> = steps
        .iter()
        .map(|step| step["outcome"]["body"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["succeeded", "failed"]);
    assert!(
        steps
            .iter()
            .all(|step| step["planned"]["kind"] == "planned")
    );
    let first = client.get("/v1/audit/timeline/t%201?limit=1").json();
    let next = first["next"].as_str().unwrap();
    let rest = client.get(&format!("/v1/audit/timeline/t%201?cursor={next}"));
    assert_eq!(rest.json()["steps"], json!([steps[1]]));
    assert_eq!(client.get("/v1/audit/timeline/unknown").status, 404);
    assert!(verify(&client)["sound"].as_bool().unwrap());
    end(trial, server);
}

#[test]
fn no_edit_of_the_file_goes_unseen() {
    for (what, sql) in [
        (
            "one is deleted",
            "DELETE FROM ledger_entries WHERE space_id = 'local' AND seq = 4",
        ),
        (
            "two are exchanged",
            "UPDATE ledger_entries SET seq = -4 WHERE space_id = 'local' AND seq = 4;
             UPDATE ledger_entries SET seq = 4 WHERE space_id = 'local' AND seq = 5;
             UPDATE ledger_entries SET seq = 5 WHERE space_id = 'local' AND seq = -4",
        ),
        (
            "one byte is changed",
            "UPDATE ledger_entries SET body = replace(body, '\"exit_code\":0', '\"exit_code\":1')
             WHERE space_id = 'local' AND seq =
                (SELECT max(seq) FROM ledger_entries WHERE space_id = 'local' AND kind = 'outcome')",
        ),
        (
            "one is written twice",
            "INSERT INTO ledger_entries SELECT space_id,
                (SELECT max(seq) + 1 FROM ledger_entries WHERE space_id = 'local'),
                at, kind, exec_id, ids, tags, body, prev_hash, hash
             FROM ledger_entries WHERE space_id = 'local' AND seq = 3",
        ),
        (
            "the tail is cut off",
            "DELETE FROM ledger_entries WHERE space_id = 'local' AND seq >
                (SELECT max(seq) - 2 FROM ledger_entries WHERE space_id = 'local')",
        ),
        (
            "the time is changed",
            "UPDATE ledger_entries SET at = at + 1 WHERE space_id = 'local' AND seq = 3",
        ),
        (
            "a record is changed",
            "UPDATE sandbox_execs SET record = json_set(record, '$.exit_code', 7)
             WHERE exec_id = (SELECT max(exec_id) FROM sandbox_execs)",
        ),
        (
            "a record is deleted",
            "DELETE FROM sandbox_execs WHERE exec_id = (SELECT max(exec_id) FROM sandbox_execs)",
        ),
    ] {
        let (trial, server) = with_history();
        tamper(&trial, sql);
        let verified = verify(&server.client());
        assert_eq!(verified["sound"], false, "{what}: {verified}");
        assert_ne!(verified["problems"], json!([]), "{what}");
        let told = verified.to_string();
        assert!(!told.contains(trial.home().to_str().unwrap()), "{what}: {told}");
        end(trial, server);
    }
}

#[test]
fn an_older_copy_is_told_by_a_checkpoint_kept_elsewhere() {
    let (trial, server) = with_history();
    let database = trial.state().join("glovebox.db");
    assert_eq!(server.stop(), 0);
    let older = fs::read(&database).unwrap();
    let server = Start::default().on(&trial);
    let ran = server.exec(&json!({"exec": {"kind": "argv", "command": "true"}}));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let kept = server.client().get("/v1/audit/checkpoint");
    assert_eq!(kept.status, 200, "{}", kept.text());
    let head = verify(&server.client())["head"].clone();
    assert_eq!(
        (&kept.json()["seq"], &kept.json()["hash"]),
        (&head["seq"], &head["hash"])
    );
    let checkpoint = trial.home().join("checkpoint");
    fs::write(&checkpoint, &kept.body).unwrap();
    assert_eq!(server.stop(), 0);
    let (sound, said) = verify_against(&trial, &checkpoint);
    assert!(sound, "the control: {said}");
    for leftover in ["glovebox.db-wal", "glovebox.db-shm"] {
        let _ = fs::remove_file(trial.state().join(leftover));
    }
    fs::write(&database, older).unwrap();
    let (sound, said) = verify_against(&trial, &checkpoint);
    assert!(!sound, "an older copy went unseen: {said}");
    trial.end();
}

/// What no answer may hold, whoever asks and whatever goes wrong.
#[track_caller]
fn assert_silent(what: &str, text: &str, trial: &Trial, red: &Furnished) {
    let home = trial.home().to_str().unwrap();
    let secrets = [
        home,
        "/work/",
        "/root",
        ".rs:",
        "panicked",
        "backtrace",
        "stack",
        "SELECT",
        "rusqlite",
        "sqlite",
    ];
    // What skills say of themselves is everybody's: one asks a database, another writes a program.
    let of_skills =
        |it: &str| what.contains("/skills") && ["stack", "SELECT", "sqlite"].contains(&it);
    for secret in secrets
        .iter()
        .chain(&red.names())
        .filter(|it| !of_skills(it))
    {
        assert!(!text.contains(secret), "{what}: `{secret}` in {text}");
    }
}

#[test]
fn no_answer_tells_of_the_host_or_of_another_space() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let (blue, red) = (
        Furnished::new(&server, "blue"),
        Furnished::new(&server, "red"),
    );
    let api = Api::of(&server);
    let nowhere = blue.nowhere();
    let agent = server.client_of(&server.token_of("agent", "blue", "agent"));
    let kind = Some("application/json");
    for client in [&blue.admin, &agent, &server.nobody()] {
        for operation in api.operations() {
            let what = format!("{} {}", operation.method, operation.path);
            let silent = |text: &str| assert_silent(&what, text, &trial, &red);
            if operation.scope.is_some() && operation.method == "GET" {
                silent(&blue.send(client, operation, "").text());
            }
            silent(&nowhere.send(client, operation, "").text());
            let path = nowhere.fill(&operation.path);
            silent(&client.send("BREW", &path, None).text());
            if operation.scope.is_some() {
                silent(&client.get(&format!("{path}?nonsense=%00")).text());
                silent(
                    &client
                        .get(&format!("{path}/%2e%2e/%2e%2e/etc/passwd"))
                        .text(),
                );
            }
            if operation.is_mutating()
                && operation.body.as_deref() != Some("application/octet-stream")
            {
                let method = operation.method.as_str();
                silent(
                    &client
                        .try_bytes(method, &path, kind, b"{\"a\": nonsense}")
                        .unwrap()
                        .text(),
                );
            }
        }
    }
    // What the operator measures names no space, and nobody's things.
    let figures = server.client().get("/metrics");
    assert_eq!(figures.status, 200);
    assert_silent("/metrics", &figures.text(), &trial, &red);
    assert_silent("/metrics", &figures.text(), &trial, &blue);
    // The path of the state directory is for the operator alone, in the one place that is for it.
    let home = trial.home().to_str().unwrap();
    assert!(server.client().get("/sandbox/health").text().contains(home));
    // A store that fails under the server's hands is a failure, and not a story.
    tamper(
        &trial,
        "ALTER TABLE sandbox_execs RENAME TO gone; ALTER TABLE ledger_entries RENAME TO gone_too;",
    );
    let mut failed = 0;
    for operation in api.operations().iter().filter(|it| it.scope.is_some()) {
        let answer = blue.send(&blue.admin, operation, "");
        let what = format!("{} {} without its tables", operation.method, operation.path);
        assert_silent(&what, &answer.text(), &trial, &red);
        if answer.status >= 500 {
            assert!(answer.json()["error"]["request_id"].is_string(), "{what}");
            failed += 1;
        }
    }
    assert!(failed > 5, "{failed}");
    end(trial, server);
}
