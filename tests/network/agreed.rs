//! What people agree to for one exec: a host beside the list, an unrestricted network, a secret.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Server, Start, wait_until};

use crate::canary::{VALUE, VALUE_BASE64};
use crate::ground::{Ground, UNAWARE};

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on the ground, an agent who asks, and somebody who answers.
struct House {
    ground: Ground,
    server: Server,
    agent_token: String,
    agent: Client,
    ann: Client,
}

impl House {
    fn open(more: &str) -> Self {
        let ground = Ground::new(Caller::Root, "", more).unwrap();
        let server = Start::default()
            .outside("GLOVEBOX_CONFIG", ground.config.to_string_lossy())
            .on(&ground.trial);
        let agent_token = server.token_of("agent", "local", "robot");
        let ann = server.token_of("approver", "local", "ann");
        Self {
            agent: server.client_of(&agent_token),
            ann: server.client_of(&ann),
            ground,
            server,
            agent_token,
        }
    }

    /// The only approval that waits.
    #[track_caller]
    fn waiting(&self) -> Value {
        let mut items = Vec::new();
        let there = wait_until(PATIENCE, || {
            let page = self.ann.get("/v1/approvals?state=pending").json();
            items.clone_from(page["items"].as_array().unwrap());
            !items.is_empty()
        });
        assert!(there && items.len() == 1, "{items:?}");
        items.remove(0)
    }

