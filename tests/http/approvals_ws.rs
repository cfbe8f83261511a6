//! The WebSocket of approvals: who may open it, what it says, and what it takes.

use std::time::Duration;

use serde_json::{Value, json};
use support::{Client, Ears, wait_until, with};

use crate::approvals_ground::{House, MANUAL, reply, text};

const PATIENCE: Duration = Duration::from_secs(60);

fn python(code: &str) -> Value {
    json!({"project_id": "p", "task_ref": {"session_id": "s1"},
           "exec": {"kind": "python", "command": "python", "args": ["-c", code]}})
}

#[test]
fn it_says_what_waits_and_how_it_ends() {
    let house = House::open(MANUAL);
    let (_, before) = house.ask(&python("import os; os.remove('x')"));
    let mut ears = house.listen(&house.ann_token);
    let asked = ears.required(&before);
    assert_eq!(asked["session_id"], "s1");
    assert_eq!(asked["code_preview"], "import os; os.remove('x')");
    let left = asked["timeout"].as_u64().unwrap();
    assert!((1..=1800).contains(&left), "{left}");
    let patterns = asked["detected_patterns"].as_array().unwrap();
    let first = text(&patterns[0]);
    assert!(
        first.starts_with('[') && first.contains(" at 1:"),
        "{patterns:?}"
    );
    assert!(!text(&asked["action_description"]).is_empty());
    assert_eq!(asked["risk_level"], asked["approval"]["ask"]["tier"]);
    // One that comes later, and is answered elsewhere.
    let (_, later) = house.ask(&python("open('y', 'w')"));
    ears.required(&later);
    assert_eq!(
        reply(&house.bob, &later, &json!({"decision": "deny"})).status,
        200
    );
    let end = ears.resolved(&later);
    assert_eq!(
        (&end["state"], &end["by"]),
        (&json!("denied"), &json!(["bob"]))
    );
    // Its own no, with a reason.
    ears.say(
        &json!({"type": "confirmation_response", "request_id": before, "approved": false,
                     "reason": "why?"}),
    );
    assert_eq!(ears.resolved(&before)["state"], "denied");
    let kept = house.ann.get(&format!("/v1/approvals/{before}")).json();
    assert_eq!(kept["replies"][0]["via"], "websocket", "{kept}");
    assert_eq!(kept["replies"][0]["answer"]["reason"], "why?");
    // A cancelled one is void.
    let (exec, id) = house.ask(&python("open('z', 'w')"));
    ears.required(&id);
    house.agent.cancel(&exec);
    assert_eq!(ears.resolved(&id)["state"], "void");
    house.close();
}

#[test]
fn code_is_edited_and_mistakes_end_nothing() {
    let house = House::open(MANUAL);
    let (exec, id) = house.ask(&python("open('bad', 'w')"));
    let mut ears = house.listen(&house.ann_token);
    ears.required(&id);
    for (message, code) in [
        ("no json".to_owned(), "invalid_argument"),
        ("{}".to_owned(), "invalid_argument"),
        (
            json!({"type": "confirmation_response", "request_id": id}).to_string(),
            "conflict",
        ),
        (
            json!({"type": "reply", "request_id": id, "decision": "yes"}).to_string(),
            "invalid_argument",
        ),
        (
            json!({"type": "reply", "request_id": format!("apr_{}", "0".repeat(32)),
                   "decision": "deny"})
            .to_string(),
            "not_found",
        ),
        (
            format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
            "invalid_argument",
        ),
    ] {
        ears.send(&message);
        let error = ears.error();
        assert_eq!(error["error"]["code"], code, "{message:.80} {error}");
    }
    ears.say(
        &json!({"type": "confirmation_response", "request_id": id, "approved": true,
                     "modified_code": "open('good', 'w')"}),
    );
    assert_eq!(ears.resolved(&id)["state"], "approved");
    assert_eq!(house.agent.ended(&exec)["status"], "succeeded");
    let work = house.trial.state().join("projects/p/work");
    assert!(work.join("good").exists() && !work.join("bad").exists());
    // What was answered already is said so, by name.
    ears.say(&json!({"type": "reply", "request_id": id, "decision": "deny"}));
    let error = ears.error();
    assert_eq!(
        (&error["error"]["code"], &error["request_id"]),
        (&json!("conflict"), &json!(id))
    );
    assert!(
        text(&error["error"]["message"]).contains("`ann`"),
        "{error}"
    );
    // A command has no code.
    let body =
        json!({"project_id": "p", "exec": {"kind": "argv", "command": "touch", "args": ["x"]}});
    let (_, id) = house.ask(&body);
    ears.required(&id);
    ears.say(
        &json!({"type": "confirmation_response", "request_id": id, "approved": true,
                     "modified_code": "ls"}),
    );
    assert_eq!(ears.error()["error"]["code"], "conflict");
    assert_eq!(
        house.ann.get(&format!("/v1/approvals/{id}")).json()["state"],
        "pending"
    );
    // Too much is the end of the connection, and of nothing else.
    ears.send(&"x".repeat((1 << 20) + 1));
    assert!(
        ears.message().unwrap_err().contains("Size"),
        "closed for its size"
    );
    assert_eq!(
        reply(&house.ann, &id, &json!({"decision": "deny"})).status,
        200
    );
    house.close();
}

