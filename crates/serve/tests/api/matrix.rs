use serde_json::{Value, json};

use crate::client::Ask;
use crate::house::{House, shell};

const OPEN: [&str; 5] = ["/", "/docs", "/healthz", "/openapi.json", "/readyz"];
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn described(house: &House) -> Value {
    Ask::new("GET", "/openapi.json").send(house.address).json()
}

fn filled(path: &str) -> String {
    let named = path
        .replace("{id}", "x")
        .replace("{project}", "p")
        .replace("{path}", "f")
        .replace("{name}", "n")
        .replace("{task_id}", "t");
    assert!(!named.contains('{'), "{path}");
    named
}

pub(crate) fn every_operation_needs_a_token() {
    let house = House::open();
    let document = described(&house);
    let paths = document["paths"].as_object().unwrap();
    let mut asked = 0;
    for (path, methods) in paths {
        for method in METHODS
            .iter()
            .filter(|method| methods.get(**method).is_some())
        {
            let operation = &methods[*method];
            let ask = Ask::new(&method.to_uppercase(), &filled(path)).json(&json!({}));
            let reply = ask.send(house.address);
            let open = OPEN.contains(&path.as_str());
            assert_eq!(open, operation.get("security").is_none(), "{method} {path}");
            assert_eq!(
                reply.status,
                if open { 200 } else { 401 },
                "{method} {path}"
            );
            assert!(reply.header("x-request-id").is_some());
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            asked += 1;
        }
    }
    assert!(asked > 40, "{asked}");
    let nowhere = Ask::new("GET", "/v1/nothing").send(house.address);
    assert_eq!(
        (nowhere.status, nowhere.code().as_str()),
        (404, "not_found")
    );
}

pub(crate) fn other_methods_are_refused_with_those_that_there_are() {
    let house = House::open();
    let document = described(&house);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in METHODS.iter().chain(&["options", "trace", "query"]) {
            if methods.get(*method).is_some() {
                continue;
            }
            let ask = Ask::new(&method.to_uppercase(), &filled(path)).token(&house.admin);
            let reply = ask.send(house.address);
            assert_eq!(reply.status, 405, "{method} {path}");
            let allowed = reply
                .header("allow")
                .unwrap_or_default()
                .to_ascii_lowercase();
            for own in METHODS.iter().filter(|own| methods.get(**own).is_some()) {
                assert!(allowed.contains(own), "{path}: {allowed}");
            }
        }
        let endless = path.ends_with("/events") || path.ends_with("/watch");
        if methods.get("get").is_some() && !endless {
            let ask = Ask::new("HEAD", &filled(path)).token(&house.admin);
            let reply = ask.send(house.address);
            assert!(reply.status < 405, "HEAD {path}: {}", reply.status);
            assert!(reply.body.is_empty(), "HEAD {path}");
        }
    }
}

pub(crate) fn every_answer_is_as_described() {
    let house = House::open();
    let document = described(&house);
    let mut request =
        shell("echo out; echo err >&2; echo x > /workspace/artifacts/a; echo y > held");
    request["client_id"] = json!("x");
    request["project_id"] = json!("p");
    request["writes"] = json!("held");
    request["task_ref"]["task_id"] = json!("t");
    assert_eq!(house.post("/v1/execs", &request).status, 200);
    let put = Ask::new("PUT", "/v1/workspaces/p/files/f")
        .token(&house.admin)
        .body(b"x");
    assert_eq!(put.send(house.address).status, 200);
    let taken = house.post("/v1/workspaces/p/snapshots", &json!({}));
    let snapshot = taken.json()["snapshot"]["snapshot_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let me = house.get("/v1/whoami").json()["token_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut asking = shell("touch x");
    asking["policy_overrides"]["tier"] = json!("high");
    asking["wait"] = json!(false);
    let asked = house.post("/v1/execs", &asking).json();
    let approval = asked["approval_id"].as_str().unwrap().to_owned();
    let made = house.post("/v1/sandboxes", &json!({"lifetime": "shared"}));
    let sandbox = made.json()["name"].as_str().map(str::to_owned);
    // Only root can keep sandboxes on the native backend.
    assert_eq!(sandbox.is_some(), rustix::process::geteuid().is_root());
    let mut looked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("get") else {
            continue;
        };
        let id = match path.split('/').nth(2) {
            Some("tokens") => me.as_str(),
            Some("approvals") => &approval,
            Some("skills") => "shell.run",
            Some("sandboxes") if path.contains('{') => match &sandbox {
                Some(name) => name.as_str(),
                None => continue,
            },
            // This server has no program that would keep one: tests/http has them.
            Some("sessions") if path.contains('{') => continue,
            _ if path.contains("/snapshots/{id}") => &snapshot,
            _ => "x",
        };
        let named = path.replace("{id}", id).replace("{project}", "p");
        let named = named.replace("{task_id}", "t");
        let file = if path.contains("artifacts") { "a" } else { "f" };
        let end = if path.ends_with("/watch") {
            "?seconds=0"
        } else {
            ""
        };
        let reply = house.get(&(named.replace("{path}", file) + end));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let kind = reply.header("content-type").unwrap_or_default();
        let described = &operation["responses"]["200"]["content"];
        let described = described
            .as_object()
            .unwrap_or_else(|| panic!("{path} has no content"));
        let known = described.keys().any(|it| kind.starts_with(it.as_str()));
        assert!(
            known,
            "{path} is {kind}, described are {:?}",
            described.keys()
        );
        looked += 1;
    }
    assert!(looked > 25, "{looked}");
}
