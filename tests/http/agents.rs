//! Agents of one space: nothing of another agent can be told from something that never was, unless
//! the operator opens it.

use serde_json::{Value, json};
use support::{Api, Caller, Client, Ears, Furnished, Operation, Response, Server, Trial, with};

use crate::pool_fire::serve;

/// Everything of an answer but what differs from one request to the next.
fn seen(answer: &Response) -> (u16, String) {
    let id = answer.header("x-request-id").unwrap_or_default();
    (answer.status, answer.text().replace(id, ""))
}

/// Whether what a path names is one agent's, or of the whole space. A new route has to be put on one
/// of the two lists.
fn is_one_agents(path: &str) -> bool {
    let owned = [
        "execs/{id}",
        "sessions/{id}",
        "approvals/{id}",
        "sandboxes/{id}",
        "snapshots/{id}",
    ];
    // For people, and things that all agents share.
    let shared = [
        "/v1/workspaces/{project}",
        "/v1/grants/{id}",
        "/v1/secrets/",
        "/v1/secret-grants/",
        "/v1/tokens/",
        "/v1/webhooks/",
        "/v1/skills/",
        "/skills/",
        "/v1/audit/timeline/",
    ];
    if owned.iter().any(|noun| path.contains(noun)) {
        return true;
    }
    let known = shared.iter().any(|start| path.starts_with(start));
    assert!(known, "whose is what `{path}` names?");
    false
}

struct House {
    server: Server,
    ann: Furnished,
    bob: Furnished,
}

impl House {
    fn open(trial: &Trial, config: &str) -> Self {
        let server = serve(trial, config).on(trial);
        Self {
            ann: Furnished::named(&server, "blue", "ann"),
            bob: Furnished::named(&server, "blue", "bob"),
            server,
        }
    }

    fn token(&self, more: Value) -> String {
        let body = with(json!({"role": "agent", "space_id": "blue"}), more);
        let made = self.server.client().post("/v1/tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["secret"].as_str().unwrap().to_owned()
    }

    fn person(&self, role: &str) -> Client {
        self.server
            .client_of(&self.server.token_of(role, "blue", role))
    }

    fn close(self, trial: Trial) {
        assert_eq!(self.server.stop(), 0);
        trial.end();
    }
}

#[test]
fn what_is_another_agents_was_never_there() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::open(&trial, "");
    let (ann, bob) = (&house.ann, &house.bob);
    let api = Api::of(&house.server);
    // A token that is bound to no agent is the one of its own name, and so not bob.
    let plain = house
        .server
        .client_of(&house.token(json!({"name": "plain"})));
    let lookers = [("ann", ann.agent.clone()), ("plain", plain)];
    let people = ["approver", "auditor", "admin"].map(|role| (role, house.person(role)));
    let by_name = Furnished {
        exec: bob.client_id.clone(),
        sandbox: bob.sandbox_name.clone(),
        ..bob.clone()
    };
    // In a workspace that they share.
    let nowhere = Furnished {
        project: bob.project.clone(),
        ..bob.nowhere()
    };
    let before = bob.admin.get(&format!("/v1/execs/{}", bob.exec)).json();
    let mut cells = 0;
    let named = |it: &&Operation| it.path.contains('{') && is_one_agents(&it.path);
    for operation in api.operations().iter().filter(named) {
        let what = format!("{} {}", operation.method, operation.path);
        for (name, client) in &lookers {
            let random = seen(&nowhere.send(client, operation, ""));
            assert!(matches!(random.0, 403 | 404), "{what}: {random:?}");
            for there in [bob, &by_name] {
                let answer = seen(&there.send(client, operation, ""));
                assert_eq!(answer, random, "{what} by {name}");
                cells += 1;
            }
        }
        for (role, client) in &people {
            // What they may do they do, to things of any agent.
            let answer = match operation.method.as_str() {
                "GET" => bob.send(client, operation, ""),
                _ => continue,
            };
            assert_ne!(answer.status, 404, "{what} by {role}: {}", answer.text());
            cells += 1;
        }
        if operation.method == "GET" {
            let own = bob.send(&bob.agent, operation, "");
            assert_eq!(own.status, 200, "{what}: {}", own.text());
        }
    }
    assert!(cells > 100, "{cells}");
    let after = bob.admin.get(&format!("/v1/execs/{}", bob.exec)).json();
    assert_eq!(after, before, "bob's is as it was");
    // The streams that are no request and answer.
    let bearer = format!("Bearer {}", house.token(json!({"name": "listens"})));
    let address = house.server.address;
    let opened = [&bob.exec, &nowhere.exec].map(|exec| {
        let (client, path) = (Client::new(address, None), format!("/v1/execs/{exec}/ws"));
        let opened = Ears::open_at(&client, address, &path, &[("Authorization", &bearer)]);
        opened.err().map(|(status, _)| status)
    });
    assert_eq!(opened, [Some(404); 2]);
    house.close(trial);
}

