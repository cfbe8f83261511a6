use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::house::{House, shell};

fn within(house: &House, token: &str, place: Value, line: &str) -> Reply {
    let mut request = shell(line);
    request["sandbox"] = place;
    Ask::new("POST", "/v1/execs")
        .token(token)
        .json(&request)
        .send(house.address)
}

fn names(reply: &Reply) -> Vec<String> {
    let items = reply.json()["items"].as_array().unwrap().clone();
    let mut names: Vec<_> = items
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn a_kept_sandbox_is_made_used_made_anew_and_removed() {
    let house = House::open();
    let request = json!({"lifetime": "agent", "agent_id": "ann", "project_id": "p",
                         "policy_overrides": {"pids": 32}});
    let made = house.post("/v1/sandboxes", &request);
    assert_eq!(made.status, 201, "{}", made.text());
    let row = made.json();
    let (id, name) = (
        row["sandbox_id"].as_str().unwrap(),
        row["name"].as_str().unwrap(),
    );
    assert_eq!(
        (&row["state"], &row["scope"]),
        (&json!("idle"), &json!("ann"))
    );
    assert_eq!(row["config"]["limits"]["pids"], 32);
    let again = house.post("/v1/sandboxes", &request);
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"));

    // By its name, by its id, and by whose it is: it is one and the same.
    let by_scope = json!({"project_id": "p", "sandbox": {"lifetime": "agent"},
                          "task_ref": {"agent_id": "ann"}, "policy_overrides": {"pids": 32}});
    for (place, line) in [
        (json!({"name": name}), "echo 1 > kept; echo $HOME"),
        (json!({"id": id}), "cat kept"),
    ] {
        let ran = within(&house, &house.admin, place, line);
        assert_eq!(ran.status, 200, "{}", ran.text());
        assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
        assert_eq!(ran.json()["sandbox_id"], id);
    }
    let mut scoped = shell("cat kept");
    for (key, value) in by_scope.as_object().unwrap() {
        scoped[key] = value.clone();
    }
    let ran = house.post("/v1/execs", &scoped);
    assert_eq!(
        (ran.status, &ran.json()["stdout"]),
        (200, &json!("1\n")),
        "{}",
        ran.text()
    );
    assert_eq!(ran.json()["sandbox_id"], id);
    let other = house.post(
        "/v1/execs",
        &json!({"project_id": "q", "sandbox": {"name": name},
                "exec": {"kind": "argv", "command": "true"}}),
    );
    assert_eq!((other.status, other.code().as_str()), (409, "conflict"));

    assert_eq!(
        house.get(&format!("/v1/sandboxes/{name}")).json()["uses"],
        3
    );
    for (query, found) in [
        ("", 1),
        ("?lifetime=agent", 1),
        ("?lifetime=session", 0),
        ("?agent_id=ann&state=idle", 1),
        ("?agent_id=bob", 0),
        ("?session_id=ann", 0),
        ("?state=busy", 0),
    ] {
        let listed = house.get(&format!("/v1/sandboxes{query}"));
        assert_eq!(names(&listed).len(), found, "{query}: {}", listed.text());
    }
    let explained = house.post("/v1/sandboxes/explain", &request);
    assert_eq!(explained.status, 200, "{}", explained.text());
    assert_eq!(explained.json()["sandbox"]["sandbox_id"], id);
    assert_eq!(explained.json()["next"], "same");

    let anew = house.post(&format!("/v1/sandboxes/{id}/recreate"), &json!({}));
    assert_eq!(anew.status, 200, "{}", anew.text());
    assert_eq!(anew.json()["state"], "down");
    let anew = house.post("/v1/sandboxes/recreate", &json!({"all": true}));
    assert_eq!(anew.status, 200, "{}", anew.text());
    assert_eq!(
        anew.json()["recreated"][0]["sandbox_id"],
        id,
        "{}",
        anew.text()
    );
    assert_eq!(anew.json()["failed"], json!([]));

    let remove = || {
        Ask::new("DELETE", &format!("/v1/sandboxes/{name}"))
            .token(&house.admin)
            .header("Idempotency-Key", "once")
            .send(house.address)
    };
    let removed = remove();
    assert_eq!(
        (removed.status, &removed.json()["sandbox_id"]),
        (200, &json!(id))
    );
    assert_eq!(remove().header("idempotency-replayed"), Some("true"));
    assert_eq!(house.get(&format!("/v1/sandboxes/{id}")).status, 404);
    assert_eq!(names(&house.get("/v1/sandboxes")).len(), 0);
    let gone = within(&house, &house.admin, json!({"id": id}), "true");
    assert_eq!((gone.status, gone.code().as_str()), (404, "not_found"));
    let pruned = house.post("/v1/sandboxes/prune", &json!({}));
    assert_eq!(pruned.json(), json!({"removed": [], "failed": []}));
    // The workspace outlives it.
    assert_eq!(house.get("/v1/workspaces/p/files/kept").body, b"1\n");
}

pub(crate) fn what_does_not_name_one_sandbox_is_refused() {
    let house = House::open();
    for place in [
        json!({}),
        json!({"id": "sb_0123", "name": "x"}),
        json!({"name": "x", "lifetime": "shared"}),
        json!({"name": "--rm"}),
        json!({"name": "../../etc"}),
        json!({"lifetime": "forever"}),
        json!({"name": null}),
        json!("x"),
    ] {
        let refused = within(&house, &house.admin, place.clone(), "true");
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "invalid_argument"),
            "{place}"
        );
    }
    for body in [
        json!({}),
        json!({"all": false}),
        json!({"all": true, "mismatched": true}),
        json!({"agent": ""}),
        json!({"one": "x"}),
    ] {
        let refused = house.post("/v1/sandboxes/recreate", &body);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "invalid_argument"),
            "{body}"
        );
    }
    for body in [
        json!({"lifetime": "exec"}),
        json!({"lifetime": "agent", "agent_id": ""}),
        json!({"lifetime": "agent", "image": "x"}),
        json!({"lifetime": "agent", "policy_overrides": {"runtime": "--privileged"}}),
        json!({"lifetime": "agent", "policy_overrides": {"backend": "docker:--privileged"}}),
        json!({"lifetime": "agent", "policy_overrides": {"backend": "native:runsc"}}),
        json!({"lifetime": "agent", "policy_overrides": {"image": "-v/:/host"}}),
        json!({"lifetime": "agent", "policy_overrides": {"require": ["luck"]}}),
    ] {
        let refused = house.post("/v1/sandboxes", &body);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "invalid_argument"),
            "{body}"
        );
    }
    // Whose it would be is not said.
    for lifetime in ["agent", "session"] {
        let refused = house.post("/v1/sandboxes", &json!({"lifetime": lifetime}));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (409, "conflict"),
            "{lifetime}"
        );
        let refused = within(&house, &house.admin, json!({"lifetime": lifetime}), "true");
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (409, "conflict"),
            "{lifetime}"
        );
    }
    // More than policy allows, and what no backend here has.
    let over = json!({"lifetime": "shared", "policy_overrides": {"memory": "900G"}});
    assert_eq!(house.post("/v1/sandboxes", &over).code(), "policy_denied");
    let own = json!({"lifetime": "shared",
                     "policy_overrides": {"backend": "native", "require": ["own_kernel"]}});
    let refused = house.post("/v1/sandboxes", &own);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (409, "backend_unavailable")
    );
    assert_eq!(names(&house.get("/v1/sandboxes")).len(), 0);
}

