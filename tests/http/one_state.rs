//! Two servers on one state directory, and commands beside them. One is killed: what it had running
//! is lost and said to be, what waited goes on at the other, and nobody else notices.

use std::thread;

use serde_json::{Value, json};
use support::{Caller, Client, Trial, wait_until};

use crate::pool_fire::{PATIENT, SOON, serve};

const EACH: usize = 12;

fn echo(text: &str) -> Value {
    json!({"exec": {"kind": "argv", "command": "echo", "args": [text]}})
}

fn record(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/execs/{id}")).json()
}

fn begun(client: &Client, line: &str) -> String {
    let body =
        json!({"wait": false, "exec": {"kind": "argv", "command": "sh", "args": ["-c", line]}});
    let begun = client.post("/v1/execs", &body);
    assert_eq!(begun.status, 202, "{}", begun.text());
    let id = begun.json()["exec_id"].as_str().unwrap().to_owned();
    let runs = || record(client, &id)["status"] == "running";
    assert!(wait_until(SOON, runs), "{id} never runs");
    id
}

#[test]
fn two_servers_share_a_state_directory_and_one_is_killed() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let start = serve(&trial, PATIENT);
    let (mut first, second) = (start.on(&trial), start.on(&trial));
    let (one, two) = (first.client(), second.client());
    // Both at once, with commands beside them.
    let told: Vec<String> = thread::scope(|scope| {
        let clients = [&one, &two].map(|client| {
            scope.spawn(move || {
                let ran = (0..EACH).map(|number| {
                    let ran = client.post("/v1/execs", &echo(&format!("n{number}")));
                    assert_eq!(ran.status, 200, "{}", ran.text());
                    let ran = ran.json();
                    assert_eq!(ran["status"], "succeeded", "{ran}");
                    ran["exec_id"].as_str().unwrap().to_owned()
                });
                ran.collect::<Vec<_>>()
            })
        });
        let commands = scope.spawn(|| {
            for _ in 0..4 {
                trial.run(["true"]).json().expect("succeeded", 0, None);
            }
        });
        commands.join().unwrap();
        clients
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    assert_eq!(told.len(), 2 * EACH);
    // What either was told is known to both.
    for id in &told {
        for client in [&one, &two] {
            assert_eq!(record(client, id)["status"], "succeeded", "{id}");
        }
    }
    let agent = first.client_of(&first.token_of("agent", "local", "asks"));
    let mut asking = echo("asked");
    asking["wait"] = json!(false);
    asking["policy_overrides"] = json!({"tier": "high"});
    let asked = agent.post("/v1/execs", &asking);
    assert_eq!(asked.status, 202, "{}", asked.text());
    let asked = asked.json();
    let text = |name: &str| asked[name].as_str().unwrap().to_owned();
    let (waits, approval) = (text("exec_id"), text("approval_id"));
    let lost = begun(&one, "sleep 600");
    let unharmed = begun(&two, "sleep 600");
    first.kill();
    let is_lost = || record(&two, &lost)["status"] == "lost";
    assert!(wait_until(SOON, is_lost), "{}", record(&two, &lost));
    assert_eq!(record(&two, &unharmed)["status"], "running");
    // The answer comes at the other, which has it by now, or soon.
    let reply = format!("/v1/approvals/{approval}/reply");
    let answered = two.post(&reply, &json!({"decision": "allow_once"}));
    assert_eq!(answered.status, 200, "{}", answered.text());
    let is_done = || record(&two, &waits)["status"] == "succeeded";
    assert!(wait_until(SOON, is_done), "{}", record(&two, &waits));
    let canceled = two.post(&format!("/v1/execs/{unharmed}/cancel"), &json!({}));
    assert_eq!(canceled.status, 200, "{}", canceled.text());
    for id in &told {
        assert_eq!(record(&two, id)["status"], "succeeded", "{id}");
    }
    assert_eq!(
        two.post("/v1/execs", &echo("on")).json()["status"],
        "succeeded"
    );
    trial.run(["true"]).json().expect("succeeded", 0, None);
    two.verify_ledger();
    assert_eq!(second.stop(), 0);
    trial.end();
}