    #[track_caller]
    fn reply(&self, approval: &Value, decision: &str) {
        let path = format!("/v1/approvals/{}/reply", approval["id"].as_str().unwrap());
        let answer = self.ann.post(&path, &json!({"decision": decision}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// What the ledger has, the oldest first.
    #[track_caller]
    fn ledger(&self, query: &str) -> Vec<Value> {
        let page = self.server.client().get(&format!("/v1/audit?{query}"));
        assert_eq!(page.status, 200, "{}", page.text());
        let mut entries = page.json()["items"].as_array().unwrap().clone();
        entries.sort_by_key(|it| it["seq"].as_u64());
        entries
    }

    #[track_caller]
    fn events(&self, approval: &Value) -> Vec<String> {
        let id = approval["id"].as_str().unwrap();
        let entries = self.ledger(&format!("tag=approval:{id}"));
        let event = |it: &Value| it["body"]["event"].as_str().unwrap().to_owned();
        entries.iter().map(event).collect()
    }

    fn close(self) {
        self.server.client().verify_ledger();
        assert_eq!(self.server.stop(), 0);
        self.ground.end();
    }
}

fn fetch(ground: &Ground, url: &str, net: &str) -> Value {
    let script = ground.fill(&format!("{UNAWARE}curl -sS --max-time 20 {url}"));
    json!({
        "project_id": "p",
        "exec": {"kind": "argv", "command": "/bin/sh", "args": ["-c", script]},
        "policy_overrides": {"network": net, "timeout": "60s"},
    })
}

const ASKED_FOR: [&str; 4] = [
    "approval.requested",
    "approval.replied",
    "approval.approved",
    "approval.used",
];

/// The command as the hint says it, at the server, as the agent.
fn follow(house: &House, hint: &str) -> Child {
    let options = hint.split('`').find(|part| part.contains("--ask"));
    let options = options.unwrap_or_else(|| panic!("nothing to follow: {hint}"));
    let options: Vec<&str> = options
        .split_whitespace()
        .skip_while(|word| !word.starts_with("--"))
        .collect();
    let script = house.ground.fill(&format!(
        "{UNAWARE}curl -sS --max-time 20 http://other.test:HTTP/hello"
    ));
    house
        .ground
        .trial
        .glovebox()
        .env("GLOVEBOX_TOKEN", &house.agent_token)
        .args(["--server", &format!("http://{}", house.server.address)])
        .args(["run", "--scratch"])
        .args(options)
        .args([
            "--because",
            "it has what is missing",
            "--",
            "/bin/sh",
            "-c",
            &script,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A refusal says how to ask; whoever asks so gets there when somebody agrees, and not otherwise.
#[test]
fn what_the_hint_of_a_blocked_attempt_says_leads_there_when_somebody_agrees() {
    let mut house = House::open("[ceilings]\nnetwork = \"allowlist\"");
    let blocked = fetch(&house.ground, "http://other.test:HTTP/hello", "allowlist");
    let record = house.agent.post("/v1/execs", &blocked).json();
    let refused = &record["traffic"]["refused"][0];
    assert_eq!(refused["code"], "NOT_IN_ALLOWLIST", "{record}");
    let hint = refused["hint"].as_str().unwrap().to_owned();
    assert_eq!(house.ground.kinds(), Vec::<String>::new());

    for (decision, code, story) in [
        (
            "deny",
            3,
            &["approval.requested", "approval.replied", "approval.denied"][..],
        ),
        ("allow_once", 0, &ASKED_FOR),
    ] {
        let command = follow(&house, &hint);
        let approval = house.waiting();
        let rule = house.ground.fill("other.test:HTTP");
        let upgrades = approval["ask"]["upgrades"].to_string();
        assert!(upgrades.contains(&rule), "{approval}");
        assert_eq!(house.ground.kinds(), Vec::<String>::new(), "{decision}");
        house.reply(&approval, decision);
        let output = command.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{decision}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_there = decision == "allow_once";
        assert_eq!(said.contains("hello from the site"), is_there, "{output:?}");
        let kinds = house.ground.kinds();
        assert_eq!(kinds.len(), usize::from(is_there), "{kinds:?}");
        let events = house.events(&approval);
        for event in story {
            assert!(events.iter().any(|it| it == event), "{event}: {events:?}");
        }
        if !is_there {
            continue;
        }
        let exec = approval["exec_id"].as_str().unwrap();
        let record = house.agent.record(exec);
        assert_eq!(record["consent"]["agreed"], "people", "{record}");
        assert_eq!(record["consent"]["approval_id"], approval["id"], "{record}");
        assert_eq!(record["traffic"]["refused"], Value::Null, "{record}");
        let kinds: Vec<Value> = house
            .ledger(&format!("exec_id={exec}"))
            .iter()
            .map(|it| it["kind"].clone())
            .collect();
        for kind in ["planned", "outcome"] {
            assert!(kinds.contains(&json!(kind)), "{kinds:?}");
        }
        let log = house.agent.get(&format!("/v1/execs/{exec}/network")).json();
        let attempts = log["attempts"].as_array().unwrap();
        assert!(
            attempts
                .iter()
                .any(|it| it["host"] == "other.test" && it["code"] == "OK"),
            "{log}"
        );
    }
    // It was for that exec alone.
    let record = house.agent.post("/v1/execs", &blocked).json();
    assert_eq!(record["traffic"]["refused"][0]["code"], "NOT_IN_ALLOWLIST");
    assert_eq!(house.ground.kinds(), Vec::<String>::new());
    house.close();
}

/// An unrestricted network takes all of it: policy that grants it, a person for each exec, and the
/// ledger.
#[test]
fn an_unrestricted_network_needs_policy_and_a_person_and_is_written_down() {
    // Nobody is asked for what policy does not let anybody give.
    let mut house = House::open("[ceilings]\nnetwork = \"allowlist\"");
    let body = fetch(
        &house.ground,
        "http://other.test:HTTP/hello",
        "unrestricted",
    );
    for on_exceed in ["refuse", "ask"] {
        let asked = support::with(body.clone(), json!({"on_exceed": on_exceed}));
        let refused = house.agent.post("/v1/execs", &asked);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "policy_denied"),
            "{}",
            refused.text()
        );
    }
    let listed = house.ann.get("/v1/approvals").json();
    assert_eq!(listed["items"], json!([]));
    assert_eq!(house.ground.kinds(), Vec::<String>::new());
    house.close();

    let mut house = House::open("[ceilings]\nnetwork = \"unrestricted\"");
    let script = "curl -sS --max-time 20 http://other.test:HTTP/hello; \
                  curl -s --max-time 20 http://inside.test:HTTP/hello";
    let mut body = fetch(&house.ground, "", "unrestricted");
    body["exec"]["args"][1] = json!(house.ground.fill(&format!("{UNAWARE}{script}")));
    // Without a word about asking it is refused, and silence or a no gives nothing.
    assert_eq!(house.agent.post("/v1/execs", &body).status, 403);
    body["on_exceed"] = json!("ask");
    let exec = house.agent.begin(&body);
    let approval = house.waiting();
    house.reply(&approval, "deny");
    assert_eq!(house.agent.ended(&exec)["status"], "policy_denied");
    assert_eq!(house.ground.kinds(), Vec::<String>::new());

    let exec = house.agent.begin(&body);
    let approval = house.waiting();
    assert_eq!(approval["ask"]["upgrades"][0]["asked"], "unrestricted");
    house.reply(&approval, "allow_once");
    let record = house.agent.ended(&exec);
    assert_eq!(record["status"], "succeeded", "{record}");
    let stdout = record["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("hello from the site\n"), "{record}");
    // Whatever people agree to, nothing private is reached that the operator does not list.
    assert!(stdout.contains("glovebox refused"), "{record}");
    assert_eq!(house.ground.kinds(), ["http"]);
    assert_eq!(record["policy_snapshot"]["network"], "unrestricted");
    assert_eq!(record["consent"]["agreed"], "people", "{record}");
    assert_eq!(record["backend"], "native");
    let events = house.events(&approval);
    for event in ASKED_FOR {
        assert!(events.iter().any(|it| it == event), "{event}: {events:?}");
    }
    let planned = house.ledger(&format!("exec_id={exec}&kind=planned"));
    assert_eq!(planned.len(), 1, "{planned:?}");
    // The next one asks again.
    house.agent.begin(&body);
    let next = house.waiting();
    assert_ne!(next["id"], approval["id"]);
    house.reply(&next, "deny");
    house.close();
}

/// Without a standing grant: what people agree to is for one exec, and masked as any other.
#[test]
fn a_secret_that_people_agree_to_is_given_once_and_masked() {
    let mut house = House::open("");
    let secret = json!({
        "value_base64": VALUE_BASE64,
        "hosts": [house.ground.fill("ok.test:TLS")],
        "deliveries": ["file", "descriptor", "broker", "env"],
    });
    let set = house
        .server
        .client()
        .send("PUT", "/v1/secrets/canary", Some(&secret));
    assert_eq!(set.status, 200, "{}", set.text());
    let shown = [
        ("file", "cat \"$CANARY\"; wc -c < \"$CANARY\""),
        ("descriptor", "cat <&\"$CANARY\"; echo 24"),
        (
            "env",
            "printf %s \"$CANARY\"; printf %s \"$CANARY\" | wc -c",
        ),
        (
            "broker",
            "curl -sS -H \"Authorization: Bearer $CANARY\" https://ok.test:TLS/echo; echo 24",
        ),
    ];
    for (delivery, script) in shown {
        let body = json!({
            "project_id": "p",
            "task_ref": {"conversation_id": "nobody-granted"},
            "exec": {"kind": "argv", "command": "/bin/sh",
                     "args": ["-c", house.ground.fill(script)]},
            "secrets": [{"name": "canary", "delivery": delivery}],
            "policy_overrides": {"network": "allowlist", "timeout": "60s"},
        });
        for decision in ["deny", "allow_once"] {
            let exec = house.agent.begin(&body);
            let approval = house.waiting();
            house.reply(&approval, decision);
            let record = house.agent.ended(&exec);
            let used = house.ledger(&format!("exec_id={exec}&tag=event:secret.used"));
            if decision == "deny" {
                assert_eq!(record["status"], "policy_denied", "{record}");
                assert_eq!(used, Vec::<Value>::new());
                continue;
            }
            assert_eq!(record["status"], "succeeded", "{delivery}: {record}");
            let stdout = record["stdout"].as_str().unwrap();
            assert!(stdout.contains("[secret canary]"), "{delivery}: {record}");
            // It was really there.
            assert!(stdout.contains(&VALUE.len().to_string()), "{record}");
            assert!(!record.to_string().contains(VALUE), "{delivery}");
            assert_eq!(record["secrets"][0]["name"], "canary", "{record}");
            assert_eq!(record["secrets"][0]["grant_id"], Value::Null, "{record}");
            assert_eq!(record["consent"]["approval_id"], approval["id"]);
            assert_eq!(used.len(), 1, "{delivery}: {used:?}");
        }
    }
    let seen = house.ground.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0]["authorization"], format!("Bearer {VALUE}"));
    let grants = house.server.client().get("/v1/secret-grants").json();
    assert_eq!(grants["items"], json!([]));
    house.close();
}
