use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use glovebox_serve::{TokenKey, bootstrap};
use serde_json::json;

use crate::client::{Ask, connect, raw};
use crate::house::{House, eventually, shell};

pub(crate) fn whoever_has_no_good_token_gets_one_and_the_same_answer() {
    let house = House::open();
    let good = &house.admin;
    let last = if good.ends_with('0') { "1" } else { "0" };
    let changed = format!("{}{last}", &good[..good.len() - 1]);
    let unknown = format!("gb_{}_{}", "0".repeat(32), "0".repeat(64));
    let ask = || Ask::new("GET", "/v1/whoami");
    let wanted = ask().send(house.address);
    assert_eq!(wanted.status, 401);
    assert!(
        wanted
            .header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    let with = |value: &str| ask().header("Authorization", value);
    let bad = [
        with(""),
        with("Bearer"),
        with("Bearer "),
        with(good),
        with(&format!("Basic {good}")),
        with(&format!("bearer {good}")),
        with(&format!("BEARER {good}")),
        with(&format!("Bearer  {good}")),
        with(&format!("Bearer {good} x")),
        with(&format!("Bearer {}", good.to_uppercase())),
        with(&format!("Bearer {changed}")),
        with(&format!("Bearer {unknown}")),
        ask().token(good).token(good),
        ask().token(&unknown).token(good),
        Ask::new("GET", &format!("/v1/whoami?token={good}")),
        Ask::new("GET", &format!("/v1/whoami?access_token={good}")),
    ];
    for ask in bad {
        assert_eq!(ask.send(house.address).same(), wanted.same(), "{ask:?}");
    }
    assert_eq!(ask().token(good).send(house.address).status, 200);
}

pub(crate) fn nothing_of_a_token_is_kept() {
    let house = House::open();
    let secret = house.token(&json!({"name": "agent", "role": "agent"}));
    let keyed = Ask::new("POST", "/v1/tokens")
        .token(&house.admin)
        .header("Idempotency-Key", "one")
        .json(&json!({"name": "keyed", "role": "agent"}));
    let first = keyed.send(house.address).json();
    let again = keyed.send(house.address);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(
        again.json(),
        first,
        "a replay gives the same secret, although none is kept"
    );
    let keyed = first["secret"].as_str().unwrap().to_owned();
    assert_eq!(
        Ask::new("GET", "/v1/whoami")
            .token(&keyed)
            .send(house.address)
            .status,
        200
    );
    let halves: Vec<String> = [&secret, &keyed, &house.admin]
        .iter()
        .map(|token| token.rsplit('_').next().unwrap().to_owned())
        .collect();
    let state = house.directory.path().join("state");
    let mut looked = 0;
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() || path.file_name().unwrap() == "token" {
            continue;
        }
        let bytes = match std::fs::read(&path) {
            // The server works there meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.unwrap(),
        };
        for half in &halves {
            let found = bytes.windows(half.len()).any(|it| it == half.as_bytes());
            assert!(!found, "a token in {}", path.display());
        }
        looked += 1;
    }
    assert!(looked >= 3, "the database, its log and the keys");
    let listed = house.get("/v1/tokens").text();
    assert!(!listed.contains("gb_") && listed.contains("keyed"));
}

