//! Every route with every method and every role, as the server describes itself.

use std::net::Ipv4Addr;
use std::time::Duration;

use glovebox_model::{Role, Scope};
use serde_json::json;

use crate::pool_fire::serve;
use support::{
    Api, Caller, Client, Furnished, Operation, Server, Start, Trial, outward, wait_until,
};

/// Somebody who calls, and what that one may do.
struct Principal {
    name: &'static str,
    client: Client,
    scopes: Vec<Scope>,
    is_operator: bool,
    is_known: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Unauthenticated,
    Forbidden,
    Done,
}

impl Principal {
    fn expects(&self, operation: &Operation) -> Expected {
        let Some(scope) = &operation.scope else {
            return Expected::Done;
        };
        if !self.is_known {
            return Expected::Unauthenticated;
        }
        let has = scope == "any" || self.scopes.iter().any(|it| it.as_str() == scope);
        match has && (self.is_operator || !operation.operator) {
            true => Expected::Done,
            false => Expected::Forbidden,
        }
    }
}

fn token(server: &Server, name: &str, more: serde_json::Value) -> serde_json::Value {
    let mut body = json!({"name": name, "role": "agent", "space_id": "blue"});
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let made = server.client().post("/v1/tokens", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()
}

/// One that was good a moment ago.
fn stale(server: &Server, name: &'static str, more: serde_json::Value) -> Client {
    let made = token(server, name, more);
    let client = server.client_of(made["secret"].as_str().unwrap());
    if name == "revoked" {
        let id = made["token"]["token_id"].as_str().unwrap();
        let gone = server
            .client()
            .send("DELETE", &format!("/v1/tokens/{id}"), None);
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    let is_refused = || client.get("/v1/whoami").status == 401;
    assert!(wait_until(Duration::from_secs(60), is_refused), "{name}");
    client
}

fn principals(server: &Server) -> Vec<Principal> {
    // An agent is the one whose things are there.
    let own = json!({"agent_id": "blue-task"});
    let role = |role: Role| Principal {
        name: role.as_str(),
        client: match role {
            Role::Agent => server.client_of(
                token(server, "agent", own.clone())["secret"]
                    .as_str()
                    .unwrap(),
            ),
            _ => server.client_of(&server.token_of(role.as_str(), "blue", role.as_str())),
        },
        scopes: role.scopes().into_iter().collect(),
        is_operator: false,
        is_known: true,
    };
    let nobody = |name, client| Principal {
        name,
        client,
        scopes: Scope::ALL.to_vec(),
        is_operator: true,
        is_known: false,
    };
    let reader = json!({"agent_id": "blue-task", "scopes": ["execs:read"]});
    let reader = token(server, "reader", reader);
    let mut all: Vec<Principal> = Role::ALL.into_iter().map(role).collect();
    all.extend([
        Principal {
            name: "operator",
            client: server.client(),
            scopes: Scope::ALL.to_vec(),
            is_operator: true,
            is_known: true,
        },
        Principal {
            name: "reader",
            client: server.client_of(reader["secret"].as_str().unwrap()),
            scopes: vec![Scope::ExecsRead],
            is_operator: false,
            is_known: true,
        },
        nobody("nobody", server.nobody()),
        nobody("revoked", stale(server, "revoked", json!({}))),
    ]);
    // Once everything else is made: it must not be over before it is asked for.
    let soon = jiff::Timestamp::now() + Duration::from_secs(3);
    let expired = stale(server, "expired", json!({"expires_at": soon}));
    all.push(nobody("expired", expired));
    all
}

/// Bad tokens are counted by address, and this is no test of the count.
fn elsewhere(client: &Client, number: usize) -> Client {
    let number = u8::try_from(number % 200).unwrap();
    client.clone().from(Ipv4Addr::new(127, 0, 9, number + 1))
}

/// Something is gone after it.
fn used_up(operation: &Operation) -> bool {
    let path = operation.path.as_str();
    operation.method == "DELETE"
        || [
            "/keep",
            "/discard",
            "/apply",
            "/rerun",
            "/reset",
            "/undo",
            "/rollback",
            "/reply",
            "/approve",
            "/deny",
        ]
        .iter()
        .any(|end| path.ends_with(end))
}

#[test]
fn every_route_answers_every_role_as_it_is_described() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let template = trial.home().join("template");
    std::fs::create_dir(&template).unwrap();
    let config = format!("[workspace]\nsnapshot_before = \"safe\"\ntemplate = {template:?}\n")
        + &outward(trial.home());
    let server = serve(&trial, &config).on(&trial);
    let api = Api::of(&server);
    let mut spaces = ["local", "blue"].map(|space| Furnished::new(&server, space));
    let mut cells = 0;
    for principal in principals(&server) {
        let own = &mut spaces[usize::from(principal.name != "operator")];
        for (number, operation) in api.operations().iter().enumerate() {
            let expected = principal.expects(operation);
            let answer = own.send(&elsewhere(&principal.client, number), operation, "");
            let got = match answer.status {
                200..=299 => Expected::Done,
                401 => Expected::Unauthenticated,
                403 => Expected::Forbidden,
                // It would have been done: the session has ended.
                409 if operation.path.starts_with("/v1/sessions/{id}/") => Expected::Done,
                _ => panic!("{operation:?}: {} {}", answer.status, answer.text()),
            };
            let cell = format!("{} {} {}", operation.method, operation.path, principal.name);
            assert_eq!(got, expected, "{cell}: {}", answer.text());
            assert!(
                operation.statuses.contains(&answer.status),
                "{cell} {}",
                answer.status
            );
            if got == Expected::Unauthenticated {
                assert!(answer.header("www-authenticate").is_some(), "{cell}");
            }
            if used_up(operation) && got == Expected::Done {
                own.restore_after(operation);
            }
            cells += 1;
        }
    }
    assert_eq!(cells, api.operations().len() * 9);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_a_path_does_not_have_is_405_and_names_what_it_has() {
    const METHODS: [&str; 9] = [
        "GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "OPTIONS", "BREW",
    ];
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let api = Api::of(&server);
    let things = Furnished::new(&server, "local").nowhere();
    let mut cells = 0;
    for (path, mut has) in api.paths() {
        has.sort_unstable();
        for method in METHODS.into_iter().filter(|method| !has.contains(method)) {
            for client in [server.client(), server.nobody()] {
                let answer = client.send(method, &things.fill(path), None);
                assert_eq!(answer.status, 405, "{method} {path}: {}", answer.text());
                assert_eq!(answer.code(), "method_not_allowed", "{method} {path}");
                let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
                allowed.retain(|it| *it != "HEAD");
                allowed.sort_unstable();
                assert_eq!(allowed, has, "{method} {path}");
                cells += 1;
            }
        }
        let answer = server
            .nobody()
            .get(&format!("{}/no/such/route", things.fill(path)));
        assert!(
            matches!(answer.status, 404 | 401),
            "{path}: {}",
            answer.text()
        );
    }
    assert!(cells > 0);
    assert_eq!(server.stop(), 0);
    trial.end();
}
