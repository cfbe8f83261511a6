//! Who may open a connection.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree::{files, read, sources, without_tests};

/// Where a connection begins, and why it may.
const DOORS: [(&str, &str); 9] = [
    ("crates/egress/src/dial.rs", "dials what was vetted"),
    (
        "crates/egress/src/operator.rs",
        "what the operator configured",
    ),
    ("crates/store/src/sql/server.rs", "the operator's database"),
    (
        "crates/cli/src/commands/traces.rs",
        "the operator's collector of traces",
    ),
    (
        "crates/serve/src/listen/unix.rs",
        "asks whether a socket of its own name still has a listener",
    ),
    (
        "crates/gateway/src/dns.rs",
        "answers whoever asked, inside the sandbox",
    ),
    ("crates/cage/src/netlink.rs", "the kernel itself"),
    (
        "crates/engine/src/sessions/directory.rs",
        "asks the keeper of a session, by the socket in the state directory",
    ),
    (
        "crates/cli/src/effect_tool.rs",
        "speaks to its own sandbox's supervisor, from inside",
    ),
];

/// How one is opened, or a crate that opens one by itself is called.
const WAYS: [&str; 16] = [
    "TcpStream::connect",
    "UnixStream::connect",
    "UnixDatagram::unbound",
    "UdpSocket::connect",
    "TcpSocket::new",
    "net::connect",
    "Socket::new",
    "reqwest::",
    "ureq::",
    "::postgres::{Client, Config",
    "postgres::Client",
    "opentelemetry_otlp",
    "legacy::Client",
    "send_to(",
    "sendto(",
    "connect_timeout(&",
];

/// What the lint bans: another name for the same function hides nothing from it.
const BANNED: [&str; 12] = [
    "std::net::TcpStream::connect",
    "std::net::TcpStream::connect_timeout",
    "std::net::UdpSocket::connect",
    "std::net::UdpSocket::send_to",
    "tokio::net::TcpStream::connect",
    "tokio::net::TcpSocket::connect",
    "tokio::net::UdpSocket::connect",
    "tokio::net::UdpSocket::send_to",
    "rustix::net::connect",
    "rustix::net::connect_unspec",
    "rustix::net::sendto",
    "postgres::Config::connect",
];
const LINT: &str = "clippy::disallowed_methods";

/// Lines that open something, without comments and unit tests.
fn openings(text: &str) -> Vec<(usize, &str)> {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    without_tests(text)
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| WAYS.iter().any(|way| code(line).contains(way)))
        .collect()
}

#[test]
fn connections_begin_in_named_places_alone() {
    let mut used = BTreeSet::new();
    for path in sources() {
        let text = read(&path);
        let may = DOORS.iter().any(|(door, _)| path == Path::new(door));
        for (number, line) in openings(&text) {
            let at = format!("{}:{number}: {line}", path.display());
            assert!(may, "{at}\nconnections are opened by `glovebox_egress`");
            used.insert(path.clone());
        }
        let excused = without_tests(&text).contains(LINT);
        assert_eq!(excused, may, "{}: `{LINT}`", path.display());
    }
    for (door, why) in DOORS {
        assert!(
            used.contains(Path::new(door)),
            "{door} ({why}) opens nothing"
        );
    }
}

/// The control: what nobody named is found, and what opens nothing is not.
#[test]
fn a_connection_that_nobody_named_is_found() {
    for line in [
        "    let stream = TcpStream::connect(address).await?;",
        "    let stream = std::net::TcpStream::connect_timeout(&address, PATIENCE)?;",
        "    socket.send_to(b\"x\", address)?;",
        "    rustix::net::connect(&socket, &address)?;",
        "    let page = reqwest::blocking::get(url)?;",
        "    let socket = socket2::Socket::new(domain, kind, None)?;",
    ] {
        assert_eq!(openings(line), [(1, line)]);
    }
    for line in [
        "/// As `TcpStream::connect` would.",
        "    let connection = self.vetter.connect(&vetted, deadline).await?;",
        "    .connect_timeout(CONNECT_WITHIN)",
        "fn f() {}\n#[cfg(test)]\nmod tests {\n    TcpStream::connect(address)",
    ] {
        assert_eq!(openings(line), [], "{line}");
    }
}

#[test]
fn the_lint_bans_every_way_to_connect() {
    let settings: toml::Table = toml::from_str(&read("clippy.toml")).unwrap();
    let banned = settings["disallowed-methods"].as_array().unwrap();
    let paths: Vec<&str> = banned
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    for path in BANNED {
        assert!(paths.contains(&path), "`{path}` is not banned");
    }
    // The lints of the workspace would win over the file, and so would those of a crate.
    for manifest in files("crates", "Cargo.toml") {
        assert!(
            !read(&manifest).contains("disallowed"),
            "{}",
            manifest.display()
        );
    }
    assert!(!read("Cargo.toml").contains("disallowed"));
}