#[test]
fn no_list_filter_or_body_leads_to_another_agent() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::open(&trial, "");
    let (ann, bob) = (&house.ann, &house.bob);
    let client = &ann.agent;
    // Lists and their filters: its own, and nothing of bob's.
    for path in [
        "/v1/execs",
        "/sandbox/execs",
        "/v1/approvals",
        "/v1/sandboxes",
        "/v1/grants",
    ] {
        let filters = [
            format!("?task_id={}", bob.task),
            format!("?conversation_id={}", bob.task),
            format!("?project_id={}", bob.project),
            format!("?exec_id={}", bob.exec),
            format!("?agent_id={}", bob.task),
            "?limit=1000".to_owned(),
            String::new(),
        ];
        let mut own = 0;
        for filter in filters {
            let listed = client.get(&format!("{path}{filter}"));
            // Not every list has every filter.
            if listed.status == 400 {
                continue;
            }
            assert_eq!(listed.status, 200, "{path}{filter}: {}", listed.text());
            own += listed.json()["items"].as_array().unwrap().len();
            for name in [&bob.exec, &bob.approval, &bob.sandbox, &bob.grant] {
                assert!(
                    !listed.text().contains(name.as_str()),
                    "{path}{filter}: {name}"
                );
            }
        }
        assert!(own > 0, "{path} shows its own");
    }
    let script = json!({"exec": {"kind": "argv", "command": "sh", "args": ["-c", "cat held"]}});
    // A body that names a thing of bob's, and the same with a thing that never was.
    let nowhere = bob.nowhere();
    let bodies = |it: &Furnished| {
        [
            (
                "/v1/execs",
                with(script.clone(), json!({"sandbox": {"id": it.sandbox}})),
            ),
            (
                "/v1/execs",
                with(
                    script.clone(),
                    json!({"sandbox": {"name": it.sandbox_name}}),
                ),
            ),
            (
                "/v1/execs",
                with(
                    script.clone(),
                    json!({"over": it.exec, "writes": "dropped", "project_id": bob.project}),
                ),
            ),
            (
                "/v1/policy/explain",
                with(script.clone(), json!({"sandbox": {"id": it.sandbox}})),
            ),
        ]
    };
    for ((path, there), (_, random)) in bodies(bob).into_iter().zip(bodies(&nowhere)) {
        let (there, random) = (client.post(path, &there), client.post(path, &random));
        let hide = |answer: &Response, it: &Furnished| {
            let (status, text) = seen(answer);
            (status, text.replace(&it.exec, "").replace(&it.sandbox, ""))
        };
        assert_eq!(hide(&there, bob), hide(&random, &nowhere), "{path}");
        assert!(!there.text().contains("succeeded"), "{}", there.text());
    }
    let undo = format!("/v1/workspaces/{}/undo", bob.project);
    let undone = |exec: &str| {
        let answer = client.post(&undo, &json!({"exec_id": exec}));
        (answer.status, seen(&answer).1.replace(exec, ""))
    };
    assert_eq!(undone(&bob.exec), undone(&nowhere.exec));
    // Who says to be bob is refused, on every route that takes it.
    let task = json!({"task_ref": {"agent_id": bob.task}});
    for (path, body) in [
        ("/v1/execs", with(script.clone(), task.clone())),
        ("/v1/policy/explain", with(script.clone(), task.clone())),
        (
            "/v1/tools/check",
            with(json!({"tools": ["run_code"]}), task.clone()),
        ),
        (
            "/v1/skills/shell.run/invoke",
            with(json!({"inputs": {"script": "true"}}), task.clone()),
        ),
        (
            "/v1/retrieve",
            with(json!({"url": "http://127.0.0.1:9/"}), task),
        ),
        (
            "/v1/sandboxes",
            json!({"lifetime": "agent", "agent_id": bob.task}),
        ),
        (
            "/v1/sandboxes/explain",
            json!({"lifetime": "agent", "agent_id": bob.task}),
        ),
        ("/v1/sandboxes/recreate", json!({"agent": bob.task})),
    ] {
        let refused = client.post(path, &body);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
    }
    // The same words are each agent's own: names of execs, and sessions.
    let body = with(script.clone(), json!({"client_id": bob.client_id}));
    let ran = client.post("/v1/execs", &body);
    assert_eq!(ran.status, 200, "{}", ran.text());
    let own = client.get(&format!("/v1/execs/{}", bob.client_id)).json();
    assert_eq!(own["exec_id"], ran.json()["exec_id"]);
    let session = json!({"lifetime": "session", "session_id": "talk", "project_id": "common"});
    let rooms = [&bob.agent, client].map(|agent| {
        let made = agent.post("/v1/sandboxes", &session);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["sandbox_id"].clone()
    });
    assert_ne!(rooms[0], rooms[1]);
    let place = json!({"sandbox": {"lifetime": "session"}, "project_id": "common",
                       "task_ref": {"session_id": "talk"}});
    let inside = client.post("/v1/execs", &with(script, place)).json();
    assert_eq!(inside["sandbox_id"], rooms[1], "{inside}");
    // A workspace that is named after an agent is that agent's; a conversation's name is none.
    let path = format!("/v1/workspaces/agent-{}/files/f", bob.task);
    let put = |client: &Client| client.try_bytes("PUT", &path, None, b"x").unwrap().status;
    assert_eq!((put(client), put(&bob.agent)), (403, 200));
    assert_eq!(client.get(&path).status, 404);
    assert!(
        !client
            .get("/v1/workspaces")
            .text()
            .contains(&format!("agent-{}", bob.task))
    );
    let reads = json!({"exec": {"kind": "argv", "command": "cat", "args": ["f"]},
                       "project_id": format!("agent-{}", bob.task)});
    assert_eq!(client.post("/v1/execs", &reads).status, 403);
    let talk = json!({"exec": {"kind": "argv", "command": "ls"},
                      "task_ref": {"conversation_id": format!("agent-{}", bob.task)}});
    assert_eq!(client.post("/v1/execs", &talk).json()["stdout"], "");
    house.close(trial);
}

