//! Programs that know nothing of a proxy reach what is on the list, and nothing else.

use support::{Caller, Outcome};

use crate::ground::{Ground, UNAWARE};

const GREETING: &str = "hello from the site";

/// How a program fetches `/hello` of host `$1` at port `$2`, or what stands for it there.
const PROGRAMS: [(&str, &str); 9] = [
    ("curl", r#"curl -sS --max-time 20 "http://$1:$2/hello""#),
    (
        "curl -6",
        r#"case $1 in *.test) six=-6;; *) six=;; esac; curl $six -sS --max-time 20 "http://$1:$2/hello""#,
    ),
    (
        "urllib",
        r#"/usr/bin/python3 -c '
import sys, urllib.request
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
print(urllib.request.urlopen(f"http://{sys.argv[1]}:{sys.argv[2]}/hello", timeout=20).read())
' "$1" "$2""#,
    ),
    (
        "requests",
        r#"/usr/bin/python3 -c '
import requests, sys
session = requests.Session()
session.trust_env = False
print(session.get(f"http://{sys.argv[1]}:{sys.argv[2]}/hello", timeout=20).text)
' "$1" "$2""#,
    ),
    (
        "node",
        r#"node -e '
fetch(`http://${process.argv[1]}:${process.argv[2]}/hello`).then(async it => console.log(await it.text()))
' "$1" "$2""#,
    ),
    (
        "git",
        r#"rm -rf /tmp/clone; /usr/bin/git clone -q "http://$1:$2/hello.git" /tmp/clone && cat /tmp/clone/hello"#,
    ),
    (
        "pip",
        r#"rm -rf /tmp/site; /usr/bin/python3 -m pip --disable-pip-version-check --no-cache-dir --retries 0 \
            --timeout 20 install -q --target /tmp/site --no-deps \
            --index-url "http://$1:$2/simple" --trusted-host "$1" hello-site \
            && PYTHONPATH=/tmp/site /usr/bin/python3 -c "import hello_site""#,
    ),
    (
        "socket",
        r#"/usr/bin/python3 -c '
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as it:
    it.sendall(f"GET /hello HTTP/1.0\r\nHost: {sys.argv[1]}:{sys.argv[2]}\r\n\r\n".encode())
    print(it.makefile().read())
' "$1" "$2""#,
    ),
    // Static, with a resolver of its own.
    ("busybox", r#"busybox wget -q -O - "http://$1:$2/hello""#),
];

/// Programs whose refusal shows the text that came with it.
const READERS: [&str; 5] = ["curl", "curl -6", "requests", "node", "socket"];

/// A destination, and what every program is told of it.
const TRIED: [(&str, &str, &str, &str); 4] = [
    ("allowed", "ok.test", ":HTTP", ""),
    ("name", "other.test", ":HTTP", "NOT_IN_ALLOWLIST"),
    ("port", "ok.test", ":TRAP", "PORT_NOT_ALLOWED"),
    ("address", "198.51.100.7", ":HTTP", "INVALID_DESTINATION"),
];

fn script(program: &str) -> String {
    let mut script = format!("{UNAWARE}export HOME=/tmp\ncd /tmp\nfetch() {{ {program}\n}}\n");
    for (what, host, port, _) in TRIED {
        let port = port.to_owned();
        script += &format!(
            "port={port}; said=$(fetch {host} ${{port#:}} 2>&1 </dev/null); \
             echo \"<{what} $?\n$said\n>\"\n"
        );
    }
    script
}

/// What the program said about one destination, with its exit code.
fn part<'a>(outcome: &'a Outcome, what: &str) -> (&'a str, &'a str) {
    let text = outcome.text("stdout");
    let rest = text.split(&format!("<{what} ")).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("nothing of {what}: {}", outcome.record));
    let (code, said) = rest.split_once('\n').unwrap();
    (code, said.split("\n>").next().unwrap())
}

