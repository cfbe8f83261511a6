//! Who speaks to whom: every call of the main commands, of a server, and of whatever they start that
//! names an address (`connect`, `sendto`, `sendmsg`, `sendmmsg`). What leaves without one is heard on
//! the wire.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::json;
use support::{Caller, Registry, Said, Site, Start, wait_until};

use crate::ground::{Ground, UNAWARE};

const FETCH: &str = "curl -sS --max-time 20 http://ok.test:HTTP/hello
    curl -s --max-time 20 http://other.test:HTTP/hello http://198.51.100.7/";

/// `127.0.0.1:80`, or the path of a socket, of every call in a trace. To answer whoever spoke first is
/// no way out: so our resolver answers the sandbox.
fn destinations(trace: &Path) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap();
    let field = |line: &str, before: &str, after: &str| {
        let rest = line.split_once(before)?.1;
        Some(rest.split_once(after)?.0.to_owned())
    };
    let of = |line: &str| {
        let family = field(line, "sa_family=", ",").or_else(|| field(line, "sa_family=", "}"))?;
        Some(match family.as_str() {
            "AF_INET" => {
                let port = field(line, "sin_port=htons(", ")")?;
                format!("{}:{port}", field(line, "inet_addr(\"", "\"")?)
            }
            "AF_INET6" => {
                let port = field(line, "sin6_port=htons(", ")")?;
                format!("[{}]:{port}", field(line, "AF_INET6, \"", "\"")?)
            }
            "AF_UNIX" => {
                let path = field(line, "sun_path=", "}");
                format!("unix {}", path.unwrap_or_default())
            }
            "AF_NETLINK" => "the kernel".to_owned(),
            _ => line.to_owned(),
        })
    };
    let is_hearing = |line: &&str| line.contains("recvfrom") || line.contains("recvmsg");
    let heard: Vec<String> = text.lines().filter(is_hearing).filter_map(of).collect();
    let said = text.lines().filter(|line| !is_hearing(line));
    let mut all: Vec<String> = said
        .filter_map(|line| Some((line, of(line)?)))
        .filter(|(line, to)| line.contains("connect") || !heard.contains(to))
        .map(|(_, to)| to)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// What may be there. The first ones are the payload's own calls, which end in our sockets; the last
/// is what the test itself lists.
fn is_expected(ground: &Ground, to: &str, more: &[String]) -> bool {
    let site = format!("127.0.0.1:{}", ground.http);
    to.starts_with("198.18.")
        || to.starts_with("[fd67:6c6f:7665::")
        || to.starts_with("198.51.100.7:")
        || to == site
        || more.iter().any(|it| it == to)
        || to == "the kernel"
        // The C library asks a daemon for users and hosts, if there is one.
        || to.starts_with("unix \"/var/run/nscd/")
        // The operator's container engine, which `doctor` looks for.
        || to == "unix \"/var/run/docker.sock\""
        || to.starts_with(&format!("unix \"{}", ground.trial.home().display()))
}

#[track_caller]
fn assert_expected(ground: &Ground, trace: &Path, more: &[String]) -> Vec<String> {
    let all = destinations(trace);
    let is_other = |it: &&String| !is_expected(ground, it, more);
    let others: Vec<&String> = all.iter().filter(is_other).collect();
    assert!(others.is_empty(), "{others:#?}");
    all
}

fn strace(trace: &Path) -> Vec<String> {
    let calls = "trace=connect,sendto,sendmsg,sendmmsg,recvfrom,recvmsg";
    let trace = trace.to_string_lossy();
    let words = [
        "strace", "-f", "-qq", "-s", "256", "-e", calls, "-o", &trace,
    ];
    words.map(str::to_owned).to_vec()
}

