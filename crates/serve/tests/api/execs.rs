use std::io::Write;

use serde_json::json;

use crate::client::{Ask, connect};
use crate::house::{House, eventually, shell};

pub(crate) fn an_exec_is_run_and_recorded() {
    let house = House::open();
    let mut request = shell("cat; printf '\\xff'; cat /workspace/inputs/dir/a; exit 3");
    request["exec"]["stdin"] = json!("given ");
    request["inputs"] = json!([{"path": "dir\\a", "content_base64": "AAEC"}]);
    request["task_ref"] = json!({"task_id": "t", "conversation_id": "not a name"});
    let reply = house.post("/v1/execs", &request);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let exec = reply.json();
    assert_eq!(
        (&exec["status"], &exec["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert!(
        exec["project_id"]
            .as_str()
            .unwrap()
            .starts_with("conversation-")
    );
    let id = exec["exec_id"].as_str().unwrap();
    let kept = house.get(&format!("/v1/execs/{id}")).json();
    assert_eq!(kept, exec, "who waited was told what is kept");
    let stdout = house.get(&format!("/v1/execs/{id}/stdout"));
    assert_eq!(stdout.body, b"given \xff\0\x01\x02");
    assert_eq!(
        stdout.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let part = house.get(&format!("/v1/execs/{id}/stdout?offset=6&limit=1"));
    assert_eq!(part.body, b"\xff");
    let legacy = house.get(&format!("/sandbox/execs/{id}/stdout")).json();
    assert_eq!(legacy["encoding"], "base64");
    let listed = house.get("/v1/execs?task_id=t&status=failed").json();
    assert_eq!(listed["items"][0]["exec_id"], id);
    let short = format!("/v1/execs?id_prefix={}", &id[..10]);
    assert_eq!(house.get(&short).json()["items"][0]["exec_id"], id);
    assert_eq!(house.get("/v1/execs?id_prefix=e_%25").status, 400);
    let old = house.get(&format!("/sandbox/execs/{id}")).json();
    assert_eq!(old["artifacts_path"], exec["artifacts_dir"]);
    let seen = house
        .get(&format!("/sandbox/execs/{id}/observation"))
        .json();
    assert_eq!(seen["exit_code"], 3);
    for key in ["stdout_path", "artifacts_dir"] {
        assert!(
            !exec[key].as_str().unwrap().starts_with('/'),
            "no path of the host"
        );
    }
    assert_eq!(house.get("/v1/audit/verify").json()["sound"], true);
}

pub(crate) fn a_client_that_goes_away_loses_nothing() {
    let house = House::open();
    let mut request = shell("sleep 1; echo done");
    request["client_id"] = json!("left");
    let ask = Ask::new("POST", "/v1/execs")
        .token(&house.admin)
        .json(&request);
    let mut stream = connect(house.address);
    stream.write_all(&ask.bytes(house.address)).unwrap();
    eventually("it runs", || house.get("/v1/execs/left").status == 200);
    drop(stream);
    eventually("it has ended", || {
        house.get("/v1/execs/left").json()["exit_code"] == 0
    });
    assert_eq!(house.get("/v1/execs/left/stdout").body, b"done\n");
    let mut request = shell("sleep 50");
    request["wait"] = json!(false);
    let taken = house.post("/v1/execs", &request);
    assert_eq!(taken.status, 202);
    let id = taken.json()["exec_id"].as_str().unwrap().to_owned();
    assert_eq!(
        house
            .post(&format!("/v1/execs/{id}/cancel"), &json!({}))
            .status,
        200
    );
    eventually("it is canceled", || {
        house.get(&format!("/v1/execs/{id}")).json()["status"] == "canceled"
    });
}

pub(crate) fn a_wrong_shape_is_refused_as_policy() {
    let house = House::open();
    let request = json!({"exec": {"kind": "python", "command": "python", "args": ["-m", "http"]}});
    let reply = house.post("/v1/execs", &request);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (403, "policy_denied")
    );
    let mut wide = shell("true");
    wide["policy_overrides"] = json!({"network": "unrestricted"});
    let reply = house.post("/v1/execs", &wide);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (403, "policy_denied")
    );
    let id = reply.json()["error"]["exec_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        house.get(&format!("/v1/execs/{id}")).json()["status"],
        "policy_denied"
    );
    wide["on_exceed"] = json!("cap");
    let capped = house.post("/v1/execs", &wide).json();
    assert_eq!(capped["capped"][0]["field"], "network");
    let explained = house.post("/v1/policy/explain", &request).json();
    assert_eq!(explained["decision"], "deny");
    let beyond = json!({"exec": {"kind": "argv", "command": "true"},
                        "policy_overrides": {"timeout": "9999d"}});
    assert_eq!(house.post("/v1/execs", &beyond).status, 403);
}

pub(crate) fn a_backend_is_named_with_its_runtime() {
    let house = House::open();
    let explain = |overrides: serde_json::Value| {
        let request = json!({"exec": {"kind": "argv", "command": "true"},
                             "policy_overrides": overrides});
        house.post("/v1/policy/explain", &request)
    };
    let short = explain(json!({"backend": "docker:runsc"}));
    let long = explain(json!({"backend": "docker", "runtime": "runsc"}));
    assert_eq!((short.status, long.status), (200, 200), "{short:?}");
    assert_eq!(short.json(), long.json());
    assert!(short.json().to_string().contains("runsc"), "{short:?}");
    let both = explain(json!({"backend": "docker:runsc", "runtime": "runsc"}));
    assert_eq!(both.status, 200, "{both:?}");
    let contradicts = explain(json!({"backend": "docker:runsc", "runtime": "runc"}));
    assert_eq!(
        (contradicts.status, contradicts.code().as_str()),
        (409, "conflict")
    );
    for wrong in ["native:runsc", "docker:", "docker:-v", "runsc"] {
        let refused = explain(json!({"backend": wrong}));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "invalid_argument"),
            "{wrong}"
        );
    }
}