pub(crate) fn a_revoked_token_is_refused_and_its_stream_ends() {
    let house = House::with(|options| options.times.recheck = Duration::from_millis(200));
    let made = house
        .post("/v1/tokens", &json!({"name": "reader", "role": "auditor"}))
        .json();
    let secret = made["secret"].as_str().unwrap();
    let id = made["token"]["token_id"].as_str().unwrap();
    let mut request = shell("sleep 50");
    request["wait"] = json!(false);
    let exec = house.post("/v1/execs", &request).json();
    let exec = exec["exec_id"].as_str().unwrap();
    let path = format!("/v1/execs/{exec}/events");
    let mut stream = connect(house.address);
    stream
        .write_all(&Ask::new("GET", &path).token(secret).bytes(house.address))
        .unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"));
    let revoke = Ask::new("DELETE", &format!("/v1/tokens/{id}")).token(&house.admin);
    assert_eq!(revoke.send(house.address).status, 200);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(
        !String::from_utf8_lossy(&rest).contains("exit_code"),
        "ended before the exec"
    );
    let ask = Ask::new("GET", "/v1/whoami").token(secret);
    eventually("the revoked token is refused", || {
        ask.send(house.address).status == 401
    });
    assert_eq!(revoke.send(house.address).status, 200, "again is the same");
    let own = house.get("/v1/whoami").json()["token_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let own = Ask::new("DELETE", &format!("/v1/tokens/{own}")).token(&house.admin);
    assert_eq!(
        own.send(house.address).status,
        409,
        "nobody locks itself out"
    );
    house.post(&format!("/v1/execs/{exec}/cancel"), &json!({}));
}

pub(crate) fn guessing_is_slowed_down_and_locks_nobody_out() {
    let house = House::with(|options| options.bad_tokens = 5);
    let guess = format!("gb_{}_{}", "0".repeat(32), "0".repeat(64));
    let bad = Ask::new("GET", "/v1/whoami").token(&guess);
    for _ in 0..5 {
        assert_eq!(bad.send(house.address).status, 401);
    }
    let refused = bad.send(house.address);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "rate_limited")
    );
    assert!(
        refused
            .header("retry-after")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    assert_eq!(
        house.get("/v1/whoami").status,
        200,
        "a good token is always taken"
    );
    assert_eq!(
        Ask::new("GET", "/v1/whoami").send(house.address).status,
        401
    );
    eventually("it is in the ledger", || {
        house
            .get("/v1/audit?kind=administered")
            .text()
            .contains("bad_tokens")
    });
}