/// The command itself under a trace.
fn traced(ground: &Ground, trace: &Path, words: &[&str]) -> Output {
    let plain = ground.glovebox();
    let tracer = strace(trace);
    let mut command = Command::new(&tracer[0]);
    command
        .args(&tracer[1..])
        .arg(plain.get_program())
        .args(plain.get_args())
        .args(words)
        .env("GLOVEBOX_CONFIG", &ground.config)
        .current_dir(ground.trial.work())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The site is on the list for those who read pages, too.
const READABLE: &str = "[network.retrieval]\nports = [\"ok.test:HTTP\"]\n";

#[test]
fn commands_connect_to_what_is_listed_alone() {
    let mut ground = Ground::new(Caller::Root, "", READABLE).unwrap();
    let trace = ground.trial.home().join("trace");
    let site = format!("127.0.0.1:{}", ground.http);

    let run = ground
        .with_net("none", ["/bin/true"])
        .through(strace(&trace));
    run.json().expect("succeeded", 0, None);
    let all = assert_expected(&ground, &trace, &[]);
    assert!(!all.contains(&site), "{all:?}");

    let run = ground.run(&format!("{UNAWARE}{FETCH}"));
    let outcome = run.through(strace(&trace)).json();
    assert!(
        outcome.text("stdout").starts_with("hello from the site"),
        "{}",
        outcome.record
    );
    // It is heard: the one that was allowed, by us.
    let all = assert_expected(&ground, &trace, &[]);
    assert!(all.contains(&site), "{all:?}");
    assert_eq!(ground.kinds(), ["http"]);

    let url = ground.fill("http://ok.test:HTTP/hello");
    for (words, code, reaches) in [
        (&["secret", "ls"][..], 0, false),
        (&["ps"], 0, false),
        (&["doctor"], 0, false),
        (&["retrieve", &url], 0, true),
        (&["retrieve", "http://127.0.0.1:1/"], 1, false),
        (
            &["retrieve", "http://169.254.169.254/latest/meta-data/"],
            1,
            false,
        ),
    ] {
        let output = traced(&ground, &trace, words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        let all = assert_expected(&ground, &trace, &[]);
        assert_eq!(all.contains(&site), reaches, "{words:?}: {all:?}");
    }
    assert_eq!(ground.kinds(), ["http"]);
    ground.end();
}

#[test]
fn a_pull_connects_to_its_registry_alone() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let Some(registry) = Registry::start(ground.trial.home()) else {
        return;
    };
    let address = registry.address.to_string();
    ground.list(&address);
    let image = registry.push("team/tools", "1");
    let trace = ground.trial.home().join("trace");
    let words = ["image", "pull", &image, "--plain-http"];
    let output = traced(&ground, &trace, &words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let all = assert_expected(&ground, &trace, std::slice::from_ref(&address));
    assert!(all.contains(&address), "{all:?}");
    assert_eq!(ground.kinds(), Vec::<String>::new());
    let listed = traced(&ground, &trace, &["image", "ls", "--quiet"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "tools:1\n");
    drop(registry);
    ground.end();
}

/// What a server does by itself and for its callers: an exec with a network, a page, a webhook.
#[test]
fn a_server_connects_to_what_is_listed_alone() {
    let receiver = Site::open(|_| Said::status(204));
    let told = receiver.address().to_string();
    let mut ground = Ground::new(Caller::Root, "", READABLE).unwrap();
    ground.tell(&receiver, "[\"exec\"]");
    let trace = ground.trial.home().join("trace");
    let server = Start::default()
        .outside("GLOVEBOX_CONFIG", ground.config.to_string_lossy())
        .on(&ground.trial);
    let words = strace(&trace);
    let mut tracer = Command::new(&words[0])
        .args(words[1..].iter().filter(|it| *it != "-qq"))
        .args(["-p", &server.pid().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(tracer.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("attached"), "{line}");
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));

    let script = ground.fill(&format!("{UNAWARE}{FETCH}"));
    let body = json!({
        "exec": {"kind": "argv", "command": "/bin/sh", "args": ["-c", script]},
        "policy_overrides": {"network": "allowlist", "timeout": "60s"},
    });
    let ran = server.exec(&body);
    assert_eq!(ran.status, 200, "{}", ran.text());
    let stdout = ran.json()["stdout"].as_str().unwrap().to_owned();
    assert!(stdout.starts_with("hello from the site"), "{}", ran.text());
    let client = server.client();
    for (url, code) in [
        (ground.fill("http://ok.test:HTTP/hello"), json!(null)),
        (
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            json!("destination_blocked"),
        ),
    ] {
        let read = client.post("/v1/retrieve", &json!({"url": url}));
        assert_eq!(read.status, 200, "{}", read.text());
        assert_eq!(read.json()["error_code"], code, "{}", read.text());
    }
    let is_told = || !receiver.asked().is_empty();
    assert!(wait_until(Duration::from_secs(60), is_told));
    assert_eq!(server.stop(), 0);
    // It ends with the last of those that it follows.
    assert!(tracer.wait().unwrap().success());
    let all = assert_expected(&ground, &trace, std::slice::from_ref(&told));
    let site = format!("127.0.0.1:{}", ground.http);
    assert!(all.contains(&site) && all.contains(&told), "{all:?}");
    assert_eq!(ground.kinds(), ["http", "http"]);
    ground.end();
}

/// A trace that hears nothing proves nothing.
#[test]
fn every_way_to_speak_to_an_address_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let words = strace(&trace);
    let speak = "
import socket
udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp().connect(('127.0.0.2', 1))
udp().sendto(b'x', ('127.0.0.3', 2))
udp().sendmsg([b'x'], [], 0, ('127.0.0.4', 3))
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
try: six.sendto(b'x', ('::1', 4))
except OSError: pass
";
    let status = Command::new(&words[0])
        .args(&words[1..])
        .args([support::python(), "-c", speak])
        .status()
        .unwrap();
    assert!(status.success());
    let heard = destinations(&trace);
    for to in ["127.0.0.2:1", "127.0.0.3:2", "127.0.0.4:3", "[::1]:4"] {
        assert!(heard.iter().any(|it| it == to), "{to}: {heard:?}");
    }
}
