//! Requests: what a simulation tells of them is what the servers hear when the same is run for real,
//! and while it is simulated they hear nothing.

use std::collections::BTreeSet;

use support::Caller;

use crate::ground::HELD;
use crate::town::{Town, UNAWARE, requests, spoken, told};
use crate::traced::trace;

/// Programs that speak to `shop.test`, which may be reached.
const PROGRAMS: [(&str, &str); 15] = [
    (
        "curl get",
        "curl -fsS http://shop.test:HTTP/things?secret=1",
    ),
    (
        "curl post",
        "curl -fsS -d 'tea=3' http://shop.test:HTTP/orders",
    ),
    (
        "curl put",
        "seq 2000 > body; curl -fsS -T body http://shop.test:HTTP/files/body",
    ),
    (
        "curl twice",
        "curl -fsS http://shop.test:HTTP/a http://shop.test:HTTP/b -X DELETE http://shop.test:HTTP/c",
    ),
    ("curl tls get", "curl -fsS https://shop.test:TLS/things"),
    (
        "curl tls post",
        "curl -fsS -d 'tea=3' https://shop.test:TLS/orders",
    ),
    (
        "curl tls put",
        "seq 2000 | curl -fsS -T - https://shop.test:TLS/files/chunked",
    ),
    (
        "urllib tls",
        "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"https://shop.test:TLS/u\", b\"x\" * 1000).read())'",
    ),
    (
        "requests tls",
        "python3 -c 'import requests; it = requests.Session(); it.get(\"https://shop.test:TLS/r1\"); it.post(\"https://shop.test:TLS/r2\", json={\"a\": 1})'",
    ),
    (
        "requests plain",
        "python3 -c 'import requests; requests.put(\"http://shop.test:HTTP/r3\", data=b\"bytes\")'",
    ),
    (
        "node fetch",
        "node -e 'fetch(\"http://shop.test:HTTP/n\", {method: \"POST\", body: \"from node\"}).then(it => it.text()).then(console.log)'",
    ),
    (
        "node fetch tls",
        "node -e 'fetch(\"https://shop.test:TLS/n\", {method: \"PUT\", body: \"from node\"}).then(it => it.text()).then(console.log)'",
    ),
    (
        "git ls-remote",
        "git ls-remote http://shop.test:HTTP/hello.git",
    ),
    (
        "busybox wget",
        "busybox wget -q -O - http://shop.test:HTTP/w",
    ),
    (
        "raw tcp",
        "python3 -c '
import socket
it = socket.create_connection((\"shop.test\", int(\":RAW\"[1:])))
it.sendall(b\"not http at all\\n\")
it.shutdown(socket.SHUT_WR)
it.recv(1)
'",
    ),
];

fn every_program(caller: Caller, programs: &[(&str, &str)]) {
    let Some(mut town) = Town::new(caller, "") else {
        return;
    };
    let mut misses = 0;
    println!(
        "{:<24} {:<8} {:>8} {:>6} {:>5}",
        "program", "way", "requests", "misses", "false"
    );
    for (name, program) in programs {
        for (way, before) in [("direct", UNAWARE), ("proxy", "")] {
            // A client without a request of its own has no proxy to ask.
            if way == "proxy" && *name == "raw tcp" {
                continue;
            }
            let line = format!("{before}{program}");
            let simulated = town.simulate(&line);
            assert_eq!(
                town.log(),
                [],
                "{name}, {way}: it was reached by a simulation"
            );
            simulated.expect("succeeded", 0);
            let told = told(&town.ground.effects(simulated.id()));
            let real = town.run(&line);
            real.expect("succeeded", 0);
            let heard = town.log();
            assert!(
                !heard.is_empty(),
                "{name}, {way}: the control reached nobody"
            );
            let missed: Vec<_> = heard.iter().filter(|it| !told.contains(it)).collect();
            let wrong: Vec<_> = told.iter().filter(|it| !heard.contains(it)).collect();
            println!(
                "{name:<24} {way:<8} {:>8} {:>6} {:>5}",
                heard.len(),
                missed.len(),
                wrong.len()
            );
            if told != heard {
                println!("{name}, {way}: told {told:#?}\nheard {heard:#?}");
                misses += 1;
            }
        }
    }
    println!("misses: {misses}");
    assert_eq!(misses, 0);
    town.end();
}

#[test]
fn requests_are_told_as_servers_would_have_heard_them() {
    every_program(Caller::Root, &PROGRAMS);
}

#[test]
fn an_ordinary_users_requests_are_told_as_servers_would_have_heard_them() {
    let chosen: Vec<(&str, &str)> = PROGRAMS.into_iter().step_by(4).collect();
    every_program(Caller::User, &chosen);
}

/// Whom the program addresses by itself, as a tracer sees it: with names that lead somewhere these
/// would be other addresses, so there are none here.
const ADDRESSES: &str = "python3 -c '
import socket
def tcp(family, host, port):
    with socket.socket(family, socket.SOCK_STREAM) as it:
        it.settimeout(20)
        try:
            it.connect((host, port))
            it.sendall(b\"hello\")
        except OSError: pass
def udp(family, host, port):
    with socket.socket(family, socket.SOCK_DGRAM) as it:
        try: it.sendto(b\"hello\", (host, port))
        except OSError: pass
tcp(socket.AF_INET, \"198.51.100.7\", 8080)
tcp(socket.AF_INET, \"192.0.2.9\", 25)
udp(socket.AF_INET, \"198.51.100.8\", 123)
udp(socket.AF_INET, \"203.0.113.4\", 5353)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
    it.connect((\"198.51.100.9\", 514)); it.send(b\"connected\")
'; curl -s --max-time 20 http://198.51.100.7/literal; exit 0";

#[test]
fn addresses_and_datagrams_are_told_though_nothing_can_reach_them() {
    let mut town = Town::new(Caller::Root, "").unwrap();
    let line = format!("{UNAWARE}{ADDRESSES}");
    let simulated = town.simulate(&line);
    // Policy lets no address be reached.
    simulated.expect("held", HELD);
    assert_eq!(simulated.blocked_by(), ["violations"]);
    let effects = town.ground.effects(simulated.id());
    let told: BTreeSet<(String, u16)> = requests(&effects)
        .map(|it| (it.host.clone(), it.port))
        .collect();
    let path = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    let lines = trace(
        &town.ground.work(),
        &path,
        &line,
        "connect,sendto,sendmsg,sendmmsg",
    );
    let truth: BTreeSet<(String, u16)> = lines.iter().filter_map(|it| address(it)).collect();
    assert!(truth.len() >= 6, "{lines:#?}");
    assert_eq!(told, truth);
    let datagrams = requests(&effects).filter(|it| spoken(it) == "udp").count();
    assert_eq!(datagrams, 3, "{effects:#?}");
    assert!(requests(&effects).any(|it| it.path.as_deref() == Some("/literal")));
    assert_eq!(town.log(), []);
    town.end();
}

/// Of an IPv4 call that goes anywhere: port 0 asks for the way alone.
fn address(line: &str) -> Option<(String, u16)> {
    let rest = line.split_once("sin_port=htons(")?.1;
    let port = rest.split_once(')')?.0.parse().ok().filter(|it| *it != 0)?;
    let hex = rest.split_once("inet_addr(\"")?.1.split_once('"')?.0;
    let bytes = hex
        .split("\\x")
        .skip(1)
        .map(|it| u8::from_str_radix(it, 16).unwrap());
    Some((String::from_utf8(bytes.collect()).unwrap(), port))
}

#[test]
fn questions_to_the_dns_are_told_by_name() {
    let mut town = Town::new(Caller::Root, "").unwrap();
    let line = "python3 -c '
import socket
for name in (\"shop.test\", \"other.test\", \"canary-in-a-name.example.net\"):
    try: socket.getaddrinfo(name, 80)
    except OSError: pass
'; busybox nslookup asked-by-busybox.test; exit 0";
    let simulated = town.simulate(line);
    let effects = town.ground.effects(simulated.id());
    let asked: BTreeSet<&str> = requests(&effects)
        .filter(|it| spoken(it) == "dns")
        .map(|it| it.host.as_str())
        .collect();
    let expected = [
        "shop.test",
        "other.test",
        "canary-in-a-name.example.net",
        "asked-by-busybox.test",
    ];
    assert_eq!(asked, BTreeSet::from(expected), "{effects:#?}");
    assert_eq!(town.log(), []);
    town.end();
}

/// Messages that no resolver answers: told by the names that are in them, else counted.
#[test]
fn odd_questions_to_the_dns_are_told_or_counted() {
    let mut town = Town::new(Caller::Root, "").unwrap();
    let line = "python3 -c '
import socket, struct
def name(text): return b\"\".join(bytes([len(it)]) + it for it in text.encode().split(b\".\")) + b\"\\0\"
def message(flags, kind, *names):
    head = struct.pack(\">6H\", 7, flags, len(names), 0, 0, 0)
    return head + b\"\".join(name(it) + struct.pack(\">2H\", 16, kind) for it in names)
it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
it.settimeout(20)
for sent in (message(0x100, 3, \"chaos.test\"), message(0x100, 1, \"one.test\", \"two.test\"),
             message(0x2800, 1, \"update.test\"), b\"SECRET SECRET SECRET\"):
    it.sendto(sent, (\"9.9.9.9\", 53)); it.recv(512)
'";
    let simulated = town.simulate(line);
    simulated.expect("held", HELD);
    let effects = town.ground.effects(simulated.id());
    let asked: Vec<&str> = requests(&effects)
        .filter(|it| spoken(it) == "dns")
        .map(|it| it.host.as_str())
        .collect();
    assert_eq!(asked, ["chaos.test", "one.test", "two.test", "update.test"]);
    assert_eq!(simulated.record["effect_count"]["dropped"], 1);
    assert_eq!(town.log(), []);
    town.end();
}

/// A host that is there and not on the list: it is told, it is answered, and it is held.
#[test]
fn what_policy_would_refuse_is_told_and_holds_it() {
    let mut town = Town::new(Caller::Root, "").unwrap();
    let simulated = town.simulate("curl -fsS -d x http://other.test:HTTP/y && echo z > z");
    simulated.expect("held", HELD);
    assert_eq!(simulated.record["stdout"], "ok");
    let effects = town.ground.effects(simulated.id());
    let refused: Vec<_> = effects.iter().filter(|it| !it.would_succeed).collect();
    assert_eq!(refused.len(), 1, "{refused:#?}");
    let reason = refused[0].failure_reason.as_deref().unwrap();
    assert!(
        reason.contains("NOT_IN_ALLOWLIST") && reason.contains("other.test"),
        "{reason}"
    );
    assert_eq!(town.log(), []);
    town.end();
}
