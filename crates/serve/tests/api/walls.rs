//! The wall between agents of one space, where a request could lead around it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::house::{House, eventually, shell};

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
    let asks = with(
        named.clone(),
        json!({"secrets": [{"name": "db"}], "wait": false}),
    );
    let asks = space.run(&space.house.admin, line, asks);
    let path = format!("/v1/approvals/{}", asks["approval_id"].as_str().unwrap());
    let seen = space.send(&bob, "GET", &path, &Value::Null);
    assert_eq!(seen.status, 200, "{}", seen.text());
    assert!(!seen.text().contains("correct horse"), "{}", seen.text());
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

pub(crate) fn an_agent_destroys_nothing_of_others() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let site = |more: Value| with(json!({"project_id": "site"}), more);
    let exec = |record: Value| record["exec_id"].as_str().unwrap().to_owned();
    let done = exec(space.run(
        &ann,
        "echo result; echo a > /workspace/artifacts/a",
        site(json!({})),
    ));
    let held = exec(space.run(&ann, "echo held > h", site(json!({"writes": "held"}))));
    let own = exec(space.run(&bob, "echo mine", site(json!({}))));
    let snapshots = "/v1/workspaces/site/snapshots";
    let take = |token: &str| {
        let taken = space.send(token, "POST", snapshots, &json!({}));
        assert_eq!(taken.status, 201, "{}", taken.text());
        taken.json()["snapshot"].clone()
    };
    let id = |snapshot: &Value| snapshot["snapshot_id"].as_str().unwrap().to_owned();
    let hers = take(&ann);
    // Neither names nor numbers tell of what is hers.
    let his = take(&bob);
    assert_eq!(his["parent"], Value::Null, "{his}");
    let looked = space.send(&bob, "GET", "/v1/workspaces/site", &Value::Null);
    assert_eq!(looked.json()["waiting"], json!([]), "{}", looked.text());
    let looked = space.send(&ann, "GET", "/v1/workspaces/site", &Value::Null);
    assert_eq!(looked.json()["waiting"], json!([held]));
    let peoples = id(&take(&space.house.admin));
    let path = format!("{snapshots}/{peoples}");
    assert_eq!(space.send(&bob, "GET", &path, &Value::Null).status, 200);
    assert_eq!(space.send(&bob, "DELETE", &path, &Value::Null).status, 403);

    let body = json!({"artifacts": true});
    let reset = space.send(&bob, "POST", "/v1/workspaces/site/reset", &body);
    assert_eq!(reset.status, 200, "{}", reset.text());
    let removed = space.send(&bob, "DELETE", "/v1/workspaces/site", &Value::Null);
    assert_eq!((removed.status, removed.code().as_str()), (409, "conflict"));
    for path in [
        format!("/v1/execs/{done}/stdout"),
        format!("/v1/execs/{done}/artifacts/a"),
        format!("/v1/execs/{held}/changes"),
        format!("{snapshots}/{}", id(&hers)),
    ] {
        let seen = space.send(&ann, "GET", &path, &Value::Null);
        assert_eq!(seen.status, 200, "{path}: {}", seen.text());
    }
    // What is his is gone, and what is his alone he removes.
    let path = format!("/v1/execs/{own}/artifacts/manifest.json");
    assert_eq!(space.send(&bob, "GET", &path, &Value::Null).status, 404);
    space.run(&bob, "true", json!({"project_id": "apart"}));
    let removed = space.send(&bob, "DELETE", "/v1/workspaces/apart", &Value::Null);
    assert_eq!(removed.status, 204, "{}", removed.text());
    let fork = json!({"into": "agent-ann"});
    let forked = space.send(&bob, "POST", "/v1/workspaces/site/fork", &fork);
    assert_eq!((forked.status, forked.code().as_str()), (403, "forbidden"));
    let admin = &space.house.admin;
    let removed = space.send(admin, "DELETE", "/v1/workspaces/site", &Value::Null);
    assert_eq!(removed.status, 204, "{}", removed.text());
    // Inputs that another sent are enough.
    let sent = json!({"project_id": "sent", "inputs": [{"path": "a", "content": "a"}]});
    space.run(&ann, "true", sent);
    let mine = space.send(
        &ann,
        "POST",
        "/v1/workspaces/sent/reset",
        &json!({"artifacts": true}),
    );
    assert_eq!(mine.status, 200, "{}", mine.text());
    let gone = space.send(&bob, "DELETE", "/v1/workspaces/sent", &Value::Null);
    assert_eq!(gone.status, 409, "{}", gone.text());
}