pub(crate) fn an_agent_has_its_own_sandboxes_and_no_other_agents() {
    let house = House::open();
    let token = |agent: &str| {
        house.token(&json!({"name": agent, "role": "agent", "space_id": "team", "agent_id": agent}))
    };
    let (ann, bob) = (token("ann"), token("bob"));
    let send = |token: &str, method: &str, path: &str, body: Option<Value>| {
        let ask = Ask::new(method, path).token(token);
        body.map_or(ask.clone(), |body| ask.json(&body))
            .send(house.address)
    };
    let make = |token: &str, body: Value| {
        let made = send(token, "POST", "/v1/sandboxes", Some(body));
        assert_eq!(made.status, 201, "{}", made.text());
        let id = made.json()["sandbox_id"].as_str().unwrap().to_owned();
        (id, made.json()["name"].as_str().unwrap().to_owned())
    };
    let anns = make(&ann, json!({"lifetime": "agent"}));
    let session = make(&ann, json!({"lifetime": "session", "session_id": "talk"}));
    let shared = make(&ann, json!({"lifetime": "shared"}));
    // In bob's name only bob acts.
    let lie = send(
        &ann,
        "POST",
        "/v1/sandboxes",
        Some(json!({"lifetime": "agent", "agent_id": "bob"})),
    );
    assert_eq!(lie.status, 403, "{}", lie.text());

    let never = "glovebox-never-01234567";
    for name in [&anns.0, &anns.1, &session.0, &session.1] {
        for (method, path) in [
            ("GET", "/v1/sandboxes/N"),
            ("DELETE", "/v1/sandboxes/N"),
            ("POST", "/v1/sandboxes/N/recreate"),
        ] {
            let ask = |name: &str| send(&bob, method, &path.replace('N', name), None);
            assert_eq!(ask(name).status, 404, "{method} {name}");
            assert_eq!(ask(name).same(), ask(never).same(), "{method} {name}");
        }
        let key = if name.contains('_') { "id" } else { "name" };
        let inside = within(&house, &bob, json!({key: name}), "true");
        let nowhere = within(&house, &bob, json!({"name": never}), "true");
        assert_eq!(
            (inside.status, inside.same()),
            (404, nowhere.same()),
            "{name}"
        );
    }
    assert_eq!(
        names(&send(&bob, "GET", "/v1/sandboxes", None)),
        [shared.1.as_str()]
    );
    let asked = send(&bob, "GET", "/v1/sandboxes?agent_id=ann", None);
    assert_eq!(names(&asked).len(), 0, "{}", asked.text());
    assert_eq!(names(&send(&ann, "GET", "/v1/sandboxes", None)).len(), 3);
    let told = send(&ann, "GET", "/v1/sandboxes?session_id=talk", None);
    assert_eq!(names(&told), [session.1.as_str()]);

    // What all share is used by all, and taken down by none of them.
    let used = within(&house, &bob, json!({"name": shared.1}), "echo hi");
    assert_eq!(
        (used.status, &used.json()["stdout"]),
        (200, &json!("hi\n")),
        "{}",
        used.text()
    );
    for (method, path) in [
        ("DELETE", format!("/v1/sandboxes/{}", shared.0)),
        ("POST", format!("/v1/sandboxes/{}/recreate", shared.1)),
    ] {
        assert_eq!(send(&bob, method, &path, None).status, 403, "{method}");
    }
    for body in [
        json!({"all": true}),
        json!({"mismatched": true}),
        json!({"agent": "ann"}),
    ] {
        let refused = send(&bob, "POST", "/v1/sandboxes/recreate", Some(body.clone()));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "forbidden"),
            "{body}"
        );
    }
    assert_eq!(send(&bob, "POST", "/v1/sandboxes/prune", None).status, 403);

    // The space's admin sees all of them, and nothing of the host.
    let admin = house.token(&json!({"name": "chief", "role": "admin", "space_id": "team"}));
    assert_eq!(names(&send(&admin, "GET", "/v1/sandboxes", None)).len(), 3);
    assert_eq!(
        send(&admin, "POST", "/v1/sandboxes/prune", None).status,
        403
    );
    for path in ["/v1/pool", "/v1/backends"] {
        assert_eq!(send(&admin, "GET", path, None).status, 403, "{path}");
    }
    // Ann's own are hers to remove.
    for name in [&anns.1, &session.0] {
        let removed = send(&ann, "DELETE", &format!("/v1/sandboxes/{name}"), None);
        assert_eq!(removed.status, 200, "{}", removed.text());
    }
    // Another space has none of it.
    assert_eq!(names(&house.get("/v1/sandboxes")).len(), 0);
    assert_eq!(
        house.get(&format!("/v1/sandboxes/{}", shared.0)).status,
        404
    );
}