#[test]
fn tokens_say_who_an_agent_is() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::open(&trial, "");
    let create = |body: Value| {
        let body = with(json!({"role": "agent", "space_id": "blue"}), body);
        house.server.client().post("/v1/tokens", &body)
    };
    // The choice of a name makes no token another's agent.
    assert_eq!(create(json!({"name": "bob-task"})).status, 409);
    assert_eq!(create(json!({"name": "solo"})).status, 201);
    assert_eq!(create(json!({"name": "x", "agent_id": "solo"})).status, 409);
    assert_eq!(
        create(json!({"name": "bob-2", "agent_id": "bob-task"})).status,
        201
    );
    // An orchestrator names any agent, and sees all of them.
    let all = house.token(json!({"name": "orchestrator", "agent_id": "*"}));
    let all = house.server.client_of(&all);
    let body = json!({"exec": {"kind": "argv", "command": "true"},
                      "task_ref": {"agent_id": "bob-task"}});
    let ran = all.post("/v1/execs", &body).json();
    assert_eq!(ran["ids"]["agent_id"], "bob-task");
    let path = format!("/v1/execs/{}", ran["exec_id"].as_str().unwrap());
    assert_eq!(house.bob.agent.get(&path).status, 200);
    assert_eq!(house.ann.agent.get(&path).status, 404);
    assert_eq!(
        all.get(&format!("/v1/execs/{}", house.ann.exec)).status,
        200
    );
    house.close(trial);
}

