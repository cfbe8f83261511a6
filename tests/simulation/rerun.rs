//! `apply --rerun`: done for real, and held to what the simulation showed.

use support::Caller;

use crate::census::{assert_untouched, digest};
use crate::ground::HELD;
use crate::town::{Town, UNAWARE, requests, told};

fn sends_what_was_shown(caller: Caller, requests: &str) {
    let Some(mut town) = Town::new(caller, "") else {
        return;
    };
    let line = format!("set -e; {requests}; echo done > done");
    let simulated = town.simulate(&line);
    simulated.expect("succeeded", 0);
    assert_eq!(town.log(), []);
    let shown = told(&town.ground.effects(simulated.id()));
    let rerun = town.ground.rerun(simulated.id());
    rerun.expect("succeeded", 0);
    assert_eq!(rerun.record["verdict"], "keep", "{:#}", rerun.record);
    assert_eq!(town.log(), shown);
    assert_eq!(
        (town.ground.read("answer"), town.ground.read("done")),
        ("ok".into(), "done\n".into())
    );
    assert_eq!(
        rerun.record["preview"]["exec_id"],
        simulated.id(),
        "{:#}",
        rerun.record
    );
    town.end();
}

#[test]
fn a_rerun_sends_exactly_what_was_shown() {
    let requests = "curl -fsS -d tea=3 http://shop.test:HTTP/orders > answer; \
                    curl -fsS -T answer http://shop.test:HTTP/copies/1 > /dev/null";
    sends_what_was_shown(Caller::Root, requests);
    sends_what_was_shown(Caller::User, requests);
}

/// Of what was shown over TLS each request is read on its way out too.
#[test]
fn a_rerun_sends_exactly_what_was_shown_over_tls() {
    let requests = "curl -fsS -d tea=3 https://shop.test:TLS/orders > answer; \
                    curl -fsS -T answer https://shop.test:TLS/copies/1 > /dev/null";
    sends_what_was_shown(Caller::Root, requests);
}

/// A program that knows whether it is watched, and does something else when it is not.
fn strays(name: &str, shown: &str, done: &str, heard: usize) {
    let mut town = Town::new(Caller::Root, "").unwrap();
    let before = town.ground.census();
    let line = format!(
        "echo written > file; if [ -n \"$GLOVEBOX_SIMULATION\" ]; then {shown}; else {done}; fi; \
         echo after > after; exit 0"
    );
    let simulated = town.simulate(&line);
    simulated.expect("succeeded", 0);
    let rerun = town.ground.rerun(simulated.id());
    rerun.expect("held", HELD);
    assert_eq!(
        rerun.blocked_by(),
        ["preview"],
        "{name}: {:#}",
        rerun.record
    );
    assert_eq!(town.log().len(), heard, "{name}: it left");
    assert_untouched(&town.ground.census(), &before, name);
    let why = rerun.record["gates"].to_string();
    assert!(why.contains(".test:"), "{name}: {why}");
    let refused = town.ground.apply(rerun.id());
    assert_ne!(refused.code, 0, "{name}: {}", refused.stdout);
    assert_untouched(&town.ground.census(), &before, name);
    town.end();
}

#[test]
fn a_rerun_that_asks_for_another_path_is_stopped_before() {
    let get = |path: &str| format!("curl -s http://shop.test:HTTP/{path} -o /dev/null");
    strays("path", &get("a"), &get("b"), 0);
}

#[test]
fn a_rerun_that_sends_another_body_is_stopped_before() {
    let post = |body: &str| format!("curl -s -d {body} http://shop.test:HTTP/a -o /dev/null");
    strays("body", &post("tea"), &post("gin"), 0);
}

/// What reviewers saw is all that leaves: in the query, in a body that comes in pieces, in headers.
#[test]
fn a_rerun_that_hides_something_in_a_request_that_was_shown_is_stopped_before() {
    let curl = |more: &str| format!("curl -s {more} -o /dev/null");
    for (name, shown, done) in [
        (
            "added query",
            "http://shop.test:HTTP/json",
            "http://shop.test:HTTP/json?leak=1",
        ),
        (
            "query",
            "http://shop.test:HTTP/a?x=1",
            "http://shop.test:HTTP/a?x=2",
        ),
        (
            "chunked",
            "-d tea -H Transfer-Encoding:chunked http://shop.test:HTTP/a",
            "-d gin -H Transfer-Encoding:chunked http://shop.test:HTTP/a",
        ),
        (
            "body of a GET",
            "http://shop.test:HTTP/a",
            "-X GET -d leak -H Content-Type: http://shop.test:HTTP/a",
        ),
        (
            "header",
            "http://shop.test:HTTP/a",
            "-H X-Leak:1 http://shop.test:HTTP/a",
        ),
        (
            "cookie",
            "-k -b a=1 https://shop.test:TLS/a",
            "-k -b a=2 https://shop.test:TLS/a",
        ),
    ] {
        strays(name, &curl(shown), &curl(done), 0);
    }
}