pub(crate) fn a_sandbox_in_use_is_not_taken_down() {
    let house = House::under("[sandbox]\nacquire_timeout = \"0s\"\n");
    let made = house.post("/v1/sandboxes", &json!({"lifetime": "shared"}));
    assert_eq!(made.status, 201, "{}", made.text());
    let name = made.json()["name"].as_str().unwrap().to_owned();
    let mut request = shell("sleep 50");
    request["sandbox"] = json!({"name": name});
    request["wait"] = json!(false);
    request["client_id"] = json!("inside");
    assert_eq!(house.post("/v1/execs", &request).status, 202);
    crate::house::eventually("it is busy", || {
        house.get(&format!("/v1/sandboxes/{name}")).json()["state"] == "busy"
    });
    let refused = Ask::new("DELETE", &format!("/v1/sandboxes/{name}"))
        .token(&house.admin)
        .send(house.address);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "busy"),
        "{}",
        refused.text()
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        house.post("/v1/execs/inside/cancel", &json!({})).status,
        200
    );
    // Busy until the exec is over and recorded.
    crate::house::eventually("it is removed", || {
        let removed = Ask::new("DELETE", &format!("/v1/sandboxes/{name}"))
            .token(&house.admin)
            .send(house.address);
        assert!(matches!(removed.status, 200 | 503), "{}", removed.text());
        removed.status == 200
    });
}