fn port(ground: &Ground, port: &str) -> u64 {
    ground.fill(port)[1..].parse().unwrap()
}

fn every_program(caller: Caller) {
    let Some(mut ground) = Ground::new(caller, "", "") else {
        return;
    };
    for (name, program) in PROGRAMS {
        let outcome = ground.run(&script(program)).json();
        outcome.expect("succeeded", 0, None);
        let (code, said) = part(&outcome, "allowed");
        assert!(code == "0" && said.contains(GREETING), "{name}: {said}");
        assert!(ground.kinds().iter().all(|it| it == "http"), "{name}");
        for (what, host, to, code) in &TRIED[1..] {
            let (exit, said) = part(&outcome, what);
            assert!(!said.contains(GREETING), "{name}, {what}: {said}");
            assert!(!said.contains("the trap"), "{name}, {what}: {said}");
            if READERS.contains(&name) {
                assert!(
                    said.contains("glovebox refused") && said.contains(code),
                    "{name}, {what}: {said}"
                );
            } else {
                assert_ne!(exit, "0", "{name}, {what}: {said}");
            }
            ground.assert_refused(&outcome, host, port(&ground, to), code);
        }
    }
    ground.end();
}

#[test]
fn every_program_gets_to_the_list_alone_for_root() {
    every_program(Caller::Root);
}

#[test]
fn every_program_gets_to_the_list_alone_for_a_user() {
    every_program(Caller::User);
}

/// Those that ask for a proxy find one, which keeps to the same list.
#[test]
fn programs_that_know_of_a_proxy_get_the_same() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let ways = [
        ("proxied", "", "proxied"),
        ("tunnel", "--proxytunnel", "connect"),
        (
            "socks",
            "--noproxy '' --proxy socks5h://127.0.0.1:3128",
            "socks",
        ),
    ];
    for (name, options, approach) in ways {
        let program = format!(r#"curl {options} -sS --max-time 20 "http://$1:$2/hello""#);
        let script = script(&program).replace(UNAWARE, "");
        let outcome = ground.run(&script).json();
        outcome.expect("succeeded", 0, None);
        let (code, said) = part(&outcome, "allowed");
        assert!(code == "0" && said.contains(GREETING), "{name}: {said}");
        assert_eq!(ground.kinds(), ["http"], "{name}");
        let attempts = ground.attempts(&outcome);
        assert!(
            attempts
                .iter()
                .any(|it| it["approach"] == approach && it["code"] == "OK"),
            "{name}: {attempts:#?}"
        );
        for (what, host, to, code) in &TRIED[1..] {
            let (_, said) = part(&outcome, what);
            assert!(!said.contains(GREETING), "{name}, {what}: {said}");
            ground.assert_refused(&outcome, host, port(&ground, to), code);
        }
    }
    ground.end();
}

/// A protocol whose server speaks first.
#[test]
fn a_server_may_speak_first() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let code = "
import socket
with socket.create_connection(('ok.test', int(':BANNER'[1:])), timeout=20) as it:
    file = it.makefile('rwb')
    print(file.readline())
    file.write(b'hi\\r\\n'); file.flush()
    print(file.readline())
";
    let outcome = ground.python(code).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(
        outcome.text("stdout"),
        "b'220 speaks first\\r\\n'\nb'heard hi\\r\\n'\n"
    );
    assert_eq!(ground.kinds(), ["banner"]);
    ground.end();
}

/// Without a network nothing is there to ask.
#[test]
fn without_a_network_nothing_is_reached() {
    let mut ground = Ground::new(Caller::Root, "", "").unwrap();
    let script = format!("{UNAWARE}curl -sS --max-time 5 http://ok.test:HTTP/hello");
    let run = ground.with_net("none", ["/bin/sh", "-c", &ground.fill(&script)]);
    let outcome = run.json();
    assert_ne!(outcome.code, 0, "{}", outcome.record);
    assert_eq!(ground.kinds(), Vec::<String>::new());
    ground.end();
}
