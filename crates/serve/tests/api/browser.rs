use crate::client::{Ask, raw};
use crate::house::House;

const PATHS: [&str; 6] = [
    "/",
    "/healthz",
    "/docs",
    "/v1/execs",
    "/v1/execs/x/events",
    "/nowhere",
];

pub(crate) fn a_foreign_host_is_refused_everywhere() {
    let house = House::with(|options| options.allow_hosts = vec!["box.example".to_owned()]);
    for path in PATHS {
        for host in [
            "evil.test",
            "127.0.0.1.evil.test",
            "localhost.evil.test:80",
            "10.9.8.7",
        ] {
            let ask = Ask::new("GET", path)
                .token(&house.admin)
                .header("Host", host);
            let reply = ask.send(house.address);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (403, "forbidden"),
                "{path} {host}"
            );
        }
    }
    for host in [
        "localhost",
        "localhost:1",
        "[::1]:7070",
        "box.example",
        "BOX.example:8",
    ] {
        let ask = Ask::new("GET", "/v1/whoami")
            .token(&house.admin)
            .header("Host", host);
        assert_eq!(ask.send(house.address).status, 200, "{host}");
    }
    for head in [
        "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ] {
        assert!(
            raw(house.address, head.as_bytes()).starts_with(b"HTTP/1.1 400"),
            "{head}"
        );
    }
    let absolute =
        "GET http://evil.test/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(raw(house.address, absolute.as_bytes()).starts_with(b"HTTP/1.1 403"));
}

pub(crate) fn a_foreign_origin_is_refused_everywhere() {
    let house = House::open();
    let own = format!("http://{}", house.address);
    for path in PATHS {
        for origin in [
            "http://evil.test",
            "null",
            "http://localhost.evil.test",
            "http://127.0.0.1:1",
            "https://127.0.0.1",
        ] {
            for method in ["GET", "POST", "OPTIONS"] {
                let ask = Ask::new(method, path)
                    .token(&house.admin)
                    .header("Origin", origin);
                let reply = ask.send(house.address);
                assert_eq!(reply.status, 403, "{method} {path} {origin}");
                let allows = reply
                    .headers
                    .iter()
                    .any(|(name, _)| name.starts_with("access-control"));
                assert!(!allows, "no page of another origin is let in");
            }
        }
    }
    let ask = || Ask::new("GET", "/v1/whoami").token(&house.admin);
    assert_eq!(ask().header("Origin", &own).send(house.address).status, 200);
    for (site, status) in [
        ("same-origin", 200),
        ("none", 200),
        ("cross-site", 403),
        ("same-site", 403),
    ] {
        let reply = ask().header("Sec-Fetch-Site", site).send(house.address);
        assert_eq!(reply.status, status, "{site}");
    }
    let preflight =
        Ask::new("OPTIONS", "/v1/execs").header("Access-Control-Request-Method", "POST");
    assert_eq!(preflight.send(house.address).status, 405);
    let upgrade = ask()
        .header("Upgrade", "websocket")
        .header("Origin", "http://evil.test");
    assert_eq!(upgrade.send(house.address).status, 403);
}