pub(crate) fn pool_and_backends_are_for_those_who_look_after_the_server() {
    let house = House::open();
    let auditor = house.token(&json!({"name": "auditor", "role": "auditor"}));
    let tenants = house.token(&json!({"name": "auditor", "role": "auditor", "space_id": "team"}));
    let agent = house.agent("local");
    for path in ["/v1/pool", "/v1/backends"] {
        let ask = |token: &str| Ask::new("GET", path).token(token).send(house.address);
        assert_eq!(ask(&house.admin).status, 200, "{path}");
        assert_eq!(ask(&auditor).status, 200, "{path}");
        assert_eq!(ask(&tenants).status, 403, "{path}");
        assert_eq!(ask(&agent).status, 403, "{path}");
    }
    let native = house.get("/v1/backends").json()["items"][0].clone();
    assert_eq!(
        (&native["name"], &native["usable"]),
        (&json!("native"), &json!(true))
    );
    let guarantees = native["guarantees"].as_array().unwrap();
    assert!(
        guarantees
            .iter()
            .all(|it| !it["evidence"].as_str().unwrap().is_empty())
    );
    let pool = house.get("/v1/pool").json();
    assert_eq!(
        pool["enabled"],
        rustix::process::geteuid().is_root(),
        "{pool}"
    );
    let text = house.get("/metrics").text();
    for line in [
        "glovebox_pool_hits_total ",
        "glovebox_pool_misses_total ",
        "glovebox_pool_dead_total{found=\"borrow\"} 0",
        "glovebox_pool_idle ",
        "glovebox_pool_refill_last_seconds ",
        "glovebox_sandboxes{state=\"idle\"} 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let made = house.post("/v1/sandboxes", &json!({"lifetime": "shared"}));
    let (status, kept) = match rustix::process::geteuid().is_root() {
        true => (201, 1),
        // Whoever cannot keep one says so, and registers nothing.
        false => (409, 0),
    };
    assert_eq!(made.status, status, "{}", made.text());
    let text = house.get("/metrics").text();
    let line = format!("glovebox_sandboxes{{state=\"idle\"}} {kept}");
    assert!(text.contains(&line), "{text}");
    assert_eq!(names(&house.get("/v1/sandboxes")).len(), kept);
}
