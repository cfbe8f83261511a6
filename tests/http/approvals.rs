//! What people are asked and what comes of their answers, at the real server.

use serde_json::{Value, json};
use support::{Ears, sh, wait_until, with};

use crate::approvals_ground::{House, MANUAL, allow, ask, reply, text};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

fn touch(name: &str) -> Value {
    json!({"project_id": "p", "exec": {"kind": "argv", "command": "touch", "args": [name]}})
}

fn shell(script: &str) -> Value {
    json!({"project_id": "p",
           "exec": {"kind": "shell", "command": "bash", "args": ["-lc", script]}})
}

fn is_there(house: &House, name: &str) -> bool {
    house
        .trial
        .state()
        .join("projects/p/work")
        .join(name)
        .exists()
}

#[track_caller]
fn approval(house: &House, id: &str) -> Value {
    let found = house.ann.get(&format!("/v1/approvals/{id}"));
    assert_eq!(found.status, 200, "{}", found.text());
    found.json()
}

/// The state that it comes to: when the server's own round finds an answer first, whoever gave it may be
/// told so a moment before anything came of it.
#[track_caller]
fn comes_to(house: &House, id: &str, state: &str) {
    let came = wait_until(PATIENCE, || approval(house, id)["state"] == state);
    assert!(came, "not `{state}`: {}", approval(house, id));
}

/// Nothing was run, and whoever reads the record is told so.
#[track_caller]
fn assert_not_run(house: &House, exec: &str, code: &str) -> Value {
    let record = house.agent.ended(exec);
    assert_eq!(record["status"], "policy_denied", "{record}");
    assert_eq!(record["error"]["code"], code, "{record}");
    assert!(record["started_at"].is_null(), "{record}");
    let said = text(&record["error"]["message"]);
    assert!(said.contains("there is no output of it"), "{said}");
    record
}

#[test]
fn ten_at_once_by_two_people_on_both_ways_with_a_restart_in_the_middle() {
    let mut house = House::open(MANUAL);
    let asked: Vec<(String, String)> = std::thread::scope(|scope| {
        let agent = &house.agent;
        let all: Vec<_> = (0..10)
            .map(|number| scope.spawn(move || ask(agent, &touch(&format!("f{number}")))))
            .collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let answer_half = |house: &House, half: &[(String, String)]| {
        let (address, token, bob) = (house.address(), &house.ann_token, &house.bob);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut ears = Ears::at(address, token);
                // All of them, in whatever order they are told.
                for (_, id) in half.iter().step_by(2) {
                    ears.say(&json!({"type": "confirmation_response", "request_id": id,
                                     "approved": true}));
                    let end = ears.resolved(id);
                    assert_eq!(
                        (&end["state"], &end["by"]),
                        (&json!("approved"), &json!(["ann"]))
                    );
                }
            });
            scope.spawn(|| {
                for (_, id) in half.iter().skip(1).step_by(2) {
                    let state = text(&allow(bob, id)["state"]);
                    assert!(["approved", "used"].contains(&state.as_str()), "{state}");
                }
            });
        });
    };
    answer_half(&house, &asked[..5]);
    house.restart();
    // What was not answered waits still, and is what it was.
    for (exec, id) in &asked[5..] {
        assert_eq!(house.agent.record(exec)["status"], "awaiting_approval");
        assert_eq!(approval(&house, id)["state"], "pending");
    }
    answer_half(&house, &asked[5..]);
    for (number, (exec, id)) in asked.iter().enumerate() {
        let record = house.agent.ended(exec);
        // One that ran while the server was killed is lost, and is said to be; none runs twice.
        let fine = record["status"] == "succeeded" || (number < 5 && record["status"] == "lost");
        assert!(fine, "{record}");
        assert_eq!(record["consent"]["agreed"], "people", "{record}");
        assert_eq!(approval(&house, id)["state"], "used");
        let story = house.story(id);
        let told = [
            "approval.requested",
            "approval.replied",
            "approval.approved",
            "approval.used",
        ];
        assert_eq!(story, told, "{id}");
        if record["status"] == "succeeded" {
            assert!(is_there(&house, &format!("f{number}")), "f{number}");
        }
    }
    house.close();
}

