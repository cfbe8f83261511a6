//! The fields and routes that clients rely on, as they are written down for them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Start, Trial, sh, wait_until, with};

/// Every name that a record has.
const RECORD: &str = "exec_id client_id project_id mode skill_id cmd args cwd env_keys image \
    sandbox_id status exit_code signal timed_out killed limit_hit started_at ended_at duration_ms \
    stdout stderr stdout_bytes stderr_bytes stdout_truncated stderr_truncated stdout_path \
    stderr_path artifacts_dir artifacts backend isolation policy_snapshot capped risk usage effects \
    gates verdict error receipt ids";

fn exec(kind: &str, command: &str, args: &[&str]) -> Value {
    json!({"project_id": "p", "exec": {"kind": kind, "command": command, "args": args}})
}

#[track_caller]
fn done(client: &Client, body: &Value) -> Value {
    let answer = client.post("/v1/execs", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn names(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn each_kind_runs_in_its_shape_and_another_shape_is_refused_and_recorded() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    for (body, printed) in [
        (exec("argv", "printf", &["%s|", "a b", "$c"]), "a b|$c|"),
        (exec("shell", "bash", &["-lc", "echo $((6*7))"]), "42\n"),
        (exec("python", "python", &["-c", "print(6*7)"]), "42\n"),
        (
            exec("python", "python3", &["-u", "-c", "print(6*7)"]),
            "42\n",
        ),
        (
            with(
                exec("python", "python", &["/workspace/inputs/a/b.py"]),
                json!({"inputs": [{"path": "a/b.py", "content": "print('file')"}]}),
            ),
            "file\n",
        ),
    ] {
        let record = done(&client, &body);
        assert_eq!(
            (&record["status"], &record["stdout"]),
            (&json!("succeeded"), &json!(printed))
        );
        let record_names = names(&record);
        for name in RECORD.split_whitespace() {
            assert!(
                record_names.contains(&name),
                "no `{name}` in {record_names:?}"
            );
        }
    }
    for body in [
        exec("shell", "sh", &["-lc", "true"]),
        exec("shell", "bash", &["-c", "true"]),
        exec("shell", "bash", &["-lc", "true", "more"]),
        exec("python", "/usr/bin/python3", &["-c", "0"]),
        exec("python", "python", &["/workspace/work/a.py"]),
        exec("python", "python", &["/workspace/inputs/../work/a.py"]),
        exec("javascript", "node", &["-p", "1"]),
    ] {
        let answer = client.post("/v1/execs", &body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "policy_denied"),
            "{body}"
        );
        assert_recorded(&client, &answer.json());
    }
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// A refusal can be read under the id that it names.
#[track_caller]
fn assert_recorded(client: &Client, answer: &Value) {
    let id = answer["error"]["exec_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("no `exec_id` in {answer}"));
    let record = client.record(id);
    assert_eq!(record["status"], "policy_denied");
    assert_eq!(record["error"]["code"], "policy_denied", "{record}");
    assert_eq!(record["error"]["message"], answer["error"]["message"]);
    assert!(
        record["receipt"]["seq"].is_u64() && record["started_at"].is_null(),
        "{record}"
    );
    let told = client.events(id, 0).unwrap().map(Result::unwrap);
    let states: Vec<_> = told.map(|event| event.data["status"].clone()).collect();
    assert_eq!(states, ["policy_denied"]);
    let entries = client.get(&format!("/v1/audit?exec_id={id}")).json();
    assert_eq!(entries["items"].as_array().unwrap().len(), 1, "{entries}");
}

#[test]
fn what_policy_does_not_allow_is_refused_or_capped_as_asked() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let over = with(
        sh("ulimit -n"),
        json!({"policy_overrides": {"memory": "64G", "open_files": 100}}),
    );
    let answer = client.post("/v1/execs", &over);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "policy_denied"),
        "{}",
        answer.text()
    );
    let error = &answer.json()["error"];
    for field in [
        "code",
        "message",
        "stage",
        "blame",
        "retry",
        "hints",
        "request_id",
    ] {
        assert!(!error[field].is_null(), "no `{field}` in {error}");
    }
    assert_eq!(error["blame"], "policy");
    assert_eq!(
        Some(error["request_id"].as_str().unwrap()),
        answer.header("x-request-id")
    );
    assert_recorded(&client, &answer.json());

    let record = done(&client, &with(over, json!({"on_exceed": "cap"})));
    assert_eq!(
        (&record["status"], &record["stdout"]),
        (&json!("succeeded"), &json!("100\n"))
    );
    let capped = record["capped"].as_array().unwrap();
    assert_eq!(capped.len(), 1, "{record}");
    assert!(capped[0].to_string().contains("memory"), "{record}");
    let memory = record["policy_snapshot"]["limits"]["memory_bytes"]
        .as_u64()
        .unwrap();
    assert!(memory < 64 << 30, "{memory}");

    // The names of system 0, and never two for one thing.
    let old = json!({"policy_overrides": {"timeout_ms": 200}});
    let record = done(&client, &with(sh("sleep 30"), old));
    assert_eq!(
        (&record["status"], &record["limit_hit"]),
        (&json!("timed_out"), &json!("wall"))
    );
    let both = json!({"policy_overrides": {"timeout_ms": 200, "timeout": "9s"}});
    assert_eq!(
        client.post("/v1/execs", &with(sh("true"), both)).status,
        409
    );

    // Weaker isolation than policy gives is never granted quietly.
    for weaker in [
        json!({"network": "unrestricted"}),
        json!({"net": {"mode": "unrestricted"}}),
        json!({"security": "permissive"}),
    ] {
        let answer = client.post(
            "/v1/execs",
            &with(sh("true"), json!({"policy_overrides": weaker})),
        );
        assert!(
            matches!(answer.status, 403 | 503),
            "{weaker}: {}",
            answer.text()
        );
    }
    let image = json!({"policy_overrides": {"image": "alpine:3"}});
    let record = done(&client, &with(sh("true"), image));
    assert_eq!(
        (&record["status"], &record["error"]["code"]),
        (&json!("error"), &json!("backend_unavailable"))
    );
    for body in [
        json!({"policy_overrides": {"netwrok": "none"}}),
        json!({"polcy": {}}),
        json!({"exec": {"privileged": true}}),
        json!({"policy_overrides": {"timeout_ms": 0}}),
        json!({"policy_overrides": {"timeout_ms": -1}}),
        json!({"policy_overrides": {"timeout": "forever"}}),
        json!({"task_ref": {"tenant": "x"}}),
    ] {
        let answer = client.post("/v1/execs", &with(sh("true"), body.clone()));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_argument"),
            "{body}"
        );
    }
    let explained = client.post("/v1/policy/explain", &sh("true")).json();
    assert!(
        explained["fields"].as_array().unwrap().len() > 10,
        "{explained}"
    );
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_program_gets_its_inputs_stdin_directory_and_variables() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    const VALUE: &str = "a-value-that-lies-nowhere-73e1";
    const READ: &str = "what-was-read-lies-nowhere-91ab";
    let script = "pwd; echo \"$WORD\" | wc -c; wc -c; cat /workspace/inputs/t/x /workspace/inputs/b | od -An -tx1";
    let body = with(
        sh(script),
        json!({
            "exec": {"cwd": "/workspace/artifacts", "env": {"WORD": VALUE}, "stdin": READ},
            "inputs": [
                {"path": "t/x", "content": "é"},
                {"path": "b", "content_base64": "AP8K"},
            ],
            "client_id": "my-own.name",
            "task_ref": {
                "user_id": "u", "conversation_id": "c", "turn_id": "t", "task_id": "k",
                "workflow_id": "w", "agent_id": "a", "session_id": "s",
            },
        }),
    );
    let record = done(&client, &body);
    let printed = format!(
        "/workspace/artifacts\n{}\n{}\n c3 a9 00 ff 0a\n",
        VALUE.len() + 1,
        READ.len()
    );
    assert_eq!(record["stdout"], printed, "{record}");
    assert_eq!(record["cwd"], "/workspace/artifacts");
    assert_eq!(record["env_keys"], json!(["WORD"]));
    assert_eq!(record["client_id"], "my-own.name");
    let ids = json!({
        "space_id": "local", "user_id": "u", "conversation_id": "c", "turn_id": "t", "task_id": "k",
        "workflow_id": "w", "agent_id": "a", "session_id": "s",
    });
    assert_eq!(record["ids"], ids);
    let id = record["exec_id"].as_str().unwrap();
    assert!(id.len() == 34 && id.starts_with("e_"), "{id}");
    assert_eq!(client.record("my-own.name"), record);
    let taken = client.post(
        "/v1/execs",
        &with(
            sh("true"),
            json!({"client_id": "my-own.name", "task_ref": {"agent_id": "a"}}),
        ),
    );
    assert_eq!((taken.status, taken.code().as_str()), (409, "conflict"));

    for path in [
        "../x",
        "/x",
        "a/../../x",
        "a/./x",
        "a//x",
        "..",
        "",
        "a\u{0}",
    ] {
        let body = with(
            sh("true"),
            json!({"inputs": [{"path": path, "content": ""}]}),
        );
        let answer = client.post("/v1/execs", &body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_argument"),
            "{path:?}"
        );
    }
    for cwd in ["/etc", "..", "/workspace/../etc", "a/../../.."] {
        let answer = client.post("/v1/execs", &with(sh("pwd"), json!({"exec": {"cwd": cwd}})));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_argument"),
            "{cwd:?}"
        );
    }
    let twice = json!({"inputs": [{"path": "x", "content": ""}, {"path": "x", "content": "y"}]});
    assert_eq!(
        client.post("/v1/execs", &with(sh("true"), twice)).status,
        409
    );
    // A scratch workspace is gone afterwards; a conversation has one of its own.
    let scratch = json!({"exec": {"kind": "argv", "command": "touch", "args": ["left"]}});
    assert_eq!(done(&client, &scratch)["project_id"], "scratch");
    let talk = with(scratch, json!({"task_ref": {"conversation_id": "talk-1"}}));
    assert_eq!(done(&client, &talk)["project_id"], "talk-1");

    assert_eq!(server.stop(), 0);
    for secret in [VALUE, READ] {
        assert_eq!(files_with(&trial.state(), secret), Vec::<String>::new());
    }
    trial.end();
}

fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn output_and_artifacts_are_read_back() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let script = "seq 1 2000; printf 'bad \\377' >&2; cd /workspace/artifacts; mkdir d; \
                  printf '<script>' > d/page.html; ln -s /etc/passwd link; exit 3";
    let record = done(&client, &sh(script));
    // A program that failed is no failure of ours.
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    let id = record["exec_id"].as_str().unwrap();
    let whole: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    let route = |rest: &str| format!("/v1/execs/{id}/{rest}");
    let answer = client.get(&route("stdout"));
    assert_eq!(answer.text(), whole);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    for (offset, limit) in [(0, 10), (5, 1), (8880, 100), (8893, 5), (100_000, 5)] {
        let part = client.get(&route(&format!("stdout?offset={offset}&limit={limit}")));
        let expected: String = whole.chars().skip(offset).take(limit).collect();
        assert_eq!(
            (part.status, part.text()),
            (200, expected),
            "{offset} {limit}"
        );
    }
    let as_json = client.clone().with("Accept", "application/json");
    let stderr = as_json.get(&route("stderr")).json();
    assert_eq!(
        stderr,
        json!({"content": "YmFkIP8=", "encoding": "base64", "truncated": false, "bytes": 5, "missing_file": false})
    );
    let listed = client.get(&route("artifacts")).json();
    assert_eq!(listed["exec_id"], id);
    assert_eq!(listed["artifacts_dir"], record["artifacts_dir"]);
    assert_eq!(listed["missing_manifest"], false);
    let paths: Vec<_> = listed["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["path"])
        .collect();
    // A link is no artifact; what we wrote about the exec ourselves is listed too.
    assert_eq!(
        paths,
        ["d/page.html", "meta.json", "stderr.txt", "stdout.txt"]
    );
    assert_eq!(record["artifacts"], json!([listed["files"][0]]));
    let page = client.get(&route("artifacts/d/page.html"));
    assert_eq!(page.text(), "<script>");
    assert_eq!(
        page.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(
        page.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("sandbox")
    );
    for path in [
        "link",
        "d",
        "missing",
        "../../../../token",
        "..%2f..%2f..%2f..%2ftoken",
    ] {
        let answer = client.get(&route(&format!("artifacts/{path}")));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    // What was not asked to be kept in a record is still on file.
    assert_eq!(client.get(&route("stdout?limit=0")).status, 400);
    assert_eq!(client.get(&route("stdout?begin=1")).status, 400);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn lists_are_paged_newest_first_and_filtered() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let ids: Vec<String> = (0..7)
        .map(|n| {
            let task =
                json!({"task_ref": {"task_id": format!("t{}", n % 2), "conversation_id": "c"}});
            let body = with(sh(&format!("exit {}", n % 3)), task);
            done(&client, &body)["exec_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let listed = |query: &str| -> (Vec<String>, Value) {
        let answer = client.get(&format!("/v1/execs?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let page = answer.json();
        let items = page["items"].as_array().unwrap().iter();
        let items = items.map(|it| it["exec_id"].as_str().unwrap().to_owned());
        (items.collect(), page["next"].clone())
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(listed("").0, newest);
    let mut paged = Vec::new();
    let mut query = "limit=3".to_owned();
    loop {
        let (items, next) = listed(&query);
        assert!(items.len() <= 3);
        paged.extend(items);
        match next.as_str() {
            Some(next) => query = format!("limit=3&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, newest);
    let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..7)
            .rev()
            .filter(|n| wanted(*n))
            .map(|n| ids[n].clone())
            .collect()
    };
    assert_eq!(listed("task_id=t1").0, of(&|n| n % 2 == 1));
    assert_eq!(listed("status=succeeded").0, of(&|n| n % 3 == 0));
    assert_eq!(
        listed("status=failed&task_id=t0").0,
        of(&|n| n % 3 != 0 && n % 2 == 0)
    );
    assert_eq!(listed("conversation_id=c&project_id=p").0, newest);
    assert_eq!(listed("project_id=q").0, Vec::<String>::new());
    for wrong in ["status=done", "limit=0", "limit=x", "cursor=x", "task=t1"] {
        assert_eq!(
            client.get(&format!("/v1/execs?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn system_0_names_lead_to_the_same() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let answer = client.post(
        "/sandbox/execs",
        &sh("echo out; echo err >&2; echo a > /workspace/artifacts/a"),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = answer.json();
    assert!(record["error_reason"].is_null());
    assert_eq!(record["artifacts_path"], record["artifacts_dir"]);
    let id = record["exec_id"].as_str().unwrap();
    let route = |rest: &str| format!("/sandbox/execs/{id}{rest}");
    assert_eq!(client.get(&route("")).json(), record);
    assert_eq!(
        client.get("/sandbox/execs").json()["items"],
        json!([record])
    );
    let observed = client.get(&route("/observation")).json();
    assert_eq!(observed["status"], "succeeded");
    assert_eq!(observed["stdout"], client.get(&route("/stdout")).json());
    assert_eq!(observed["stdout"]["content"], "out\n");
    assert_eq!(observed["stderr"]["content"], "err\n");
    assert_eq!(
        observed["artifacts"],
        client.get(&route("/artifacts")).json()
    );
    assert_eq!(client.get(&route("/artifacts/a")).text(), "a\n");
    assert_eq!(client.get(&route("/events")).status, 200);
    let refused = client.post(
        "/sandbox/execs",
        &with(
            sh("true"),
            json!({"policy_overrides": {"memory_mb": 65536}}),
        ),
    );
    assert_eq!(refused.status, 403, "{}", refused.text());
    let refused = refused.json()["error"]["exec_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = client.get(&format!("/sandbox/execs/{refused}")).json();
    assert!(
        refused["error_reason"].as_str().unwrap().contains("memory"),
        "{refused}"
    );

    let host = trial.home().display().to_string();
    // A probe has few seconds, which a disk that is busy elsewhere may take.
    let mut health = client.get("/sandbox/health?probe=true");
    wait_until(Duration::from_secs(60), || {
        if health.json()["probe_ok"] != true {
            health = client.get("/sandbox/health?probe=true");
        }
        health.json()["probe_ok"] == true
    });
    assert_eq!(health.json()["probe_ok"], true, "{}", health.text());
    assert_eq!(health.json()["status"], "ok");
    assert_eq!(health.json()["workspace_writable"], true);
    assert!(health.text().contains(&host), "{}", health.text());
    for (role, space) in [("agent", "local"), ("auditor", "local"), ("admin", "other")] {
        let other = server.client_of(&server.token_of(role, space, &format!("{role}-{space}")));
        let health = other.get("/sandbox/health");
        assert_eq!(health.status, 200);
        let text = health.text();
        assert!(
            !text.contains(&host) && !text.contains("/proc") && !text.contains("/sys"),
            "{role} of {space}: {text}"
        );
        assert!(health.json()["workspace_root_native"].is_null());
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
