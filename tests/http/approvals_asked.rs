//! How much one agent may ask, how long a kind stays allowed, and that what is read is what is there.

use std::time::Duration;

use serde_json::{Value, json};
use support::{wait_until, with};

use crate::approvals_ground::{House, MANUAL, ask, reply, text};

const PATIENCE: Duration = Duration::from_secs(60);

fn touch(name: &str) -> Value {
    json!({"project_id": "p", "wait": false, "task_ref": {"conversation_id": "chat"},
           "exec": {"kind": "argv", "command": "touch", "args": [name]}})
}

#[test]
fn one_agent_leaves_the_others_of_its_space_their_places() {
    let mut house = House::open(MANUAL);
    house.admin().set(&json!({"max_queued_per_space": 8}));
    let mut first = None;
    for number in 0..2 {
        first = first.or(Some(house.ask(&touch(&format!("f{number}"))).1));
    }
    // It cannot say that it is another.
    for (id, status, why) in [
        ("robot", 429, "`robot` has as many"),
        ("another", 403, "this token is the agent `robot`"),
    ] {
        let body = with(touch("more"), json!({"task_ref": {"agent_id": id}}));
        let refused = house.agent.post("/v1/execs", &body);
        assert_eq!(refused.status, status, "{}", refused.text());
        let said = text(&refused.json()["error"]["message"]);
        assert!(said.starts_with(why), "{said}");
    }
    // Those that wait are its own after a restart too.
    house.restart();
    let refused = house.agent.post("/v1/execs", &touch("more"));
    assert_eq!(refused.status, 429, "{}", refused.text());
    let other = house.server_token("agent", "other");
    ask(&other, &touch("g"));
    // One that was answered gives its place up.
    let denied = reply(&house.ann, &first.unwrap(), &json!({"decision": "deny"}));
    assert_eq!(denied.status, 200, "{}", denied.text());
    house.ask(&touch("more"));
    house.close();
}

#[test]
fn a_kind_is_allowed_until_its_end_and_no_longer_than_policy_says() {
    let config = format!("{MANUAL}grant_expire = \"1h\"\ngrant_expire_max = \"2h\"\n");
    let house = House::open(&config);
    let (_, id) = house.ask(&touch("a"));
    for wrong in ["2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z"] {
        let answer = json!({"decision": "allow_kind", "expires_at": wrong});
        let refused = reply(&house.ann, &id, &answer);
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(
            refused.text().contains("grant_expire_max"),
            "{}",
            refused.text()
        );
    }
    let once = json!({"decision": "allow_once", "expires_at": "2099-01-01T00:00:00Z"});
    assert_eq!(reply(&house.ann, &id, &once).status, 409);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(5);
    let answer = json!({"decision": "allow_kind", "expires_at": soon});
    let granted = reply(&house.ann, &id, &answer);
    assert_eq!(granted.status, 200, "{}", granted.text());
    let grants = || house.agent.get("/v1/grants").json()["items"].clone();
    let found = grants();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert!(
        wait_until(PATIENCE, || grants() == json!([])),
        "it never ends"
    );
    // People are asked again, and an answer without an end has the one of policy.
    let (_, id) = house.ask(&touch("b"));
    let granted = reply(&house.ann, &id, &json!({"decision": "allow_kind"}));
    assert_eq!(granted.status, 200, "{}", granted.text());
    let grant = grants()[0].clone();
    let end: jiff::Timestamp = text(&grant["expires_at"]).parse().unwrap();
    let left = end.duration_since(jiff::Timestamp::now());
    assert!((3000..=3600).contains(&left.as_secs()), "{grant}");
    assert!(grant["last_used_at"].is_null(), "{grant}");
    let record = house
        .agent
        .post("/v1/execs", &with(touch("c"), json!({"wait": true})))
        .json();
    assert_eq!(record["consent"]["agreed"], "grant", "{record}");
    assert!(grants()[0]["last_used_at"].is_string(), "{}", grants());
    house.close();
}

#[test]
fn what_is_not_seen_is_spelled_out_to_people() {
    let house = House::open(MANUAL);
    let body = with(
        touch("a\u{200b}b\u{202e}c\u{1b}[2J"),
        json!({"justification": "fine\u{feff}"}),
    );
    let (exec, id) = house.ask(&body);
    let asked = house.ann.get(&format!("/v1/approvals/{id}")).json();
    let shown = r"a\u{200b}b\u{202e}c\u{1b}[2J";
    assert_eq!(asked["ask"]["code_preview"], format!("touch {shown}"));
    assert_eq!(asked["ask"]["justification"], r"fine\u{feff}");
    // What runs is what was asked for, not what was shown of it.
    let allowed = reply(&house.ann, &id, &json!({"decision": "allow_once"}));
    assert_eq!(allowed.status, 200, "{}", allowed.text());
    assert_eq!(house.agent.ended(&exec)["status"], "succeeded");
    let work = house.trial.state().join("projects/p/work");
    assert!(work.join("a\u{200b}b\u{202e}c\u{1b}[2J").exists());
    house.close();
}
