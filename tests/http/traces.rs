//! Traces follow a request from its caller through the stages of its exec, to a collector of ours.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;
use support::{Caller, Start, Trial, glovebox};

const TRACE: [u8; 16] = [
    0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36,
];

/// Takes whatever is posted, for as long as the test runs.
fn collector() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&taken);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // One that is kept open must not keep the next waiting.
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || take(stream, &kept));
        }
    });
    (port, taken)
}

fn take(stream: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
            let text = line.to_ascii_lowercase();
            if let Some(value) = text.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().unwrap().extend(body);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        if reader.get_mut().write_all(answer).is_err() {
            return;
        }
    }
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The feature is not in what users build by default.
fn is_built() -> bool {
    let built = holds(
        &std::fs::read(glovebox()).unwrap(),
        b"OTEL_EXPORTER_OTLP_ENDPOINT",
    );
    if !built {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "build with `--features glovebox/otel`");
        eprintln!("SKIPPED: this binary sends no traces (`--features glovebox/otel`)");
    }
    built
}

#[test]
fn a_trace_goes_on_through_every_stage() {
    if !is_built() {
        return;
    }
    let (port, taken) = collector();
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .outside(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{port}"),
        )
        .on(&trial);
    let hex: String = TRACE.iter().map(|byte| format!("{byte:02x}")).collect();
    let client = server
        .client()
        .with("traceparent", format!("00-{hex}-00f067aa0ba902b7-01"));
    let answer = client.post(
        "/v1/execs",
        &json!({"exec": {"kind": "argv", "command": "true"}}),
    );
    assert_eq!(answer.json()["status"], "succeeded");
    // What has not been sent is sent at the end.
    assert_eq!(server.stop(), 0);
    let taken = taken.lock().unwrap();
    assert!(holds(&taken, &TRACE), "the caller's trace goes on");
    assert!(holds(&taken, b"POST /v1/execs"));
    for stage in [
        "resolve", "assess", "obtain", "open", "admit", "run", "collect", "judge", "close",
    ] {
        assert!(holds(&taken, stage.as_bytes()), "{stage}");
    }
    drop(taken);
    trial.end();
}

#[test]
fn a_collector_that_is_gone_holds_nothing_up() {
    if !is_built() {
        return;
    }
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .outside("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .on(&trial);
    let answer = server.exec(&json!({"exec": {"kind": "argv", "command": "true"}}));
    assert_eq!(answer.json()["status"], "succeeded");
    assert_eq!(server.stop(), 0);
    trial.end();
}