#[test]
fn whoever_waits_gets_the_end_and_an_answer_may_come_first() {
    let house = House::open(MANUAL);
    let waited = std::thread::scope(|scope| {
        let agent = &house.agent;
        let waiting = scope.spawn(|| agent.post("/v1/execs", &touch("waited")));
        let mut id = String::new();
        assert!(wait_until(PATIENCE, || {
            let page = house.ann.get("/v1/approvals?state=pending").json();
            id = page["items"][0]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            !id.is_empty()
        }));
        allow(&house.ann, &id);
        waiting.join().unwrap()
    });
    assert_eq!(waited.status, 200, "{}", waited.text());
    assert_eq!(waited.json()["status"], "succeeded");
    // Nobody waits when the answer comes; who asks later is told the end.
    let agent = house.agent.clone().with("Idempotency-Key", "once");
    let body = with(touch("early"), json!({"wait": false}));
    let asked = agent.post("/v1/execs", &body).json();
    allow(&house.ann, &text(&asked["approval_id"]));
    house.agent.ended(&text(&asked["exec_id"]));
    let again = agent.post("/v1/execs", &body);
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.json()["exec_id"], asked["exec_id"]);
    assert!(is_there(&house, "early"));
    house.close();
}

#[test]
fn a_no_ends_it_and_is_told_with_its_reason() {
    let house = House::open(MANUAL);
    let (exec, id) = house.ask(&touch("never"));
    let body = json!({"decision": "deny", "reason": "not today"});
    let answer = reply(&house.ann, &id, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["state"], "denied");
    let record = assert_not_run(&house, &exec, "denied");
    let said = text(&record["error"]["message"]);
    assert!(said.contains("`ann` said no: not today"), "{said}");
    assert!(!is_there(&house, "never"));
    assert_eq!(
        house.story(&id),
        ["approval.requested", "approval.replied", "approval.denied"]
    );
    // Who waited for it gets the same as an error.
    let refused = std::thread::scope(|scope| {
        let agent = &house.agent;
        let waiting = scope.spawn(|| agent.post("/v1/execs", &touch("never")));
        let mut id = String::new();
        assert!(wait_until(PATIENCE, || {
            let page = house.ann.get("/v1/approvals?state=pending").json();
            id = page["items"][0]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            !id.is_empty()
        }));
        assert_eq!(
            reply(&house.ann, &id, &json!({"decision": "deny"})).status,
            200
        );
        waiting.join().unwrap()
    });
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"));
    house.close();
}

#[test]
fn what_nobody_answers_in_time_is_denied() {
    let house = House::open("[approvals]\nmode = \"manual\"\nexpire = \"2s\"\n");
    let (exec, id) = house.ask(&touch("late"));
    assert_not_run(&house, &exec, "expired");
    let late = reply(&house.ann, &id, &json!({"decision": "allow_once"}));
    assert_eq!(
        (late.status, late.code().as_str()),
        (410, "expired"),
        "{}",
        late.text()
    );
    assert_eq!(approval(&house, &id)["state"], "expired");
    assert_eq!(house.story(&id), ["approval.requested", "approval.expired"]);
    assert!(!is_there(&house, "late"));
    house.close();
}

#[test]
fn an_edit_is_assessed_anew() {
    let config = format!(
        "{MANUAL}[[rule]]\nname = \"no-chmod\"\ndecision = \"deny\"\ncommand = \"chmod *\"\n"
    );
    let house = House::open(&config);
    let (exec, id) = house.ask(&shell("touch first"));
    let edit = |script: &str| {
        json!({"decision": "edit",
               "exec": {"kind": "shell", "command": "bash", "args": ["-lc", script]}})
    };
    let refused = reply(&house.ann, &id, &edit("chmod 777 first"));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "policy_denied"),
        "{}",
        refused.text()
    );
    let shape = json!({"decision": "edit",
                       "exec": {"kind": "shell", "command": "sh", "args": ["-c", "ls"]}});
    assert_eq!(reply(&house.ann, &id, &shape).status, 403);
    assert_eq!(approval(&house, &id)["state"], "pending");
    let edited = reply(&house.ann, &id, &edit("touch second"));
    assert_eq!(edited.status, 200, "{}", edited.text());
    let record = house.agent.ended(&exec);
    assert_eq!(record["status"], "succeeded", "{record}");
    assert_eq!(record["args"], json!(["-lc", "touch second"]));
    assert!(is_there(&house, "second") && !is_there(&house, "first"));
    house.close();
}