pub(crate) fn bindings_of_a_token_are_kept() {
    let house = House::open();
    let token = house
        .token(&json!({"name": "bound", "role": "agent", "user_id": "ann", "agent_id": "coder"}));
    let post = |task_ref: serde_json::Value| {
        let mut request = shell("true");
        request["task_ref"] = task_ref;
        Ask::new("POST", "/v1/execs")
            .token(&token)
            .json(&request)
            .send(house.address)
    };
    let ids = post(json!({})).json()["ids"].clone();
    assert_eq!(
        (&ids["user_id"], &ids["agent_id"]),
        (&json!("ann"), &json!("coder"))
    );
    assert_eq!(post(json!({"user_id": "ann"})).status, 200);
    assert_eq!(post(json!({"user_id": "bob"})).status, 403);
    assert_eq!(post(json!({"agent_id": "other"})).status, 403);
}

pub(crate) fn a_page_is_bounded_by_its_bytes() {
    let house = House::open();
    // Bytes that JSON escapes: a record of most of a megabyte.
    let large = shell("head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2");
    for _ in 0..9 {
        assert_eq!(house.post("/v1/execs", &large).json()["exit_code"], 0);
    }
    for route in ["/v1/execs", "/sandbox/execs"] {
        let mut seen = std::collections::BTreeSet::new();
        let (mut pages, mut cursor) = (0, String::new());
        loop {
            let page = house.get(&format!("{route}?limit=1000{cursor}"));
            assert!(page.body.len() < 12 << 20, "{} bytes", page.body.len());
            let page = page.json();
            pages += 1;
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty());
            let new = |item: &serde_json::Value| seen.insert(item["exec_id"].to_string());
            assert!(items.iter().all(new), "each is on one page");
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((pages, seen.len()), (2, 9), "{route}");
    }
    let few = house.get("/v1/execs?limit=3").json();
    assert_eq!(few["items"].as_array().unwrap().len(), 3);
    assert!(few["next"].is_string());
}

pub(crate) fn whoever_finds_nothing_is_told_where_to_look() {
    let house = House::open();
    for (path, hint) in [
        ("/v1/execs/e_nothing", "GET /v1/execs"),
        ("/v1/execs/e_nothing/stdout", "GET /v1/execs"),
        ("/sandbox/execs/e_nothing", "GET /v1/execs"),
        ("/v1/tokens/nothing", "GET /v1/tokens"),
        ("/v1/workspaces/nothing", "GET /v1/workspaces"),
        ("/v1/nothing", "GET /openapi.json"),
    ] {
        let reply = house.get(path);
        assert_eq!(reply.status, 404, "{path}");
        let told = reply.json()["error"]["hints"][0].to_string();
        assert!(told.contains(hint), "{path}: {told}");
    }
}
