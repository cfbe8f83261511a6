//! Simulations over HTTP: told while they run, judged, applied, done for real; and the words of
//! workflow engines.

use serde_json::{Value, json};
use support::{Client, Ears, Response, sh, with};

use crate::files::Desk;

const GATES: &str = r#"
[[gate]]
name = "text only"
because = "an agent writes text here"
check = [
  { path_scope = { within = ["*.txt"] } },
  { command = { argv = ["sh", "-c", "! grep -rq forbidden ."] } },
]
"#;

fn simulate(client: &Client, script: &str) -> Value {
    let body = with(sh(script), json!({"mode": "simulate"}));
    let ran = client.post("/v1/execs", &body);
    assert_eq!(ran.status, 200, "{}", ran.text());
    ran.json()
}

fn id(record: &Value) -> &str {
    record["exec_id"].as_str().unwrap()
}

fn settle(client: &Client, record: &Value, verb: &str) -> Response {
    client.send("POST", &format!("/v1/execs/{}/{verb}", id(record)), None)
}

fn effects(client: &Client, record: &Value) -> Vec<Value> {
    let page = client.get(&format!("/v1/execs/{}/effects", id(record)));
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.json()["complete"], true);
    page.json()["effects"].as_array().unwrap().clone()
}

#[test]
fn a_simulation_is_told_as_it_runs_judged_and_made_true() {
    let desk = Desk::with(GATES);
    let client = &desk.client;
    let blocked = simulate(client, "echo a > a.txt; echo b > b.bin");
    assert_eq!(blocked["status"], "held", "{blocked}");
    assert_eq!(blocked["verdict"], "hold");
    let gate = blocked["gates"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&gate["gate"], &gate["failure_code"]),
        (&json!("text only"), &json!("OUT_OF_SCOPE")),
        "{gate}"
    );
    let refused = settle(client, &blocked, "apply");
    assert_eq!((refused.status, refused.code().as_str()), (409, "held"));
    let refused = settle(client, &blocked, "keep");
    assert_eq!((refused.status, refused.code().as_str()), (409, "held"));
    // Nor by running something else on it, or by not letting it come to its end.
    for writes in ["if_ok", "held"] {
        let body = with(sh("true"), json!({"over": id(&blocked), "writes": writes}));
        assert_eq!(client.post("/v1/execs", &body).status, 409, "{writes}");
    }
    assert_eq!(settle(client, &blocked, "discard").status, 200);
    let body = with(
        sh("echo a > a.bin; sleep 60"),
        json!({"mode": "simulate", "policy_overrides": {"timeout": "5s"}}),
    );
    let cut = client.post("/v1/execs", &body).json();
    assert_eq!(cut["status"], "timed_out", "{cut}");
    for verb in ["apply", "keep"] {
        let refused = settle(client, &cut, verb);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (409, "held"),
            "{verb}"
        );
    }
    assert_eq!(desk.get("a.txt").status, 404);

    // What the gate's own program sees is the change itself.
    let blocked = simulate(client, "echo forbidden > a.txt");
    let gate = blocked["gates"].as_array().unwrap().last().unwrap();
    assert_eq!(gate["failure_code"], "TOOL_ERROR", "{gate}");

    desk.put("old.txt", b"old");
    let good = simulate(client, "echo a > a.txt; rm old.txt");
    assert_eq!(
        (&good["status"], &good["verdict"]),
        (&json!("succeeded"), &json!("hold"))
    );
    assert_eq!(desk.get("a.txt").status, 404);
    let told = effects(client, &good);
    let writes: Vec<(&Value, &Value)> = told
        .iter()
        .filter(|it| it["type"] == "filesystem_write")
        .map(|it| (&it["details"]["operation"], &it["details"]["path"]))
        .collect();
    assert_eq!(
        writes,
        [
            (&json!("created"), &json!("a.txt")),
            (&json!("removed"), &json!("old.txt"))
        ]
    );
    assert!(told.iter().any(|it| it["type"] == "process_spawn"));
    let events: Vec<_> = client
        .events(id(&good), 0)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let live = events.iter().filter(|it| it.name == "effect").count();
    assert!(live >= told.len(), "{live} of {}", told.len());

    let result = client
        .get(&format!("/v1/execs/{}/result", id(&good)))
        .json();
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(result["metadata"]["simulationMode"], true);
    assert_eq!(result["metadata"]["crvValidation"]["blockedCommit"], false);
    assert!(
        result["metadata"]["hipCortexEntryId"].is_string(),
        "{result}"
    );

    let applied = settle(client, &good, "apply");
    assert_eq!(applied.status, 200, "{}", applied.text());
    assert_eq!(desk.get("a.txt").body, b"a\n");
    assert_eq!(desk.get("old.txt").status, 404);
    desk.close();
}