#[test]
fn an_approval_is_used_once() {
    let house = House::open(MANUAL);
    let (exec, id) = house.ask(&touch("once"));
    allow(&house.ann, &id);
    house.agent.ended(&exec);
    for answer in [
        json!({"decision": "allow_once"}),
        json!({"decision": "deny"}),
    ] {
        let again = reply(&house.bob, &id, &answer);
        assert_eq!((again.status, again.code().as_str()), (409, "conflict"));
        let said = text(&again.json()["error"]["message"]);
        assert!(said.contains("used") && said.contains("`ann`"), "{said}");
    }
    assert_eq!(
        approval(&house, &id)["replies"].as_array().unwrap().len(),
        1
    );
    // The same command is asked about anew.
    let (_, other) = house.ask(&touch("once"));
    assert_ne!(other, id);
    assert_eq!(
        reply(&house.bob, &other, &json!({"decision": "deny"})).status,
        200
    );
    house.close();
}

#[test]
fn nobody_answers_their_own_request_and_an_agent_answers_none() {
    let house = House::open(MANUAL);
    let admin = house.admin();
    let body = with(touch("own"), json!({"wait": false}));
    let own = text(&admin.post("/v1/execs", &body).json()["approval_id"]);
    let (_, others) = house.ask(&touch("other"));
    let yes = json!({"decision": "allow_once"});
    let refused = reply(&admin, &own, &yes);
    assert_eq!(refused.status, 403, "{}", refused.text());
    let said = text(&refused.json()["error"]["message"]);
    assert_eq!(said, "nobody approves their own request");
    for (id, seen) in [(&own, 404), (&others, 200)] {
        let refused = reply(&house.agent, id, &yes);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "forbidden")
        );
        assert_eq!(approval(&house, id)["state"], "pending");
        // It may see where to go with what it asked for itself.
        let status = house.agent.get(&format!("/v1/approvals/{id}")).status;
        assert_eq!(status, seen);
    }
    let body = json!({"name": "sly", "role": "agent", "scopes": ["approvals:write"]});
    assert_eq!(admin.post("/v1/tokens", &body).status, 403);
    let auditor = house.server_token("auditor", "eve");
    assert_eq!(reply(&auditor, &others, &yes).status, 403);
    assert_eq!(auditor.get("/v1/approvals").status, 200);
    assert_eq!(
        reply(&house.ann, &own, &json!({"decision": "deny"})).status,
        200
    );
    assert_eq!(
        reply(&admin, &others, &json!({"decision": "deny"})).status,
        200
    );
    house.close();
}