/// Ordinary clients say the same each time.
#[test]
fn queries_headers_and_pieces_of_ordinary_clients_pass() {
    let python = "python3 -c 'import urllib.request as u; \
        u.urlopen(u.Request(\"http://shop.test:HTTP/p?q=1\", b\"x\" * 70000, {\"X-Own\": \"1\"})).read(); \
        u.urlopen(\"https://shop.test:TLS/p?q=2\").read()'";
    let requests = format!(
        "curl -fsS 'http://shop.test:HTTP/orders?size=2&token=hunter2hunter2' > answer; \
         head -c 70000 /dev/zero | curl -fsS -T - -H 'Authorization: Bearer x' http://shop.test:HTTP/up; \
         head -c 1048576 /dev/zero | curl -fsS --data-binary @- -H 'Expect: 100-continue' https://shop.test:TLS/up; \
         curl -fsS -0 -I http://shop.test:HTTP/old; {python}"
    );
    sends_what_was_shown(Caller::Root, &requests);
}

/// The reviewer sees the query, but not what looks like a secret in it.
#[test]
fn the_query_and_the_body_are_shown_without_their_secrets() {
    let town = Town::new(Caller::Root, "").unwrap();
    let line = "curl -fsS -H 'X-Own: 1' -d tea 'http://shop.test:HTTP/a?size=2&api_key=hunter2hunter2' -o /dev/null";
    let simulated = town.simulate(line);
    simulated.expect("succeeded", 0);
    let effects = town.ground.effects(simulated.id());
    let request = requests(&effects).find(|it| it.method.is_some()).unwrap();
    assert_eq!(
        request.query.as_deref(),
        Some("size=2&api_key=[secret value]")
    );
    let whole = digest(b"size=2&api_key=hunter2hunter2");
    assert_eq!(request.query_digest.as_ref(), Some(&whole));
    assert_eq!(request.body_digest, Some(digest(b"tea")));
    assert!(
        request.header_names.contains(&"x-own".to_owned()),
        "{request:?}"
    );
    let shown = town
        .ground
        .glovebox(&["effects", simulated.id(), "--type", "network_request"])
        .stdout;
    for part in [
        "POST /a?size=2&api_key=[secret value]",
        &whole[..12],
        "x-own",
        &digest(b"tea")[..12],
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    town.end();
}

#[test]
fn a_rerun_that_asks_another_host_is_stopped_before() {
    let get = |host: &str| format!("curl -s http://{host}.test:HTTP/a -o /dev/null");
    strays("host", &get("shop"), &get("other"), 0);
}

/// What policy refuses never leaves, so it is no reason to stop what was shown; what the program
/// wrote is held all the same.
#[test]
fn a_rerun_that_asks_a_host_that_policy_refuses_is_held() {
    let get = |host: &str| format!("curl -s http://{host}.test:HTTP/a -o /dev/null");
    strays(
        "after",
        &get("shop"),
        &format!("{}; {}", get("other"), get("shop")),
        1,
    );
}

#[test]
fn a_rerun_that_asks_once_more_is_stopped_at_the_second() {
    let get = "curl -s http://shop.test:HTTP/a -o /dev/null";
    strays("again", get, &format!("{get}; {get}; {get}"), 1);
}

#[test]
fn a_rerun_that_opens_another_connection_is_stopped_before() {
    let raw = "python3 -c 'import socket; it = socket.create_connection((\"shop.test\", int(\":RAW\"[1:]))); it.sendall(b\"x\"); it.shutdown(1); it.recv(1)'";
    strays("raw", "true", raw, 0);
}

/// A connection that was shown is none for requests: neither in the clear, nor inside TLS, nor in
/// the oldest form of HTTP.
#[test]
fn a_rerun_that_asks_where_it_only_connected_is_stopped_before() {
    let connect = |port: &str| {
        format!(
            "python3 -c 'import socket, time; it = socket.create_connection((\"shop.test\", int(\"{port}\"[1:]))); time.sleep(0.3)'"
        )
    };
    let say = |text: &str| {
        format!(
            "python3 -c 'import socket; it = socket.create_connection((\"shop.test\", int(\":HTTP\"[1:]))); it.sendall(b\"{text}\"); it.recv(1)'"
        )
    };
    let post = "POST /evil HTTP/1.1\\r\\nHost: shop.test:HTTP\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\nSECRET";
    let proxied = "curl -s -d SECRET http://shop.test:HTTP/evil";
    let tls = "curl -sk -d SECRET https://shop.test:TLS/evil";
    for (name, port, done) in [
        ("request", ":HTTP", say(post)),
        ("oldest", ":HTTP", say("GET /evil\\r\\n\\r\\n")),
        ("proxied", ":HTTP", proxied.to_owned()),
        ("tls", ":TLS", format!("{UNAWARE}{tls}")),
        ("tls by proxy", ":TLS", tls.to_owned()),
    ] {
        strays(name, &connect(port), &done, 0);
    }
}
