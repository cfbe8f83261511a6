//! The wall between agents of one space, where a request could lead around it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::house::{House, shell};

/// A server with people and agents; each token by its name.
struct Space {
    house: House,
}

impl Space {
    fn under(config: &str) -> Self {
        Self {
            house: House::under(config),
        }
    }

    fn agent(&self, name: &str, more: Value) -> String {
        let own = json!({"name": format!("token-{name}"), "role": "agent", "agent_id": name});
        self.house.token(&with(own, more))
    }

    fn send(&self, token: &str, method: &str, path: &str, body: &Value) -> Reply {
        Ask::new(method, path)
            .token(token)
            .json(body)
            .send(self.house.address)
    }

    /// The record of what ended well, or was refused.
    fn run(&self, token: &str, line: &str, more: Value) -> Value {
        let ran = self.send(token, "POST", "/v1/execs", &with(shell(line), more));
        assert!(ran.status < 300, "{}", ran.text());
        ran.json()
    }

    fn prints(&self, token: &str, line: &str, more: Value) -> String {
        self.run(token, line, more)["stdout"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn secret(&self, name: &str, value: &[u8]) {
        let value = BASE64_STANDARD.encode(value);
        let body = json!({"value_base64": value});
        let path = format!("/v1/secrets/{name}");
        let kept = self.send(&self.house.admin, "PUT", &path, &body);
        assert!(kept.status < 300, "{}", kept.text());
    }
}

fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else {
        return body;
    };
    for (key, value) in more {
        body[key] = value;
    }
    body
}

pub(crate) fn what_an_agent_sends_along_is_that_agents() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let admin = &space.house.admin;
    let site = |more: Value| with(json!({"project_id": "site"}), more);
    let sent = |text: &str| site(json!({"inputs": [{"path": "job.sh", "content": text}]}));
    let all = "cat /workspace/inputs/* 2>/dev/null; true";
    assert_eq!(space.prints(&ann, all, sent("echo ann\n")), "echo ann\n");
    assert_eq!(space.prints(&bob, all, site(json!({}))), "", "bob sees it");
    assert_eq!(space.prints(&bob, all, sent("echo bob\n")), "echo bob\n");
    assert_eq!(space.prints(admin, all, sent("echo us\n")), "echo us\n");
    // What was sent stays, for whoever sent it and for whom an exec is run.
    assert_eq!(space.prints(&ann, all, site(json!({}))), "echo ann\n");
    let named = site(json!({"task_ref": {"agent_id": "bob"}}));
    assert_eq!(space.prints(admin, all, named), "echo bob\n");
    // An agent empties its own, people all.
    let reset = |token: &str| {
        let body = json!({"inputs": true});
        let done = space.send(token, "POST", "/v1/workspaces/site/reset", &body);
        assert_eq!(done.status, 200, "{}", done.text());
    };
    reset(&bob);
    let left = [&ann, &bob, admin].map(|it| space.prints(it, all, site(json!({}))));
    assert_eq!(left, ["echo ann\n", "", "echo us\n"]);
    reset(admin);
    let left = [&ann, admin].map(|it| space.prints(it, all, site(json!({}))));
    assert_eq!(left, ["", ""]);
}

pub(crate) fn a_kept_sandbox_has_the_inputs_of_its_agent() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let all = "cat /workspace/inputs/* 2>/dev/null; true";
    for lifetime in ["agent", "session"] {
        let kept = |more: Value| {
            let place = json!({"project_id": "site", "sandbox": {"lifetime": lifetime},
                               "task_ref": {"session_id": "s"}});
            with(place, more)
        };
        let inputs = json!({"inputs": [{"path": "a", "content": lifetime}]});
        assert_eq!(space.prints(&ann, all, kept(inputs)), lifetime);
        assert_eq!(space.prints(&bob, all, kept(json!({}))), "");
    }
}

