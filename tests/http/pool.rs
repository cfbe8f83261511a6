//! Sandboxes that stand ready, as an operator sees them.

use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Start, Trial, sh, wait_until};

fn pool(client: &Client) -> Value {
    let answer = client.get("/v1/pool");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn sample(client: &Client, name: &str) -> u64 {
    let text = client.get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no `{name}` in {text}"));
    line.trim().parse().unwrap()
}

#[test]
fn who_gets_one_that_stood_ready_is_counted() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    assert_eq!(pool(&client)["enabled"], true);
    // Of its own kind: the first that stand may be interpreters. Of two, one may be looked at.
    let is_stocked = || {
        let shapes = pool(&client)["shapes"].as_array().unwrap().clone();
        let plain = |it: &Value| it["kind"] == "native" && it["idle"].as_u64() >= Some(2);
        shapes.iter().any(plain)
    };
    assert!(
        wait_until(Duration::from_secs(60), is_stocked),
        "{}",
        pool(&client)
    );
    let before = pool(&client);
    let ran = client.post("/v1/execs", &sh("true"));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let after = pool(&client);
    assert_eq!(
        after["hits"].as_u64(),
        before["hits"].as_u64().map(|it| it + 1),
        "{before} {after}"
    );
    assert_eq!(
        sample(&client, "glovebox_pool_hits_total"),
        after["hits"].as_u64().unwrap()
    );
    assert!(after["refill_mean_us"].as_u64().unwrap() > 0, "{after}");
    // A shape that nobody thought of goes cold, and is counted too.
    let other = json!({"project_id": "p", "policy_overrides": {"pids": 17},
                       "exec": {"kind": "argv", "command": "true"}});
    assert_eq!(client.post("/v1/execs", &other).status, 200);
    assert!(pool(&client)["misses"].as_u64() > before["misses"].as_u64());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn every_backend_says_what_it_gives_and_how_it_knows() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let listed = server.client().get("/v1/backends").json();
    let items = listed["items"].as_array().unwrap();
    let native = &items[0];
    assert_eq!(
        (&native["name"], &native["usable"]),
        (&json!("native"), &json!(true))
    );
    for guarantee in native["guarantees"].as_array().unwrap() {
        let grade = guarantee["grade"].as_str().unwrap();
        assert!(
            matches!(grade, "kernel" | "supervised" | "unavailable"),
            "{guarantee}"
        );
        assert!(
            !guarantee["evidence"].as_str().unwrap().is_empty(),
            "{guarantee}"
        );
    }
    for other in &items[1..] {
        assert_eq!(other["name"], "docker");
        // Usable, or it says why not.
        assert_eq!(
            other["usable"] == true,
            other.get("error").is_none(),
            "{other}"
        );
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
