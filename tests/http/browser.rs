//! A page in somebody's browser, lured here by a name or coming from another site, gets nothing.

use serde_json::json;
use support::{Api, Caller, Client, Furnished, Response, Start, Trial};

#[track_caller]
fn assert_refused(what: &str, answer: &Response) {
    assert_eq!(answer.status, 403, "{what}: {}", answer.text());
    assert_eq!(answer.code(), "forbidden", "{what}");
    let reflected = |(name, _): &&(String, String)| name.starts_with("access-control-");
    assert_eq!(answer.headers.iter().find(reflected), None, "{what}");
    assert!(!answer.text().contains("evil"), "{what}: {}", answer.text());
}

#[test]
fn no_route_answers_to_a_foreign_name() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let things = Furnished::new(&server, "local").nowhere();
    let port = server.address.port();
    let api = Api::of(&server);
    for operation in api.operations() {
        for client in [server.client(), server.nobody()] {
            let client = client.with("Host", format!("evil.test:{port}"));
            let what = format!("{} {}", operation.method, operation.path);
            assert_refused(&what, &things.send(&client, operation, ""));
        }
    }
    for host in [
        "evil.test".to_owned(),
        format!("localhost.evil.test:{port}"),
        format!("127.0.0.1.evil.test:{port}"),
        format!("127.0.0.1:{port}@evil.test"),
        format!("evil.test@127.0.0.1:{port}"),
        "0.0.0.0".to_owned(),
        "2130706433".to_owned(),
        "192.168.0.1".to_owned(),
        "[::2]".to_owned(),
        "localhost, evil.test".to_owned(),
    ] {
        let answer = server.client().with("Host", &*host).get("/healthz");
        assert!(
            matches!(answer.status, 400 | 403),
            "{host}: {}",
            answer.text()
        );
    }
    for host in [
        "localhost".to_owned(),
        format!("127.0.0.1:{port}"),
        "[::1]".to_owned(),
    ] {
        let answer = server.client().with("Host", &*host).get("/healthz");
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    // The name may also stand in the first line, or twice, or nowhere.
    for (bytes, status) in [
        (
            "GET http://evil.test/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "403",
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
            "403",
        ),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
            "400",
        ),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "400",
        ),
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "400"),
        (
            "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
            "403",
        ),
    ] {
        let answer = server.nobody().raw(bytes.as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{bytes:?}: {answer}"
        );
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn no_route_answers_a_page_of_another_site() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let things = Furnished::new(&server, "local").nowhere();
    let port = server.address.port();
    let api = Api::of(&server);
    for operation in api.operations() {
        let what = format!("{} {}", operation.method, operation.path);
        let client = server.client().with("Origin", "http://evil.test");
        assert_refused(&what, &things.send(&client, operation, ""));
        let client = server.client().with("Sec-Fetch-Site", "cross-site");
        assert_refused(&what, &things.send(&client, operation, ""));
    }
    let run = json!({"exec": {"kind": "argv", "command": "true"}});
    for origin in [
        "null".to_owned(),
        "http://localhost.evil.test".to_owned(),
        format!("http://127.0.0.1:{}", port.wrapping_add(1)),
        "http://127.0.0.1".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.test"),
        format!("http://evil.test@127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        "file://".to_owned(),
        String::new(),
    ] {
        let client = server.client().with("Origin", &*origin);
        assert_refused(&origin, &client.post("/v1/execs", &run));
        assert_refused(&origin, &client.get("/v1/execs/x/events"));
    }
    for site in ["same-site", "cross-site", "anything"] {
        let client = server.client().with("Sec-Fetch-Site", site);
        assert_refused(site, &client.post("/v1/execs", &run));
    }
    // One of our own pages, and whoever is no browser.
    let own = server
        .client()
        .with("Origin", format!("http://{}", server.address));
    let own = own.with("Sec-Fetch-Site", "same-origin");
    assert_eq!(own.post("/v1/execs", &run).status, 200);
    assert_eq!(server.client().post("/v1/execs", &run).status, 200);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn no_answer_lets_another_site_read_it() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let things = Furnished::new(&server, "local");
    let api = Api::of(&server);
    let own = format!("http://{}", server.address);
    let silent = |what: &str, answer: &Response| {
        let shares = |(name, _): &&(String, String)| name.starts_with("access-control-");
        assert_eq!(answer.headers.iter().find(shares), None, "{what}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{what}"
        );
    };
    for (path, _) in api.paths() {
        for (origin, status) in [("http://evil.test", 403), (own.as_str(), 405)] {
            let preflight = server
                .nobody()
                .with("Origin", origin)
                .with("Access-Control-Request-Method", "POST")
                .with("Access-Control-Request-Headers", "authorization")
                .send("OPTIONS", &things.fill(path), None);
            assert_eq!(
                preflight.status,
                status,
                "{path} {origin}: {}",
                preflight.text()
            );
            silent(path, &preflight);
        }
    }
    for operation in api.operations().iter().filter(|it| it.method == "GET") {
        let client = server.client().with("Origin", &*own);
        let answer = things.send(&client, operation, "");
        assert_eq!(answer.status, 200, "{}: {}", operation.path, answer.text());
        silent(&operation.path, &answer);
        if answer
            .header("content-type")
            .is_some_and(|it| it.starts_with("text/html"))
        {
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'none'"), "{policy}");
            assert!(!policy.contains("script-src"), "{policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        }
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn nothing_is_upgraded() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let things = Furnished::new(&server, "local");
    let api = Api::of(&server);
    let upgrading = |client: Client| {
        client
            .with("Upgrade", "websocket")
            .with("Sec-WebSocket-Version", "13")
            .with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    for operation in api.operations().iter().filter(|it| it.method == "GET") {
        let what = &operation.path;
        let foreign = upgrading(server.client()).with("Origin", "http://evil.test");
        assert_refused(what, &things.send(&foreign, operation, ""));
        let own = things.send(&upgrading(server.client()), operation, "");
        assert_eq!(
            own.status, 200,
            "{what}: an upgrade that is not offered is ignored"
        );
        if operation.scope.is_some() {
            let nobody = upgrading(server.nobody());
            let hidden = format!("bearer, {}", server.token);
            let hidden = nobody.clone().with("Sec-WebSocket-Protocol", hidden);
            for client in [nobody, hidden] {
                assert_eq!(things.send(&client, operation, "").status, 401, "{what}");
            }
        }
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_an_exec_left_is_never_a_page_of_ours() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let names = [
        "x.html",
        "x.svg",
        "x.xhtml",
        "x.js",
        "x.pdf",
        "a\"; b.html",
        "ü.html",
    ];
    let script = "page='<svg onload=alert(1)><script>alert(1)</script>'; echo \"$page\"; \
                  for name; do echo \"$page\" > /workspace/artifacts/\"$name\"; \
                  echo \"$page\" > \"$name\"; done";
    let mut args = vec!["-c", script, "sh"];
    args.extend(names);
    let ran = server.exec(&json!({
        "project_id": "p", "client_id": "c",
        "exec": {"kind": "argv", "command": "sh", "args": args},
    }));
    assert_eq!(ran.json()["exit_code"], 0, "{}", ran.text());
    let encoded = |name: &str| {
        let bytes = name.bytes().map(|byte| format!("%{byte:02X}"));
        bytes.collect::<String>()
    };
    for name in names {
        for place in [
            "/v1/execs/c/artifacts",
            "/sandbox/execs/c/artifacts",
            "/v1/workspaces/p/files",
        ] {
            let answer = server.client().get(&format!("{place}/{}", encoded(name)));
            let what = format!("{place} {name}");
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            assert!(answer.text().contains("<script>"), "{what}");
            assert_eq!(
                answer.header("content-type"),
                Some("application/octet-stream"),
                "{what}"
            );
            assert_eq!(
                answer.header("x-content-type-options"),
                Some("nosniff"),
                "{what}"
            );
            let disposition = answer.header("content-disposition").unwrap();
            assert!(
                disposition.starts_with("attachment; filename*=UTF-8''"),
                "{disposition}"
            );
            assert!(
                !disposition.contains('"') && disposition.is_ascii(),
                "{disposition}"
            );
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("sandbox"), "{policy}");
        }
    }
    for place in [
        "/v1/execs/c/stdout",
        "/sandbox/execs/c/stdout",
        "/v1/execs/c",
        "/v1/execs/c/events",
    ] {
        let answer = server.client().with("Accept", "text/html").get(place);
        assert_eq!(answer.status, 200, "{place}: {}", answer.text());
        assert!(answer.text().contains("script"), "{place}");
        let kind = answer.header("content-type").unwrap();
        assert!(
            ["text/plain", "application/json", "text/event-stream"]
                .iter()
                .any(|it| kind.starts_with(it)),
            "{place}: {kind}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{place}"
        );
    }
    // What was asked for is not printed either.
    let answer = server.client().get("/%3Cscript%3Ealert(1)%3C/script%3E");
    assert_eq!(
        (answer.status, answer.text().contains("script")),
        (404, false)
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}