pub(crate) fn what_is_stored_already_is_not_told_to_an_agent() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let taken = |token: &str, project: &str, text: &str| {
        // Large beside what the manifest says of times and inodes, and not to be compressed.
        let line = format!(
            "python3 -c 'from hashlib import sha256; open(\"f\", \"wb\").write(b\"\".join(\
             sha256(b\"%d {text}\" % it).digest() for it in range(300)))'"
        );
        space.run(token, &line, json!({"project_id": project}));
        let path = format!("/v1/workspaces/{project}/snapshots");
        let taken = space.send(token, "POST", &path, &json!({})).json();
        [&taken["new_chunks"], &taken["stored_bytes"]].map(|it| it.as_u64().unwrap())
    };
    taken(&ann, "agent-ann", "PIN=4711");
    let (right, wrong) = (taken(&bob, "b1", "PIN=4711"), taken(&bob, "b2", "PIN=4712"));
    assert_eq!(right[0], wrong[0]);
    assert!(right[1] > 9600, "{right:?}");
    assert!(right[1].abs_diff(wrong[1]) < 100, "{right:?} {wrong:?}");
}

pub(crate) fn gates_compare_with_what_the_same_agent_did() {
    compares_with_another("own", false);
}

pub(crate) fn gates_compare_with_others_where_the_operator_opens_it() {
    compares_with_another("space", true);
}

fn compares_with_another(see: &str, is_held: bool) {
    let gates = "[[gate]]\nname = \"ver\"\ncheck = [{ monotonic = { at = \"/version\" } }]\n";
    let space = Space::under(&format!("{gates}[agents]\nsee = \"{see}\"\n"));
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let run = |token: &str, number: u64| {
        let code = format!("print('{{\"version\": {number}}}')");
        let more = json!({"project_id": "p", "inputs": [{"path": "v.py", "content": code}]});
        let line = "python3 /workspace/inputs/v.py";
        let record = space.run(token, line, more);
        record["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(&ann, 4711), "succeeded");
    assert_eq!(run(&bob, 1) == "held", is_held);
    assert_eq!(run(&ann, 4710), "held", "her own is compared with");
}

pub(crate) fn a_session_has_a_workspace_for_each_agent() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let session = || json!({"sandbox": {"lifetime": "session"}, "task_ref": {"session_id": "s1"}});
    let hers = space.run(&ann, "echo ann > notes", session());
    assert_eq!(space.prints(&bob, "ls", session()), "");
    // Nor by its name.
    let named = json!({"project_id": hers["project_id"]});
    let refused = space.send(&bob, "POST", "/v1/execs", &with(shell("ls"), named));
    assert!([403, 404].contains(&refused.status), "{}", refused.text());
    assert_eq!(space.prints(&ann, "cat notes", session()), "ann\n");
    let of_people = space.run(&space.house.admin, "true", session());
    assert_eq!(of_people["project_id"], "session-s1");
}

pub(crate) fn a_name_that_several_agents_gave_leads_people_to_none() {
    let space = Space::under("");
    let (ann, bob) = (space.agent("ann", json!({})), space.agent("bob", json!({})));
    let admin = &space.house.admin;
    let named = json!({"client_id": "release", "mode": "simulate", "project_id": "pa"});
    let hers = space.run(&ann, "echo ann > r", named.clone());
    let one = space.send(admin, "GET", "/v1/execs/release", &Value::Null);
    assert_eq!(one.json()["exec_id"], hers["exec_id"]);
    let his = space.run(&bob, "echo evil > r", named);
    for (method, path) in [
        ("GET", "/v1/execs/release"),
        ("POST", "/v1/execs/release/apply"),
        ("POST", "/v1/execs/release/cancel"),
    ] {
        let answer = space.send(admin, method, path, &Value::Null);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (409, "conflict"),
            "{path}"
        );
        for exec in [&hers, &his] {
            assert!(answer.text().contains(exec["exec_id"].as_str().unwrap()));
        }
    }
    let own = space.send(&bob, "GET", "/v1/execs/release", &Value::Null);
    assert_eq!(own.json()["exec_id"], his["exec_id"]);
}

pub(crate) fn whoever_waits_for_an_answer_needs_a_token_for_it() {
    let space = Space::under("");
    let body = json!({"name": "temporary", "role": "agent", "agent_id": "ann"});
    let made = space.house.post("/v1/tokens", &body).json();
    let (token, id) = (
        made["secret"].as_str().unwrap(),
        made["token"]["token_id"].as_str().unwrap(),
    );
    let line = "until [ -e go ]; do sleep 0.05; done; echo later";
    let place = json!({"project_id": "p"});
    std::thread::scope(|scope| {
        let began = std::time::Instant::now();
        let waits = scope.spawn(|| {
            let body = with(shell(line), place.clone());
            space.send(token, "POST", "/v1/execs", &body)
        });
        eventually("it runs", || {
            let running = space.house.get("/v1/execs?status=running");
            running.json()["items"]
                .as_array()
                .is_some_and(|it| !it.is_empty())
        });
        let path = format!("/v1/tokens/{id}");
        let revoked = space.send(&space.house.admin, "DELETE", &path, &Value::Null);
        assert!(revoked.status < 300, "{}", revoked.text());
        eventually("it waits for longer than a token is remembered", || {
            began.elapsed() > std::time::Duration::from_millis(600)
        });
        space.run(&space.house.admin, "touch go", place.clone());
        let answer = waits.join().unwrap();
        assert_eq!(answer.status, 401, "{}", answer.text());
        assert!(!answer.text().contains("later"), "{}", answer.text());
    });
}
