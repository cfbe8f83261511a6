//! Nothing of another space can be told from something that never was.

use serde_json::{Value, json};
use support::{Api, Caller, Client, Furnished, Operation, Response, Server, Start, Trial};

/// Everything of an answer that a client can see, but what differs from one request to the next.
fn seen(answer: &Response) -> (u16, Vec<(String, String)>, String) {
    let mut body = answer.text();
    if let Some(id) = answer.header("x-request-id") {
        body = body.replace(id, "");
    }
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"));
    (answer.status, headers, body)
}

/// Values of query parameters that name a thing; the rest name none. A parameter that is on neither
/// list has to be put on one.
fn named<'f>(parameter: &str, things: &'f Furnished) -> Option<&'f str> {
    match parameter {
        "exec_id" | "id_prefix" => Some(&things.exec),
        "project_id" => Some(&things.project),
        "task_id" | "conversation_id" | "user_id" | "turn_id" | "workflow_id" | "agent_id"
        | "session_id" => Some(&things.task),
        "space_id" => Some(things.project.trim_end_matches("-project")),
        "from" | "to" => Some(&things.snapshot),
        "secret" => Some(&things.secret),
        "stat" | "depth" | "mode" | "recursive" | "path" | "text" | "seconds" | "wait"
        | "wait_ms" => None,
        "tag" | "tags" | "without" | "tier" | "status" | "kind" | "limit" | "cursor" | "since"
        | "until" | "after" | "offset" | "format" | "all" | "probe" | "lifetime" | "state"
        | "revoked" | "snapshot_before" | "webhook" | "stdout" | "stderr" => None,
        other => panic!("does the parameter `{other}` name a thing?"),
    }
}

struct House {
    server: Server,
    api: Api,
    /// The tenant who looks.
    blue: Furnished,
    /// The other one, who has things.
    red: Furnished,
}

impl House {
    fn new(trial: &Trial) -> Self {
        let server = Start::default().on(trial);
        Self {
            api: Api::of(&server),
            blue: Furnished::new(&server, "blue"),
            red: Furnished::new(&server, "red"),
            server,
        }
    }

    /// Those who may do the most and those who may see the most.
    fn lookers(&self) -> Vec<(&'static str, Client)> {
        let made = |role| {
            self.server
                .client_of(&self.server.token_of(role, "blue", role))
        };
        vec![
            ("admin", self.blue.admin.clone()),
            ("agent", made("agent")),
            ("auditor", made("auditor")),
        ]
    }

    #[track_caller]
    fn assert_same(&self, what: &str, there: &Response, nowhere: &Response) {
        let (there, nowhere) = (seen(there), seen(nowhere));
        for name in self.red.names() {
            assert!(!there.2.contains(name), "{what}: {name} in {}", there.2);
        }
        assert_eq!(there, nowhere, "{what}");
    }
}

/// The red space is as it was: nobody touched it.
fn snapshot(red: &Furnished) -> Value {
    let get = |path: String| red.admin.get(&path).json();
    json!([
        get(format!("/v1/execs/{}", red.exec)),
        get(format!("/v1/workspaces/{}/files/.", red.project)),
        get(format!("/v1/tokens/{}", red.token)),
        get(format!("/v1/sandboxes/{}", red.sandbox)),
        get("/v1/audit/verify".to_owned()),
    ])
}

