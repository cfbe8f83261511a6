//! Clients that take their time: they are cut off, and nobody else waits for them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Caller, Server, Start, Trial, wait_until};

const IDLE: usize = 1000;
const LORISES: usize = 50;
/// What this server gives the head of a request, and the pause in a body; and slack.
const CUT_AFTER: Duration = Duration::from_secs(3);
const SLACK: Duration = Duration::from_secs(15);
/// Of the good client's answers, on a loaded machine.
const P99: Duration = CUT_AFTER;

fn connect(server: &Server, first: &str) -> TcpStream {
    let mut stream = server.nobody().connect().unwrap();
    stream.write_all(first.as_bytes()).unwrap();
    stream
}

/// Whether the other end is closed by now; what it said before goes to `said`.
fn is_closed(stream: &mut TcpStream, said: &mut Vec<u8>) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(count) => said.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
            Err(_) => return true,
        }
    }
}

struct Slow {
    stream: TcpStream,
    said: Vec<u8>,
    /// What is sent a byte at a time.
    drip: Option<u8>,
    closed_after: Option<Duration>,
}

#[test]
fn the_slow_are_cut_off_and_the_quick_are_served() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .outside("GLOVEBOX_LOG", "warn")
        .patience("request", CUT_AFTER)
        .on(&trial);
    let began = Instant::now();
    let token = &server.token;
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ";
    let body = format!(
        "POST /v1/execs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let slow = |first: &str, drip| Slow {
        stream: connect(&server, first),
        said: Vec::new(),
        drip,
        closed_after: None,
    };
    let mut all: Vec<Slow> = Vec::new();
    all.extend((0..IDLE).map(|_| slow("", None)));
    all.extend((0..LORISES).map(|_| slow(head, Some(b'x'))));
    all.extend((0..LORISES).map(|_| slow(&body, None)));
    let mut took = Vec::new();
    let mut last_drip = Instant::now();
    let cut = wait_until(CUT_AFTER + SLACK, || {
        let since = Instant::now();
        let answer = server.client().get("/v1/whoami");
        assert_eq!(answer.status, 200, "{}", answer.text());
        took.push(since.elapsed());
        let drips = last_drip.elapsed() > Duration::from_millis(500);
        if drips {
            last_drip = Instant::now();
        }
        for slow in all.iter_mut().filter(|slow| slow.closed_after.is_none()) {
            if let Some(byte) = slow.drip.filter(|_| drips) {
                let _ = slow.stream.write(&[byte]);
            }
            if is_closed(&mut slow.stream, &mut slow.said) {
                slow.closed_after = Some(began.elapsed());
            }
        }
        all.iter().all(|slow| slow.closed_after.is_some())
    });
    let open = all
        .iter()
        .filter(|slow| slow.closed_after.is_none())
        .count();
    assert!(
        cut,
        "{open} are still connected after {:?}",
        began.elapsed()
    );
    // Not at once either: they were really held.
    let first = all
        .iter()
        .filter_map(|slow| slow.closed_after)
        .min()
        .unwrap();
    assert!(first > CUT_AFTER / 2, "the first was cut after {first:?}");
    for slow in &all[IDLE + LORISES..] {
        let said = String::from_utf8_lossy(&slow.said);
        assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    }
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100];
    assert!(
        took.len() > 20 && p99 < P99,
        "{} answers, p99 {p99:?}",
        took.len()
    );
    // No exec came of half a request, and one more client is as welcome as before.
    assert_eq!(server.client().get("/v1/execs").json()["items"], json!([]));
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn who_never_reads_stops_neither_the_exec_nor_anybody_else() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let script = "head -c 900000 /dev/zero | tr '\\0' x; while ! test -e go; do sleep 0.05; done; \
                  head -c 100000 /dev/zero | tr '\\0' y; echo end > ended";
    let started = server.exec(&json!({
        "wait": false, "client_id": "big", "project_id": "p",
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
    }));
    assert_eq!(started.status, 202, "{}", started.text());
    let begun = wait_until(Duration::from_secs(60), || {
        server.client().get("/v1/execs/big/stdout?limit=1").body == b"x"
    });
    assert!(begun, "no output");
    let token = &server.token;
    let deaf: Vec<TcpStream> = ["events", "stdout", "events", "stdout"]
        .iter()
        .cycle()
        .take(40)
        .map(|what| {
            let path = format!("/v1/execs/big/{what}");
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            connect(&server, &head)
        })
        .collect();
    let kind = Some("application/octet-stream");
    let go = server
        .client()
        .try_bytes("PUT", "/v1/workspaces/p/files/go", kind, b"");
    assert_eq!(go.unwrap().status, 200);
    let ended = wait_until(Duration::from_secs(60), || {
        server.client().get("/v1/execs/big").json()["status"] == "succeeded"
    });
    assert!(ended, "{}", server.client().get("/v1/execs/big").text());
    let record = server.client().get("/v1/execs/big").json();
    assert_eq!(record["stdout_bytes"], 1_000_000);
    // Who reads gets all of it, however many do not.
    let events = server.client().events("big", 0).unwrap();
    let mut bytes = 0;
    for event in events {
        bytes += event.unwrap().data["text"].as_str().map_or(0, str::len);
    }
    assert_eq!(bytes, 1_000_000);
    drop(deaf);
    assert_eq!(server.stop(), 0);
    trial.end();
}
