//! What one agent may use in an hour.

use serde_json::{Value, json};
use support::{Caller, Client, Server, Start, Trial, sh};

fn agent(server: &Server, name: &str) -> Client {
    let body = json!({"name": name, "role": "agent", "agent_id": name});
    let made = server.client().post("/v1/tokens", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    server.client_of(made.json()["secret"].as_str().unwrap())
}

#[track_caller]
fn runs(client: &Client, body: &Value) -> Value {
    let answer = client.post("/v1/execs", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[track_caller]
fn is_spent(client: &Client) {
    let answer = client.post("/v1/execs", &sh("true"));
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (429, "budget_exceeded")
    );
    let retry = &answer.json()["error"]["retry"];
    let after = retry["after_ms"].as_u64().unwrap();
    // Minutes leave the window one by one.
    assert!((1..=3_660_000).contains(&after), "{}", answer.text());
    assert_eq!(retry["allowed"], true, "{}", answer.text());
    let header: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!(
        header >= 1 && header.abs_diff(after / 1000) <= 1,
        "{header} s, {after} ms"
    );
}

#[test]
fn a_budget_holds_for_its_agent_alone_and_over_a_restart() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut server = Start::default().on(&trial);
    let operator = server.client();
    operator.set(&json!({
        "budget": {"execs_per_hour": 2},
        "agent_budgets": {
            "busy": {"cpu_seconds_per_hour": 1},
            "loud": {"bytes_out_per_hour": 5000},
            "free": {},
        },
    }));
    let [often, busy, loud, free] = ["often", "busy", "loud", "free"].map(|it| agent(&server, it));

    runs(&often, &sh("true"));
    assert_eq!(runs(&often, &sh("exit 1"))["status"], "failed");
    is_spent(&often);
    let burn = "import time\nwhile time.process_time() < 1.2: pass";
    let burn = json!({"exec": {"kind": "python", "command": "python", "args": ["-c", burn]}});
    runs(&busy, &burn);
    is_spent(&busy);
    // Output and artifacts count together.
    runs(&loud, &sh("head -c 3000 /dev/zero"));
    runs(
        &loud,
        &sh("head -c 3000 /dev/zero > /workspace/artifacts/a"),
    );
    is_spent(&loud);
    for _ in 0..3 {
        runs(&free, &sh("head -c 3000 /dev/zero"));
    }
    // Nobody's agent has nobody's budget.
    for _ in 0..3 {
        runs(&operator, &sh("true"));
    }

    server.kill();
    let server = Start::default().on(&trial);
    let again = |old: &Client| old.at(server.address);
    for spent in [&often, &busy, &loud] {
        is_spent(&again(spent));
    }
    runs(&again(&free), &sh("true"));
    // A refusal uses nothing, and costs nobody else anything.
    server
        .client()
        .set(&json!({"budget": {"execs_per_hour": 3}}));
    runs(&again(&often), &sh("true"));
    is_spent(&again(&often));
    server
        .client()
        .set(&json!({"agent_budgets": {"busy": null, "loud": {"bytes_out_per_hour": null}}}));
    runs(&again(&loud), &sh("true"));
    runs(&again(&busy), &sh("true"));
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