#[test]
fn what_policy_forbids_makes_a_simulation_fail() {
    let desk = Desk::new();
    let record = simulate(
        &desk.client,
        "echo x > /etc/x; curl -s http://example.test/ || true",
    );
    assert_eq!(record["status"], "held", "{record}");
    assert_eq!(record["effect_count"]["violations"], 2, "{record}");
    let result = desk
        .client
        .get(&format!("/v1/execs/{}/result", id(&record)));
    assert_eq!(result.json()["success"], false);
    let reasons = result.json()["metadata"]["permissionViolations"].clone();
    assert_eq!(reasons.as_array().unwrap().len(), 2, "{reasons}");
    desk.close();
}

#[test]
fn an_agent_applies_alone_only_what_nobody_would_be_asked_about() {
    let desk = Desk::with("[settings]\napproval = \"manual\"\n");
    let agent = desk
        .server
        .client_of(&desk.server.token_of("agent", "local", "ann"));
    let record = simulate(&agent, "echo a > a.txt");
    assert_eq!(record["status"], "succeeded", "{record}");
    for verb in ["apply", "keep"] {
        let refused = settle(&agent, &record, verb);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "forbidden"),
            "{verb}"
        );
    }
    assert_eq!(desk.get("a.txt").status, 404);
    // Whoever looks at the effects and agrees applies it.
    let applied = settle(&desk.client, &record, "apply");
    assert_eq!(applied.status, 200, "{}", applied.text());
    assert_eq!(desk.get("a.txt").body, b"a\n");
    desk.close();
}

#[test]
fn a_simulation_is_done_for_real_once_more() {
    let desk = Desk::new();
    let record = simulate(&desk.client, "cat > said; echo a > a.txt");
    let ran = settle(&desk.client, &record, "rerun");
    assert_eq!(ran.status, 200, "{}", ran.text());
    let ran = ran.json();
    assert_eq!(
        (&ran["status"], &ran["verdict"]),
        (&json!("succeeded"), &json!("keep")),
        "{ran}"
    );
    assert_eq!(ran["preview"], record["preview"]);
    assert_ne!(ran["exec_id"], record["exec_id"]);
    assert_eq!(desk.get("a.txt").body, b"a\n");
    // Done once, nothing of it waits any more.
    assert_eq!(settle(&desk.client, &record, "apply").status, 404);
    assert_eq!(settle(&desk.client, &record, "rerun").status, 404);
    // What it did not show is not kept.
    let watched = "if [ -n \"$GLOVEBOX_SIMULATION\" ]; then echo x > one; else echo x > other; fi";
    let agent = desk.server.token_of("agent", "local", "ann");
    let agent = desk.server.client_of(&agent);
    let record = simulate(&agent, watched);
    let ran = settle(&agent, &record, "rerun").json();
    assert_eq!(ran["status"], "held", "{ran}");
    assert_eq!(ran["gates"][0]["gate"], "preview", "{ran}");
    assert_eq!(desk.get("other").status, 404);
    // The agent does not keep it either; people may.
    assert_eq!(settle(&agent, &ran, "apply").code(), "held");
    assert_eq!(settle(&desk.client, &ran, "apply").status, 200);
    assert_eq!(desk.get("other").body, b"x\n");
    // What it runs must be what was simulated.
    desk.put("which", b"one");
    let changed = simulate(&desk.client, "echo x > $(cat which)");
    desk.put("which", b"other");
    let plain = desk.client.post("/v1/execs", &sh("true")).json();
    for record in [changed, plain] {
        let refused = settle(&desk.client, &record, "rerun");
        assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"));
    }
    desk.close();
}