#[test]
fn a_kind_is_allowed_in_its_conversation_until_it_is_revoked() {
    let house = House::open(MANUAL);
    let chat = |name: &str| {
        with(
            touch(name),
            json!({"task_ref": {"conversation_id": "chat"}}),
        )
    };
    let (exec, id) = house.ask(&chat("one"));
    // Asked before the kind was allowed, and answered after.
    let (waiting, its) = house.ask(&chat("waiting"));
    let answer = reply(&house.ann, &id, &json!({"decision": "allow_kind"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(house.agent.ended(&exec)["status"], "succeeded");
    allow(&house.bob, &its);
    assert_eq!(house.agent.ended(&waiting)["consent"]["by"], json!(["bob"]));
    // The same kind runs by itself, and says on whose word.
    let ran = house.agent.post("/v1/execs", &chat("two"));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let consent = ran.json()["consent"].clone();
    assert_eq!(
        (&consent["agreed"], &consent["by"]),
        (&json!("grant"), &json!(["ann"]))
    );
    // Not in another conversation, not another kind, and never an upgrade.
    let elsewhere = with(
        touch("x"),
        json!({"task_ref": {"conversation_id": "other"}}),
    );
    let more = with(
        chat("three"),
        json!({"on_exceed": "ask", "policy_overrides": {"memory": "2G"}}),
    );
    let another = with(
        chat("x"),
        json!({"exec": {"command": "mkdir", "args": ["d"]}}),
    );
    for body in [&elsewhere, &more, &another] {
        let (_, id) = house.ask(body);
        assert_eq!(
            reply(&house.ann, &id, &json!({"decision": "deny"})).status,
            200
        );
    }
    let (_, id) = house.ask(&more);
    let refused = reply(&house.ann, &id, &json!({"decision": "allow_kind"}));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (409, "conflict"),
        "{}",
        refused.text()
    );
    assert_eq!(
        reply(&house.ann, &id, &json!({"decision": "deny"})).status,
        200
    );
    let grants = house.agent.get("/v1/grants?conversation_id=chat").json();
    let grant = &grants["items"][0];
    assert_eq!(
        (&grant["used"], &grant["granted_by"]),
        (&json!(1), &json!("ann")),
        "{grant}"
    );
    let path = format!("/v1/grants/{}", text(&grant["id"]));
    assert_eq!(house.agent.send("DELETE", &path, None).status, 403);
    let revoked = house.bob.send("DELETE", &path, None);
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    assert_eq!(revoked.json()["revoked_by"], "bob");
    assert_eq!(house.agent.get("/v1/grants").json()["items"], json!([]));
    let all = house.agent.get("/v1/grants?revoked=true").json();
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    let (_, id) = house.ask(&chat("four"));
    assert_eq!(
        reply(&house.ann, &id, &json!({"decision": "deny"})).status,
        200
    );
    house.close();
}

#[test]
fn something_critical_takes_as_many_people_as_configured() {
    let house = House::open("[approvals]\nquorum = 2\n");
    let critical = with(
        touch("both"),
        json!({"policy_overrides": {"tier": "critical"}}),
    );
    let (exec, id) = house.ask(&critical);
    assert_eq!(allow(&house.ann, &id)["state"], "pending");
    let again = reply(&house.ann, &id, &json!({"decision": "allow_once"}));
    assert_eq!(again.status, 409, "{}", again.text());
    assert_eq!(house.agent.record(&exec)["status"], "awaiting_approval");
    allow(&house.bob, &id);
    comes_to(&house, &id, "used");
    let record = house.agent.ended(&exec);
    assert_eq!(record["consent"]["by"], json!(["ann", "bob"]), "{record}");
    // One no is enough.
    let (exec, id) = house.ask(&critical);
    allow(&house.ann, &id);
    assert_eq!(
        reply(&house.bob, &id, &json!({"decision": "deny"})).status,
        200
    );
    assert_not_run(&house, &exec, "denied");
    house.close();
}

#[test]
fn a_request_goes_away_with_its_exec() {
    let house = House::open(MANUAL);
    let (exec, id) = house.ask(&touch("gone"));
    assert_eq!(house.agent.cancel(&exec)["status"], "canceled");
    assert_eq!(approval(&house, &id)["state"], "void");
    let late = reply(&house.ann, &id, &json!({"decision": "allow_once"}));
    assert_eq!(late.status, 409, "{}", late.text());
    assert!(text(&late.json()["error"]["message"]).contains("void"));
    assert_eq!(house.story(&id), ["approval.requested", "approval.void"]);
    assert!(!is_there(&house, "gone"));
    house.close();
}

#[test]
fn more_than_policy_gives_is_asked_for_and_may_be_narrowed() {
    let house = House::open("");
    let body = with(
        sh("true"),
        json!({"on_exceed": "ask", "justification": "the table is large",
               "policy_overrides": {"memory": "2G"}}),
    );
    let (exec, id) = house.ask(&body);
    let shown = approval(&house, &id);
    assert_eq!(shown["ask"]["justification"], "the table is large");
    assert_eq!(shown["ask"]["upgrades"][0]["field"], "memory", "{shown}");
    let clash = reply(&house.ann, &id, &json!({"decision": "narrow"}));
    assert_eq!(clash.status, 409, "{}", clash.text());
    let less = json!({"decision": "narrow", "policy_overrides": {"memory": "1536M"}});
    let answer = reply(&house.ann, &id, &less);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = house.agent.ended(&exec);
    assert_eq!(record["status"], "succeeded", "{record}");
    let given = &record["policy_snapshot"]["limits"]["memory_bytes"];
    assert_eq!(given, &json!(1536u64 << 20), "{record}");
    // For that exec alone.
    assert_eq!(
        house
            .agent
            .post("/v1/execs", &with(body, json!({"on_exceed": "refuse"})))
            .status,
        403
    );
    house.close();
}

#[test]
fn approvals_are_listed_by_what_they_are_and_others_are_not_found() {
    let house = House::open(MANUAL);
    let asked: Vec<_> = (0..3)
        .map(|number| {
            let task = json!({"task_ref": {"conversation_id": format!("c{number}")}});
            house.ask(&with(touch("x"), task))
        })
        .collect();
    assert_eq!(
        reply(&house.ann, &asked[0].1, &json!({"decision": "deny"})).status,
        200
    );
    let ids = |query: &str| -> Vec<String> {
        let page = house.ann.get(&format!("/v1/approvals{query}"));
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| text(&it["id"]))
            .collect()
    };
    let of = |all: &[usize]| {
        all.iter()
            .map(|it| asked[*it].1.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(""), of(&[2, 1, 0]));
    assert_eq!(ids("?state=pending"), of(&[2, 1]));
    assert_eq!(ids("?state=denied"), of(&[0]));
    assert_eq!(ids("?conversation_id=c1"), of(&[1]));
    assert_eq!(ids(&format!("?exec_id={}", asked[2].0)), of(&[2]));
    let first = house.ann.get("/v1/approvals?limit=2").json();
    assert_eq!(
        ids(&format!("?limit=2&cursor={}", text(&first["next"]))),
        of(&[0])
    );
    let stranger = house.stranger("approver");
    let nowhere = format!("apr_{}", "0".repeat(32));
    let seen = |path: &str| {
        let answer = stranger.get(path);
        (answer.status, answer.json()["error"]["message"].clone())
    };
    let missing = seen(&format!("/v1/approvals/{nowhere}"));
    assert_eq!(missing.0, 404);
    assert_eq!(seen(&format!("/v1/approvals/{}", asked[1].1)), missing);
    assert_eq!(seen("/v1/approvals/nonsense"), missing);
    let foreign = reply(&stranger, &asked[1].1, &json!({"decision": "allow_once"}));
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (404, "not_found")
    );
    assert_eq!(approval(&house, &asked[1].1)["state"], "pending");
    house.close();
}

#[test]
fn policy_is_explained_and_tried_on_what_was_asked_before() {
    let house = House::open("");
    let body = touch("tried");
    assert_eq!(house.agent.post("/v1/execs", &body).status, 200);
    let explained = house.agent.post("/v1/policy/explain", &body).json();
    assert_eq!(explained["permit"], "allow", "{explained}");
    let try_it = json!({"config": MANUAL, "limit": 10});
    assert_eq!(house.ann.post("/v1/policy/replay", &try_it).status, 403);
    let replayed = house.admin().post("/v1/policy/replay", &try_it);
    assert_eq!(replayed.status, 200, "{}", replayed.text());
    let replayed = replayed.json();
    let difference = &replayed["differences"][0];
    let said = (&difference["said"], &difference["would_say"]);
    assert_eq!(said, (&json!("allow"), &json!("ask")), "{replayed}");
    let wrong = house.admin().post(
        "/v1/policy/replay",
        &json!({"config": "[approvals]\nx = 1\n"}),
    );
    assert_eq!(wrong.status, 409, "{}", wrong.text());
    assert!(wrong.text().contains("`x`"), "{}", wrong.text());
    house.close();
}

/// The two answers that most people give have routes of their own.
#[test]
fn a_request_is_approved_or_denied_by_name() {
    let house = House::open(MANUAL);
    let command = touch("x");
    let (exec, id) = house.ask(&command);
    let approved = house
        .ann
        .post(&format!("/v1/approvals/{id}/approve"), &json!({}));
    assert_eq!(approved.status, 200, "{}", approved.text());
    let ran = || house.agent.get(&format!("/v1/execs/{exec}")).json()["status"].clone();
    assert!(wait_until(PATIENCE, || ran() == "succeeded"), "{}", ran());
    let (exec, id) = house.ask(&command);
    let path = format!("/v1/approvals/{id}/deny");
    let own = house.agent.post(&path, &json!({}));
    assert_eq!(own.status, 403, "{}", own.text());
    let denied = house.ann.post(&path, &json!({"reason": "not today"}));
    assert_eq!(denied.json()["replies"][0]["answer"]["reason"], "not today");
    let record = house.agent.get(&format!("/v1/execs/{exec}")).json();
    assert_eq!(record["status"], "policy_denied", "{record}");
    let late = house
        .bob
        .post(&format!("/v1/approvals/{id}/approve"), &json!({}));
    assert_eq!(late.status, 409, "{}", late.text());
    house.close();
}
