//! Skills through a server.

use std::fs;

use serde_json::{Value, json};
use support::{Caller, Start, Trial};

use crate::ground::{root, write};

const SLOW: &str = "
import json, os
open('/workspace/artifacts/output.json', 'w').write(json.dumps({'ok': True}))
";

#[test]
fn a_skill_is_listed_called_and_answered() {
    let trial = Trial::new(Caller::Root).unwrap();
    let root = root(&trial);
    write(
        &root,
        "test.slow",
        SLOW,
        &json!({"type": "object", "required": ["ok"]}),
    );
    fs::create_dir(root.join("broken.one")).unwrap();
    let server = Start::default()
        .outside("GLOVEBOX_SKILLS_DIR", root.to_str().unwrap())
        .on(&trial);
    let client = server.client();
    let listed = client.get("/v1/skills").json();
    assert_eq!(listed["skills"].as_array().unwrap().len(), 10, "{listed}");
    assert_eq!(listed["invalid"][0]["dir"], "broken.one", "{listed}");
    let home = trial.home().to_str().unwrap().to_owned();
    assert!(
        !listed.to_string().contains(&home),
        "no path of the host's: {listed}"
    );
    assert_eq!(client.get("/skills").json(), listed);
    assert_eq!(client.get("/v1/skills/shell.run").json()["allowed"], true);
    for (path, status) in [
        ("/v1/skills/no.such", 404),
        ("/v1/skills/broken.one", 409),
        ("/v1/skills/..%2f", 404),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }

    let body = json!({"inputs": {"script": "echo hi; echo x > file"}, "project_id": "p",
        "task_ref": {"task_id": "t"}});
    for path in ["/v1/skills/shell.run/invoke", "/skills/shell.run/invoke"] {
        let answer = client.post(path, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        assert_eq!(answer["output"]["stdout"], "hi\n");
        assert_eq!(answer["output_valid"], true);
        assert_eq!(answer["skill"]["id"], "shell.run");
        assert_eq!(answer["exec"]["ids"]["task_id"], "t");
    }
    assert_eq!(client.get("/v1/workspaces/p/files/file").text(), "x\n");

    let taken = client
        .post("/v1/skills/test.slow/invoke", &json!({"wait": false}))
        .json();
    let id = taken["exec_id"].as_str().unwrap();
    client.ended(id);
    let answer = client.get(&format!("/v1/execs/{id}/output")).json();
    assert_eq!(answer["output"], json!({"ok": true}), "{answer}");
    // It is another one now, so nothing is said about what it promised then.
    fs::write(root.join("test.slow/run.py"), "print(1)").unwrap();
    let answer = client.get(&format!("/v1/execs/{id}/output")).json();
    assert!(answer["output_valid"].is_null(), "{answer}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_does_not_fit_starts_nothing_and_says_why() {
    let trial = Trial::new(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let call = |id: &str, body: Value| client.post(&format!("/v1/skills/{id}/invoke"), &body);
    for (id, body, status, code) in [
        ("shell.run", json!({"inputs": {}}), 409, "invalid_input"),
        ("shell.run", json!({}), 409, "invalid_input"),
        (
            "shell.run",
            json!({"inputs": {"script": 1}}),
            409,
            "invalid_input",
        ),
        (
            "python.run",
            json!({"inputs": {"script_path": "../x.py"}}),
            409,
            "invalid_input",
        ),
        ("no.such", json!({"inputs": {}}), 404, "not_found"),
        ("shell.run", json!({"inputs": []}), 400, "invalid_argument"),
        (
            "shell.run",
            json!({"inputs": {"script": "x"}, "exec": {}}),
            400,
            "invalid_argument",
        ),
        (
            "shell.run",
            json!({"inputs": {"script": "x"}, "env": {}}),
            400,
            "invalid_argument",
        ),
    ] {
        let answer = call(id, body.clone());
        let got = (answer.status, answer.code());
        assert_eq!(
            got,
            (status, code.to_owned()),
            "{id} {body}: {}",
            answer.text()
        );
    }
    let execs = client.get("/v1/execs").json();
    assert_eq!(execs["items"], json!([]), "{execs}");
    // Nobody but a skill puts files where skills' files lie.
    let body = json!({"exec": {"kind": "argv", "command": "true"}, "project_id": "p",
        "inputs": [{"path": "skill/shell.run-0/run.py", "content": "x"}]});
    assert_eq!(client.post("/v1/execs", &body).status, 409);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn policy_approvals_and_keys_hold_for_a_skill() {
    let trial = Trial::new(Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    fs::write(&config, "[tools]\ndeny = [\"skill.shell.run\"]\n").unwrap();
    let server = Start::default()
        .outside("GLOVEBOX_CONFIG", config.to_str().unwrap())
        .on(&trial);
    let client = server.client();
    let denied = client.post(
        "/v1/skills/shell.run/invoke",
        &json!({"inputs": {"script": "true"}}),
    );
    assert_eq!(
        (denied.status, denied.code().as_str()),
        (403, "policy_denied"),
        "{}",
        denied.text()
    );
    assert!(denied.text().contains("tools.deny"), "{}", denied.text());
    assert_eq!(client.get("/v1/skills/shell.run").json()["allowed"], false);

    let agent = server.client_of(&server.token_of("agent", "local", "asks"));
    let body = json!({"inputs": {"code": "print('agreed')"}, "wait": false,
        "policy_overrides": {"tier": "high"}});
    let asked = agent.post("/v1/skills/python.run/invoke", &body).json();
    assert_eq!(asked["status"], "awaiting_approval", "{asked}");
    assert!(asked["output"].is_null());
    let approval = asked["exec"]["approval_id"].as_str().unwrap();
    let seen = client.get(&format!("/v1/approvals/{approval}")).json();
    assert!(
        seen["ask"]["description"]
            .as_str()
            .unwrap()
            .contains("skill `python.run`"),
        "{seen}"
    );
    assert_eq!(seen["ask"]["inputs"].as_array().unwrap().len(), 1, "{seen}");
    let reply = client.post(
        &format!("/v1/approvals/{approval}/reply"),
        &json!({"decision": "allow_once"}),
    );
    assert_eq!(reply.status, 200, "{}", reply.text());
    let id = asked["exec_id"].as_str().unwrap();
    client.ended(id);
    let answer = agent.get(&format!("/v1/execs/{id}/output")).json();
    assert_eq!(answer["output"]["stdout"], "agreed\n", "{answer}");

    let auditor = server.client_of(&server.token_of("auditor", "local", "looks"));
    assert_eq!(auditor.get("/v1/skills").status, 200);
    let refused = auditor.post(
        "/v1/skills/python.run/invoke",
        &json!({"inputs": {"code": "1"}}),
    );
    assert_eq!(refused.status, 403);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn the_command_calls_a_skill_at_a_server() {
    let trial = Trial::new(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let address = format!("http://{}", server.address);
    let run = |words: &[&str]| {
        let mut command = trial.glovebox();
        command.args(["--server", &address, "skill"]).args(words);
        command.output().unwrap()
    };
    let printed = run(&["run", "python.run", "--scratch", "code=print(6*7)"]);
    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(printed.stdout, b"42\n");
    let answered = run(&[
        "run",
        "json.query",
        "--scratch",
        "data={\"a\": 1}",
        "query=a",
        "--json",
    ]);
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(answer["output"]["values"], json!([1]), "{answer}");
    let refused = run(&["run", "shell.run", "--scratch"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(run(&["ls"]).status.success());
    assert!(run(&["info", "git.diff"]).status.success());
    assert!(
        !run(&["check", "."]).status.success(),
        "it works on this machine alone"
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_server_without_skills_says_so_and_not_where_they_would_be() {
    let trial = Trial::new(Caller::Root).unwrap();
    let nowhere = trial.home().join("nowhere");
    let server = Start::default()
        .outside("GLOVEBOX_SKILLS_DIR", nowhere.to_str().unwrap())
        .on(&trial);
    let client = server.client();
    let body = json!({"inputs": {"script": "true"}});
    for answer in [
        client.get("/v1/skills"),
        client.post("/v1/skills/shell.run/invoke", &body),
    ] {
        let got = (answer.status, answer.code());
        assert_eq!(got, (503, "skills_not_configured".to_owned()));
        assert!(!answer.text().contains("nowhere"), "{}", answer.text());
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