#[test]
fn a_path_of_another_space_is_a_path_to_nowhere() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let before = snapshot(&house.red);
    let by_client_id = Furnished {
        exec: house.red.client_id.clone(),
        sandbox: house.red.sandbox_name.clone(),
        ..house.red.clone()
    };
    let nowhere = house.red.nowhere();
    let mut cells = 0;
    // Skills are the server's, and the same in every space.
    let with_ids = |operation: &&Operation| {
        operation.path.contains('{') && !operation.path.contains("skills/{id}")
    };
    for (role, client) in house.lookers() {
        for operation in house.api.operations().iter().filter(with_ids) {
            // To write where nothing is makes something, in one's own space.
            if operation.method == "PUT" {
                continue;
            }
            let what = format!("{} {} by {role}", operation.method, operation.path);
            let random = nowhere.send(&client, operation, "");
            assert!(
                matches!(random.status, 403 | 404),
                "{what}: {}",
                random.text()
            );
            for red in [&house.red, &by_client_id] {
                house.assert_same(&what, &red.send(&client, operation, ""), &random);
                cells += 1;
            }
        }
    }
    assert!(cells > 60, "{cells}");
    assert_eq!(snapshot(&house.red), before);
    assert_eq!(house.server.stop(), 0);
    trial.end();
}

#[test]
fn a_file_is_written_to_ones_own_space_alone() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let before = snapshot(&house.red);
    let path = format!(
        "/v1/workspaces/{}/files/{}",
        house.red.project, house.red.file
    );
    let kind = Some("application/octet-stream");
    let put = house
        .blue
        .admin
        .try_bytes("PUT", &path, kind, b"blue")
        .unwrap();
    assert_eq!(put.status, 200, "{}", put.text());
    assert_eq!(house.blue.admin.get(&path).body, b"blue");
    assert_eq!(house.red.admin.get(&path).body, b"x");
    let project = path.split("/files").next().unwrap();
    assert_eq!(house.blue.admin.send("DELETE", project, None).status, 204);
    assert_eq!(snapshot(&house.red), before);
    assert_eq!(house.server.stop(), 0);
    trial.end();
}

#[test]
fn a_filter_by_a_thing_of_another_space_finds_what_a_random_one_finds() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let nowhere = house.red.nowhere();
    let mut cells = 0;
    for (role, client) in house.lookers() {
        for operation in house.api.operations() {
            for parameter in &operation.query {
                let Some(red) = named(parameter, &house.red) else {
                    continue;
                };
                let what = format!(
                    "{} {} ?{parameter} by {role}",
                    operation.method, operation.path
                );
                let random = match parameter.as_str() {
                    "space_id" => "green",
                    _ => named(parameter, &nowhere).unwrap(),
                };
                let ask = |value: &str| {
                    house
                        .blue
                        .send(&client, operation, &format!("?{parameter}={value}"))
                };
                house.assert_same(&what, &ask(red), &ask(random));
                cells += 1;
            }
        }
    }
    assert!(cells > 30, "{cells}");
    assert_eq!(house.server.stop(), 0);
    trial.end();
}

#[test]
fn a_cursor_of_another_space_shows_only_ones_own() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let mut cells = 0;
    for operation in house.api.operations() {
        // The operator's lists are of no space.
        if operation.operator || !operation.query.iter().any(|name| name == "cursor") {
            continue;
        }
        // Two of each, so that there is a second page.
        house.red.clone().restore();
        let page = house
            .red
            .send(&house.red.admin, operation, "?limit=1")
            .json();
        let cursor = page["next"].as_str();
        let cursor = cursor.unwrap_or_else(|| panic!("{} has no second page", operation.path));
        let second = house
            .red
            .send(&house.red.admin, operation, &format!("?cursor={cursor}"));
        let shown = second.text();
        // What is known of a secret does not say where it is.
        let of_secrets = operation.path.starts_with("/v1/secret");
        let own = if of_secrets {
            "\"red-"
        } else {
            "\"space_id\":\"red\""
        };
        assert!(shown.contains(own), "{shown}");
        let answer = house
            .blue
            .send(&house.blue.admin, operation, &format!("?cursor={cursor}"));
        assert!(
            matches!(answer.status, 200 | 400 | 404),
            "{}",
            answer.text()
        );
        for name in house.red.names() {
            assert!(!answer.text().contains(name), "{}: {name}", operation.path);
        }
        for item in answer.json()["items"].as_array().into_iter().flatten() {
            let space = item.get("space_id").unwrap_or(&item["ids"]["space_id"]);
            let secret = item.get("secret").unwrap_or(&item["name"]);
            let is_blue = match of_secrets {
                true => secret.as_str().is_some_and(|it| it.starts_with("blue-")),
                false => space == "blue",
            };
            assert!(is_blue, "{}: {item}", operation.path);
        }
        cells += 1;
    }
    assert_eq!(cells, 9, "a new route with pages has to be looked at");
    assert_eq!(house.server.stop(), 0);
    trial.end();
}