pub(crate) fn a_conversation_that_an_agent_only_names_gives_it_no_secret() {
    let space = Space::under("");
    let talk = |name: &str| json!({"task_ref": {"conversation_id": name}});
    let bound = space.agent("ann", json!({"conversation_id": "nightly"}));
    let (bob, all) = (
        space.agent("bob", json!({})),
        space.agent("*", json!({"name": "all"})),
    );
    space.secret("db", b"correct horse battery");
    let grant = |body: Value| {
        let made = space.house.post("/v1/secret-grants", &body);
        assert_eq!(made.status, 201, "{}", made.text());
    };
    grant(json!({"secret": "db", "conversation_id": "nightly"}));
    let asks = |token: &str, agent: Option<&str>| {
        let mut more = with(
            talk("nightly"),
            json!({"secrets": [{"name": "db"}], "wait": false}),
        );
        if let Some(agent) = agent {
            more["task_ref"]["agent_id"] = json!(agent);
        }
        space.run(token, "true", more)["approval_id"].is_string()
    };
    assert!(!asks(&bound, None), "it is bound to the conversation");
    assert!(
        !asks(&all, Some("bob")),
        "an orchestrator says who it acts for"
    );
    assert!(!asks(&space.house.admin, Some("bob")), "and so do people");
    assert!(asks(&bob, None), "bob only says so");
    // Nor is what he writes compared with it.
    let guess = space.prints(&bob, "echo correct horse battery", talk("nightly"));
    assert_eq!(guess, "correct horse battery\n");
    // What names him counts where he says he is.
    grant(json!({"secret": "db", "conversation_id": "nightly", "agent_id": "bob"}));
    assert!(!asks(&bob, None));
}

pub(crate) fn a_users_cache_is_for_who_is_bound_to_that_user() {
    let space = Space::under("[workspace.cache.pip]\nmode = \"per_user\"\n");
    let site = || json!({"project_id": "site"});
    let of = |user: &str| with(site(), json!({"task_ref": {"user_id": user}}));
    let ann = space.agent("ann", json!({"user_id": "x"}));
    let (bob, carl) = (
        space.agent("bob", json!({})),
        space.agent("carl", json!({})),
    );
    let wheel = "cat ~/.cache/pip/wheel 2>/dev/null; true";
    let put = |text: &str| format!("echo {text} > ~/.cache/pip/wheel");
    space.run(&ann, &put("ann"), site());
    assert_eq!(space.prints(&ann, wheel, site()), "ann\n");
    assert_eq!(space.prints(&bob, wheel, of("x")), "", "bob only says so");
    space.run(&bob, &put("bob"), of("x"));
    assert_eq!(space.prints(&ann, wheel, site()), "ann\n", "poisoned");
    // It is that agent's for that user, and of nobody else.
    assert_eq!(space.prints(&bob, wheel, of("x")), "bob\n");
    assert_eq!(space.prints(&bob, wheel, of("y")), "");
    assert_eq!(space.prints(&carl, wheel, of("x")), "");
    assert_eq!(space.prints(&space.house.admin, wheel, of("x")), "ann\n");
}

pub(crate) fn what_people_run_for_an_agent_holds_no_secret_of_the_space() {
    let space = Space::under("");
    let bob = space.agent("bob", json!({}));
    space.secret("db", b"correct horse battery");
    // He has called, so that his own execs are masked for what he was granted alone.
    assert_eq!(
        space.prints(&bob, "echo correct horse battery", json!({})),
        "correct horse battery\n"
    );
    let line = "echo correct horse battery | tee /workspace/artifacts/b; \
                echo correct horse battery >&2";
    let named = json!({"task_ref": {"agent_id": "bob"}});
    let ran = space.run(&space.house.admin, line, named);
    let exec = ran["exec_id"].as_str().unwrap();
    for part in ["", "/stdout", "/stderr", "/events", "/artifacts/b"] {
        let path = format!("/v1/execs/{exec}{part}");
        let seen = space.send(&bob, "GET", &path, &Value::Null);
        assert_eq!(seen.status, 200, "{path}: {}", seen.text());
        assert!(
            !seen.text().contains("correct horse"),
            "{path}: {}",
            seen.text()
        );
    }
}

pub(crate) fn only_an_agent_is_bound_to_an_agent_or_a_conversation() {
    let space = Space::under("");
    for role in ["approver", "auditor", "admin"] {
        for (name, id) in [
            ("agent_id", "ann"),
            ("agent_id", "*"),
            ("conversation_id", "k"),
        ] {
            let mut body = json!({"name": "x", "role": role});
            body[name] = json!(id);
            let made = space.house.post("/v1/tokens", &body);
            assert_eq!(
                (made.status, made.code().as_str()),
                (400, "invalid_argument")
            );
            assert!(made.text().contains(name), "{}", made.text());
        }
        space
            .house
            .token(&json!({"name": format!("{role}-u"), "role": role, "user_id": "u"}));
    }
}