#[test]
fn who_may_only_read_answers_nothing_and_other_spaces_hear_nothing() {
    let house = House::open(MANUAL);
    let mut foreign = house.listen(&house.stranger_token("admin"));
    let (_, id) = house.ask(&python("open('z', 'w')"));
    let mut agent = house.listen(&house.agent_token);
    agent.required(&id);
    agent.say(&json!({"type": "confirmation_response", "request_id": id, "approved": true}));
    assert_eq!(agent.error()["error"]["code"], "forbidden");
    // The stranger answers what it cannot know of, and hears of it as of what never was.
    foreign.say(&json!({"type": "confirmation_response", "request_id": id, "approved": true}));
    let heard = foreign.message().unwrap();
    assert_eq!(
        heard["error"]["code"], "not_found",
        "the first thing it hears: {heard}"
    );
    assert_eq!(
        house.ann.get(&format!("/v1/approvals/{id}")).json()["state"],
        "pending"
    );
    assert_eq!(
        reply(&house.ann, &id, &json!({"decision": "deny"})).status,
        200
    );
    house.close();
}

#[test]
fn only_a_good_token_from_a_good_place_opens_it() {
    let mut house = House::open(MANUAL);
    let address = house.server().address;
    let client = Client::new(address, None);
    let open =
        |headers: &[(&str, &str)]| Ears::open(&client, address, headers).map(|it| it.protocol);
    let status = |headers: &[(&str, &str)]| open(headers).unwrap_err().0;
    let bearer = format!("Bearer {}", house.ann_token);
    let protocols = format!("glovebox.v1, bearer.{}", house.ann_token);
    assert_eq!(open(&[("Authorization", &bearer)]), Ok(None));
    // The token is read from the protocols, and never said back.
    let named = [("Sec-WebSocket-Protocol", protocols.as_str())];
    assert_eq!(open(&named), Ok(Some("glovebox.v1".to_owned())));
    let origin = format!("http://{address}");
    assert_eq!(
        open(&[("Origin", &origin), named[0]]),
        Ok(Some("glovebox.v1".to_owned()))
    );
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("Origin", "http://evil.test"), named[0]]), 403);
    assert_eq!(
        status(&[("Authorization", &bearer), named[0]]),
        401,
        "two tokens"
    );
    let alone = format!("bearer.{}", house.ann_token);
    assert_eq!(status(&[("Sec-WebSocket-Protocol", &alone)]), 400);
    assert_eq!(
        status(&[("Sec-WebSocket-Protocol", "glovebox.v1, bearer.x")]),
        401
    );
    assert_eq!(
        status(&[("Authorization", &bearer), ("Content-Length", "0")]),
        400
    );
    // Never in the address, where it would be logged.
    let asked = client.get(&format!("/v1/approvals/ws?token={}", house.ann_token));
    assert_eq!(asked.status, 401);
    // The protocol is a token's place on this route alone.
    let elsewhere = client.clone().with("Sec-WebSocket-Protocol", &protocols);
    assert_eq!(elsewhere.get("/v1/approvals").status, 401);
    // A plain request is told what this is.
    assert_eq!(house.ann.get("/v1/approvals/ws").status, 400);
    // Sixteen of a space, and places come back.
    let mut all = Vec::new();
    assert!(wait_until(PATIENCE, || {
        match Ears::open(&client, address, &[("Authorization", &bearer)]) {
            Ok(ears) => all.push(ears),
            Err((status, _)) => assert_eq!(status, 503),
        }
        all.len() == 16
    }));
    assert_eq!(status(&[("Authorization", &bearer)]), 503);
    all.pop();
    assert!(wait_until(PATIENCE, || {
        open(&[("Authorization", &bearer)]).is_ok()
    }));
    drop(all);
    house.close();
}

#[test]
fn a_revoked_token_and_a_closing_server_end_it() {
    let mut house = House::open_with(MANUAL, |start| {
        start.patience("token", Duration::from_millis(500))
    });
    let made = house
        .admin()
        .post("/v1/tokens", &json!({"name": "eve", "role": "approver"}))
        .json();
    let mut eve = house.listen(&text(&made["secret"]));
    let mut ann = house.listen(&house.ann_token);
    let (_, id) = house.ask(&with(python("open('z', 'w')"), json!({})));
    eve.required(&id);
    ann.required(&id);
    let path = format!("/v1/tokens/{}", text(&made["token"]["token_id"]));
    assert_eq!(house.admin().send("DELETE", &path, None).status, 200);
    eve.say(&json!({"type": "confirmation_response", "request_id": id, "approved": true}));
    // It is told so, unless the server has looked at its token by itself just then.
    let mut told = Vec::new();
    let end = loop {
        match eve.message() {
            Ok(message) => told.push(message),
            Err(end) => break end,
        }
    };
    assert!(end.contains("Policy"), "{end}");
    let refused = |it: &Value| it["error"]["code"] == "unauthenticated";
    assert!(told.iter().all(refused), "{told:?}");
    assert_eq!(
        house.ann.get(&format!("/v1/approvals/{id}")).json()["state"],
        "pending"
    );
    house.server().signal(rustix::process::Signal::TERM);
    // Within the patience of an ear.
    assert!(ann.message().unwrap_err().contains("Away"));
    house.ended();
}