#[test]
fn ids_in_bodies_reach_no_other_space() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let (blue, red) = (&house.blue, &house.red);
    let body = |more: Value| {
        let mut body = json!({"exec": {"kind": "argv", "command": "sh", "args": ["-c", "ls"]}});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        body
    };
    // Every id of red's that a request can carry, at once: it is blue's own exec all the same.
    let task = &red.task;
    let ran = blue.admin.post(
        "/v1/execs",
        &body(json!({
            "client_id": red.client_id,
            "project_id": red.project,
            "task_ref": {"task_id": task, "conversation_id": task, "user_id": task, "agent_id": task},
        })),
    );
    assert_eq!(ran.status, 200, "{}", ran.text());
    let record = ran.json();
    assert_ne!(record["exec_id"], red.exec.as_str());
    assert_eq!(record["ids"]["space_id"], "blue");
    assert_eq!(record["stdout"], "", "red's files");
    let listed = red.admin.get(&format!("/v1/execs?task_id={task}")).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["exec_id"], red.exec.as_str());
    // A space is asked for by name: one that exists is refused like one that does not.
    for (path, request) in [
        (
            "/v1/execs",
            (|space| json!({"task_ref": {"space_id": space}})) as fn(&str) -> Value,
        ),
        (
            "/v1/policy/explain",
            |space| json!({"task_ref": {"space_id": space}}),
        ),
    ] {
        let ask = |space| blue.admin.post(path, &body(request(space)));
        let (there, random) = (ask("red"), ask("green"));
        assert_eq!(there.status, 403, "{}", there.text());
        assert_eq!(seen(&there), seen(&random), "{path}");
    }
    let ask = |space| {
        let body = json!({"name": "red-admin", "role": "agent", "space_id": space});
        blue.admin.post("/v1/tokens", &body)
    };
    assert_eq!(ask("red").status, 403);
    assert_eq!(seen(&ask("red")), seen(&ask("green")));
    // Names are taken in one space, not in the next.
    assert_eq!(ask("blue").status, 201);
    assert_eq!(house.server.stop(), 0);
    trial.end();
}

#[test]
fn a_key_belongs_to_who_sent_it() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let house = House::new(&trial);
    let agent = house.server.token_of("agent", "blue", "second");
    let body = json!({"exec": {"kind": "argv", "command": "true"}});
    let other = json!({"exec": {"kind": "argv", "command": "false"}});
    let ask = |client: &Client, body: &Value| {
        client
            .clone()
            .with("Idempotency-Key", "the-same")
            .post("/v1/execs", body)
    };
    let callers = [
        house.blue.admin.clone(),
        house.red.admin.clone(),
        house.server.client_of(&agent),
    ];
    let mut ids = Vec::new();
    for caller in &callers {
        let first = ask(caller, &body);
        assert_eq!(first.status, 200, "{}", first.text());
        assert_eq!(first.header("idempotency-replayed"), None);
        let again = ask(caller, &body);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.json()["exec_id"], first.json()["exec_id"]);
        ids.push(first.json()["exec_id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    // Another request under a key conflicts for its owner, and only for its owner.
    assert_eq!(ask(&callers[0], &other).code(), "idempotency_conflict");
    let fresh = house
        .server
        .client_of(&house.server.token_of("agent", "red", "third"));
    assert_eq!(ask(&fresh, &other).status, 200);
    assert_eq!(house.server.stop(), 0);
    trial.end();
}