#[test]
fn a_task_is_configured_in_the_words_of_workflow_engines() {
    let desk = Desk::new();
    let task = |config: Value| {
        let body = with(sh("echo ran > ran"), json!({"sandbox_config": config}));
        desk.client.post("/v1/execs", &body)
    };
    // Policy is asked, and nothing is run.
    let mocked = task(json!({}));
    assert_eq!(mocked.json()["mode"], "mock", "{}", mocked.text());
    assert_eq!(mocked.json()["status"], "succeeded");
    assert_eq!(desk.get("ran").status, 404);
    let simulated = task(json!({"simulationMode": true, "type": "process"})).json();
    assert_eq!(simulated["mode"], "simulate", "{simulated}");
    assert_eq!(desk.get("ran").status, 404);
    let limits = json!({"resources": {"maxMemory": 268435456, "maxProcesses": 32}});
    let ran = task(json!({"type": "process", "permissions": limits})).json();
    assert_eq!(
        (&ran["status"], &ran["backend"]),
        (&json!("succeeded"), &json!("native"))
    );
    assert_eq!(ran["policy_snapshot"]["limits"]["pids"], 32, "{ran}");
    assert_eq!(desk.get("ran").body, b"ran\n");
    let vm = task(json!({"type": "vm"}));
    assert_eq!(vm.code(), "backend_unavailable", "{}", vm.text());
    let host = task(json!({"enabled": false}));
    assert_eq!((host.status, host.code().as_str()), (403, "policy_denied"));
    let power = task(json!({"type": "process", "permissions": {"capabilities": ["SYS_ADMIN"]}}));
    assert_eq!(power.status, 400, "{}", power.text());
    let both = with(
        sh("true"),
        json!({"mode": "simulate", "sandbox_config": {"type": "process"}}),
    );
    assert_eq!(desk.client.post("/v1/execs", &both).status, 409);
    desk.close();
}

#[test]
fn a_mock_answers_what_it_was_told_to() {
    let desk = Desk::new();
    let body = with(
        sh("echo ran > ran"),
        json!({"mode": "mock", "simulate": {"data": {"output": {"rows": 3}}}}),
    );
    let mocked = desk.client.post("/v1/execs", &body).json();
    let result = desk
        .client
        .get(&format!("/v1/execs/{}/result", id(&mocked)))
        .json();
    assert_eq!(result["data"], json!({"rows": 3}), "{result}");
    assert_eq!(result["metadata"]["sandboxId"], "none");
    assert_eq!(desk.get("ran").status, 404);
    desk.close();
}

#[test]
fn something_is_tried_on_changes_that_wait() {
    let desk = Desk::new();
    let body = with(sh("echo new > new; rm first"), json!({"writes": "held"}));
    let held = desk.client.post("/v1/execs", &body).json();
    let body = with(
        sh("cat new; ls; echo more > more"),
        json!({"over": id(&held), "writes": "dropped"}),
    );
    let tried = desk.client.post("/v1/execs", &body).json();
    assert_eq!(tried["stdout"], "new\nnew\n", "{tried}");
    assert_eq!(tried["verdict"], "discard");
    for path in ["new", "more"] {
        assert_eq!(desk.get(path).status, 404, "{path}");
    }
    assert_eq!(settle(&desk.client, &held, "keep").status, 200);
    desk.close();
}

#[test]
fn the_same_events_come_over_a_websocket() {
    let desk = Desk::new();
    let token = desk.server.token_of("agent", "local", "ann");
    let bearer = format!("Bearer {token}");
    let address = desk.server.address;
    let nobody = Client::new(address, None);
    let body = json!({
        "project_id": "p",
        "mode": "simulate",
        "wait": false,
        "exec": {"kind": "argv", "command": "sh",
                 "args": ["-c", "true; echo a > a.txt; cat; echo done"], "stdin": "in\n"},
    });
    let begun = desk.server.client_of(&token).post("/v1/execs", &body);
    let begun = begun.json();
    let path = format!("/v1/execs/{}/ws", id(&begun));
    let headers = [("Authorization", bearer.as_str())];
    let mut ears = Ears::open_at(&nobody, address, &path, &headers).unwrap();
    let mut heard = Vec::new();
    let end = loop {
        match ears.message() {
            Ok(message) => heard.push((message["event"].clone(), message["data"].clone())),
            Err(end) => break end,
        }
    };
    assert!(end.contains("that is all"), "{end}");
    let events = desk.client.events(id(&begun), 0).unwrap();
    let told: Vec<(Value, Value)> = events
        .map(Result::unwrap)
        .map(|it| (json!(it.name), it.data))
        .collect();
    assert_eq!(heard, told);
    let effects = heard.iter().filter(|(name, _)| name == "effect");
    assert!(effects.clone().count() >= 2, "{heard:?}");
    // Whoever may not read files sees no contents.
    assert!(
        effects
            .clone()
            .all(|(_, it)| it["effect"]["details"]["diff"].is_null())
    );
    let status = |headers: &[(&str, &str)]| {
        Ears::open_at(&nobody, address, &path, headers)
            .unwrap_err()
            .0
    };
    assert_eq!(status(&[]), 401);
    assert_eq!(desk.client.get(&path).status, 400);
    let nowhere = path.replace("/e_", "/e_0");
    let opened = Ears::open_at(&nobody, address, &nowhere, &headers);
    assert_eq!(opened.unwrap_err().0, 404);
    desk.close();
}