pub(crate) fn the_bootstrap_token_is_private_and_kept() {
    let house = House::open();
    let state = house.dispatcher.state().path().to_owned();
    let path = state.join("token");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let store = house.dispatcher.store().unwrap();
    let key = TokenKey::load_or_create(&state).unwrap();
    let before = std::fs::read(&path).unwrap();
    bootstrap(store, &key, &state).unwrap();
    assert_eq!(
        std::fs::read(&path).unwrap(),
        before,
        "kept while it is valid"
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(
        bootstrap(store, &key, &state).is_err(),
        "others could have read it"
    );
    std::fs::remove_file(&path).unwrap();
    bootstrap(store, &key, &state).unwrap();
    let after = std::fs::read_to_string(&path).unwrap();
    let whoami = |token: &str| {
        Ask::new("GET", "/v1/whoami")
            .token(token)
            .send(house.address)
    };
    assert_eq!(whoami(after.trim()).json()["role"], "admin");
    eventually("the lost one is revoked", || {
        whoami(&house.admin).status == 401
    });
}

pub(crate) fn roles_do_what_they_may_and_no_more() {
    let house = House::open();
    let of = |role: &str| house.token(&json!({"name": role, "role": role}));
    let (agent, approver, auditor) = (of("agent"), of("approver"), of("auditor"));
    let status = |token: &str, method: &str, path: &str| {
        let ask = Ask::new(method, path).token(token);
        let ask = match method {
            "GET" => ask,
            _ => ask.json(&json!({"exec": {"kind": "argv", "command": "true"}})),
        };
        ask.send(house.address).status
    };
    for (method, path, allowed) in [
        ("GET", "/v1/execs", [200, 200, 200]),
        ("POST", "/v1/execs", [200, 403, 403]),
        ("POST", "/v1/policy/explain", [200, 200, 200]),
        ("GET", "/v1/audit", [403, 403, 200]),
        ("GET", "/v1/tokens", [403, 403, 403]),
        ("POST", "/v1/tokens", [403, 403, 403]),
        ("GET", "/v1/settings", [403, 403, 403]),
        ("PATCH", "/v1/settings", [403, 403, 403]),
        ("GET", "/metrics", [403, 403, 403]),
        ("PUT", "/v1/workspaces/p/files/f", [200, 403, 403]),
        ("DELETE", "/v1/workspaces/p", [204, 403, 403]),
    ] {
        for (token, status_wanted) in [&agent, &approver, &auditor].into_iter().zip(allowed) {
            assert_eq!(
                status(token, method, path),
                status_wanted,
                "{method} {path}"
            );
        }
    }
    let narrow = house.token(&json!({"name": "narrow", "role": "agent", "scopes": ["execs:read"]}));
    assert_eq!(status(&narrow, "GET", "/v1/execs"), 200);
    assert_eq!(status(&narrow, "POST", "/v1/execs"), 403);
    let wide = json!({"name": "wide", "role": "agent", "scopes": ["audit:read"]});
    assert_eq!(house.post("/v1/tokens", &wide).status, 403);
    let bytes = raw(house.address, b"GET /v1/execs HTTP/1.0\r\n\r\n");
    assert!(bytes.starts_with(b"HTTP/1.0 400") || bytes.starts_with(b"HTTP/1.1 400"));
}

pub(crate) fn only_the_operator_sees_other_spaces() {
    let house = House::open();
    let tenant = house.token(&json!({"name": "boss", "role": "admin", "space_id": "tenant"}));
    let get = |path: &str| Ask::new("GET", path).token(&tenant).send(house.address);
    assert_eq!(
        get("/v1/tokens").json()["items"].as_array().unwrap().len(),
        1
    );
    assert_eq!(get("/v1/tokens?space_id=local").status, 403);
    assert_eq!(get("/v1/settings").status, 403);
    assert_eq!(get("/metrics").status, 403);
    let health = get("/sandbox/health").json();
    assert_eq!(health["workspace_root_native"], json!(null));
    let counts =
        |health: &serde_json::Value| ["running", "queued"].map(|name| health.get(name).cloned());
    assert_eq!(
        counts(&health),
        [None, None],
        "what others do is theirs to know"
    );
    let health = house.get("/sandbox/health").json();
    assert!(health["workspace_root_native"].is_string());
    assert_eq!(counts(&health), [Some(json!(0)), Some(json!(0))]);
    let mine = house.get("/v1/whoami").json()["token_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let foreign = get(&format!("/v1/tokens/{mine}"));
    let random = get(&format!("/v1/tokens/t_{}", "0".repeat(32)));
    assert_eq!(foreign.same(), random.same());
    assert_eq!(foreign.status, 404);
    let other = Ask::new("POST", "/v1/tokens")
        .token(&tenant)
        .json(&json!({"name": "x", "role": "agent", "space_id": "local"}));
    assert_eq!(other.send(house.address).status, 403);
}

pub(crate) fn no_token_makes_a_stronger_one() {
    let house = House::open();
    let end = "2090-01-01T00:00:00Z";
    let narrow = house.token(&json!({
        "name": "narrow", "role": "admin", "scopes": ["tokens:write", "execs:read"],
        "user_id": "ann", "expires_at": end,
    }));
    let make = |more: serde_json::Value| {
        let mut request = json!({"name": "x", "role": "agent", "scopes": ["execs:read"]});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        Ask::new("POST", "/v1/tokens")
            .token(&narrow)
            .json(&request)
            .send(house.address)
    };
    for (more, named) in [
        (
            json!({"scopes": ["execs:read", "files:read"]}),
            "files:read",
        ),
        (json!({"scopes": null}), "execs:write"),
        (json!({"role": "admin", "scopes": null}), "execs:write"),
        (
            json!({"role": "admin", "scopes": ["settings:write"]}),
            "settings:write",
        ),
        (json!({"user_id": "bob"}), "ann"),
        (json!({"expires_at": "2090-01-01T00:00:01Z"}), end),
        (json!({"space_id": "other", "user_id": "bob"}), "ann"),
    ] {
        let refused = make(more.clone());
        assert_eq!(refused.status, 403, "{more}: {}", refused.text());
        let error = refused.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(named), "{more}: {message}");
        assert!(error["hints"][0].is_string(), "{more}");
    }
    let made = make(json!({}));
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["token"].clone();
    assert_eq!(
        [&token["user_id"], &token["expires_at"]],
        [&json!("ann"), &json!(end)],
        "what binds the one binds the other"
    );
    let sooner = make(json!({"name": "y", "user_id": "ann", "expires_at": "2080-01-01T00:00:00Z"}));
    assert_eq!(sooner.status, 201, "{}", sooner.text());
    assert_eq!(sooner.json()["token"]["expires_at"], "2080-01-01T00:00:00Z");
}