#[test]
fn the_operator_opens_what_agents_see_of_each_other() {
    // For a token of another agent that is bound to the same conversation, to the same user, to
    // neither.
    for (see, seen) in [
        ("own", [404, 404, 404]),
        ("conversation", [200, 404, 404]),
        ("user", [404, 200, 404]),
        ("space", [200, 200, 200]),
    ] {
        let trial = Trial::in_memory(Caller::Root).unwrap();
        let house = House::open(&trial, &format!("[agents]\nsee = \"{see}\"\n"));
        let bob = &house.bob;
        let bindings = [
            json!({"name": "c", "conversation_id": bob.task}),
            json!({"name": "u", "user_id": bob.task}),
            json!({"name": "n"}),
        ];
        for (binding, expected) in bindings.into_iter().zip(seen) {
            let client = house.server.client_of(&house.token(binding.clone()));
            let what = format!("{see} {binding}");
            for part in ["", "/stdout", "/effects", "/events", "/changes"] {
                let answer = client.get(&format!("/v1/execs/{}{part}", bob.exec));
                assert_eq!(answer.status, expected, "{what} {part}: {}", answer.text());
            }
            let listed = client.get("/v1/execs?limit=1000").text();
            assert_eq!(listed.contains(&bob.exec), expected == 200, "{what}");
            // Of a sandbox nothing but its agent is known.
            let sandbox = client.get(&format!("/v1/sandboxes/{}", bob.sandbox)).status;
            assert_eq!(sandbox == 200, see == "space", "{what}");
            // Seeing is no speaking: it is bob's name still.
            let said = json!({"exec": {"kind": "argv", "command": "true"},
                              "task_ref": {"agent_id": bob.task}});
            assert_eq!(client.post("/v1/execs", &said).status, 403, "{what}");
            // What a token is bound to is what its requests say.
            let other = json!({"exec": {"kind": "argv", "command": "true"},
                               "task_ref": {"conversation_id": "elsewhere"}});
            let status = client.post("/v1/execs", &other).status;
            assert_eq!(
                status == 403,
                binding["conversation_id"].is_string(),
                "{what}"
            );
        }
        // What may be seen may be settled.
        let member = json!({"name": "c-2", "conversation_id": bob.task});
        let member = house.server.client_of(&house.token(member));
        let gone = member.send("POST", &format!("/v1/execs/{}/discard", bob.exec), None);
        assert_eq!(gone.status, seen[0], "{see}: {}", gone.text());
        let explained = json!({"exec": {"kind": "argv", "command": "true"}});
        let explained = house
            .bob
            .agent
            .post("/v1/policy/explain", &explained)
            .json();
        let field = |it: &&Value| it["field"] == "agents.see";
        let field = explained["fields"].as_array().unwrap().iter().find(field);
        assert_eq!(field.unwrap()["value"], see);
        house.close(trial);
    }
}

#[test]
fn a_listener_hears_its_own_approvals() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::open(&trial, "");
    let own = house.token(json!({"name": "ears", "agent_id": house.ann.task}));
    let mut ears = Ears::at(house.server.address, &own);
    // Of bob's some wait already, and one is asked before ann's next.
    let (mut bob, mut ann) = (house.bob.clone(), house.ann.clone());
    bob.restore();
    ann.restore();
    let mut heard = String::new();
    while !heard.contains(&ann.approval) {
        heard += &ears.message().unwrap().to_string();
    }
    assert!(heard.contains(&house.ann.approval), "{heard}");
    for other in [&house.bob.approval, &bob.approval] {
        assert!(!heard.contains(other.as_str()), "{heard}");
    }
    house.close(trial);
}
