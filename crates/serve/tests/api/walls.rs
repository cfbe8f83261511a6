//! The wall between agents of one space, where a request could lead around it.

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
