//! Bodies that are too large, too deep, or not what they seem.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Server, Start, Trial, wait_until};

const MIB: usize = 1 << 20;

/// The most memory that it ever had, in bytes.
fn peak(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib << 10
}

/// Sends up to so many bytes of body and returns the status.
fn upload(server: &Server, first_line: &str, kind: &str, chunked: bool, size: usize) -> String {
    let mut stream = server.client().connect().unwrap();
    let framing = match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {size}"),
    };
    let head = format!(
        "{first_line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: {kind}\r\n{framing}\r\n\r\n",
        server.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut piece = b"10000\r\n".to_vec();
    piece.resize(piece.len() + 0x10000, b' ');
    piece.extend(b"\r\n");
    let piece = if chunked {
        &piece[..]
    } else {
        &piece[7..7 + 0x10000]
    };
    let sender = {
        let (mut stream, piece) = (stream.try_clone().unwrap(), piece.to_vec());
        std::thread::spawn(move || {
            for _ in 0..size / 0x10000 {
                // Who is refused is cut off: that is the point.
                if stream.write_all(&piece).is_err() {
                    return;
                }
            }
        })
    };
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    let _ = stream.shutdown(std::net::Shutdown::Both);
    sender.join().unwrap();
    String::from_utf8_lossy(&answer[9..]).into_owned()
}

#[test]
fn ten_times_too_much_is_refused_without_being_kept() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let bytes = "application/octet-stream";
    // Whatever is set up once is set up before.
    let warm = server.client().try_bytes(
        "PUT",
        "/v1/workspaces/p/files/f",
        Some(bytes),
        &vec![0; MIB],
    );
    assert_eq!(warm.unwrap().status, 200);
    for (line, kind, cap) in [
        ("PATCH /v1/settings", "application/json", MIB),
        ("POST /v1/tokens", "application/json", MIB),
        ("POST /v1/execs", "application/json", 16 * MIB),
        ("PUT /v1/workspaces/p/files/f", bytes, 64 * MIB),
    ] {
        let before = peak(&server);
        assert_eq!(
            upload(&server, line, kind, false, 10 * cap),
            "413",
            "{line}"
        );
        let announced = peak(&server) - before;
        assert!(
            announced < 4 * MIB,
            "{line}: {announced} bytes for what was announced too large"
        );
        assert_eq!(
            upload(&server, line, kind, true, 10 * cap),
            "413",
            "{line} in chunks"
        );
        let grown = peak(&server) - before;
        assert!(
            grown < cap + cap / 2 + 8 * MIB,
            "{line}: {grown} bytes in chunks"
        );
    }
    let is_ready = || server.client().get("/readyz").status == 200;
    assert!(wait_until(Duration::from_secs(60), is_ready));
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_is_hardly_json_is_refused_and_hurts_nobody() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut server = Start::default().on(&trial);
    let exec = |command: &str| format!(r#"{{"exec":{{"kind":"argv","command":{command}}}}}"#);
    let limit = |number: &str| {
        let run = r#""exec":{"kind":"argv","command":"true"}"#;
        format!(r#"{{{run},"policy_overrides":{{"timeout_ms":{number}}}}}"#)
    };
    let deep = 100_000;
    let mut rows: Vec<Vec<u8>> = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "\"x\"".to_owned(),
        "7".to_owned(),
        "{".to_owned(),
        "{}".to_owned(),
        "[".repeat(deep),
        "{\"a\":".repeat(deep),
        "[".repeat(deep) + &"]".repeat(deep),
        exec(&("[".repeat(deep) + &"]".repeat(deep))),
        exec(&("{\"a\":".repeat(deep) + "1" + &"}".repeat(deep))),
        limit(&"9".repeat(10 * MIB)),
        limit(&format!("0.{}1", "0".repeat(MIB))),
        limit("1e999999999"),
        limit("NaN"),
        limit("Infinity"),
        limit("-0"),
        limit("-0.0"),
        limit("9223372036854775808"),
        limit("18446744073709551616"),
        limit("-9223372036854775809"),
        limit("0x10"),
        limit("010"),
        exec("\"true\",\"command\":\"false\""),
        exec("\"true\"").replace(
            "{\"exec\"",
            "{\"exec\":{\"kind\":\"argv\",\"command\":\"id\"},\"exec\"",
        ),
        exec("\"\\ud800\""),
        exec("\"\\udc00\\ud800\""),
        exec("\"a\\u0000b\""),
        exec(&format!("\"{}\"", "x".repeat(15 * MIB))),
        format!("\u{feff}{}", exec("\"true\"")),
        exec("\"true\"") + exec("\"true\"").as_str(),
        exec("\"true\"") + ",",
        exec("'true'"),
        exec("\"a\nb\""),
        r#"[{"kind":"argv","command":"true"}]"#.to_owned(),
        r#"{"exec":["argv","true"]}"#.to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec();
    rows.push(
        exec("\"\u{1}\"")
            .replace('\u{1}', "Z")
            .into_bytes()
            .iter()
            .map(|byte| match byte {
                b'Z' => 0xff,
                byte => *byte,
            })
            .collect(),
    );
    rows.push(
        exec("\"true\"")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect(),
    );
    for row in &rows {
        for path in ["/v1/execs", "/v1/policy/explain"] {
            let answer = server
                .client()
                .try_bytes("POST", path, Some("application/json"), row)
                .unwrap();
            let shown = String::from_utf8_lossy(&row[..row.len().min(100)]).into_owned();
            assert_eq!(answer.status, 400, "{path} {shown}: {}", answer.text());
            assert_eq!(answer.code(), "invalid_argument", "{path} {shown}");
            assert!(answer.body.len() < 4096, "{path} {shown}: an echo");
        }
    }
    // The control, and nothing of all that has run.
    let fine = server.client().try_bytes(
        "POST",
        "/v1/execs",
        Some("application/json"),
        exec("\"true\"").as_bytes(),
    );
    assert_eq!(fine.unwrap().status, 200);
    assert_eq!(
        server.client().get("/v1/execs").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(!server.said().contains("panicked"), "{}", server.said());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_mistyped_field_is_never_a_weaker_policy() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let base = json!({
        "project_id": "p",
        "task_ref": {"task_id": "t"},
        "exec": {"kind": "argv", "command": "true"},
        "inputs": [{"path": "a", "content": "x"}],
        "policy_overrides": {"network": "none", "net": {"mode": "none"}},
    });
    assert_eq!(
        server.exec(&base).status,
        200,
        "{}",
        server.exec(&base).text()
    );
    for (place, field, meant) in [
        ("", "polcy_overrides", "policy_overrides"),
        ("", "Exec", "exec"),
        ("/policy_overrides", "netwrok", "network"),
        ("/policy_overrides", "memroy", "memory"),
        ("/policy_overrides", "teir", "tier"),
        ("/policy_overrides/net", "moed", "mode"),
        ("/exec", "comand", "command"),
        ("/task_ref", "usr_id", "user_id"),
        ("/inputs/0", "pth", "path"),
    ] {
        let mut body = base.clone();
        body.pointer_mut(place).unwrap()[field] = json!("none");
        for path in ["/v1/execs", "/sandbox/execs", "/v1/policy/explain"] {
            let answer = server.client().post(path, &body);
            assert_eq!(
                answer.status,
                400,
                "{path} {place}/{field}: {}",
                answer.text()
            );
            assert!(answer.text().contains(meant), "{field}: {}", answer.text());
        }
    }
    for (path, method) in [("/v1/tokens", "POST"), ("/v1/settings", "PATCH")] {
        let body = json!({"name": "n", "role": "agent", "expire_at": "2030-01-01T00:00:00Z"});
        assert_eq!(
            server.client().send(method, path, Some(&body)).status,
            400,
            "{path}"
        );
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Objects in what may be sent that would swallow a field they do not know.
fn open_objects(document: &Value, schema: &Value, at: &str, found: &mut Vec<String>, depth: usize) {
    if depth > 40 {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return open_objects(document, target, at, found, depth + 1);
    }
    if schema.get("properties").is_some() && schema["additionalProperties"] != false {
        found.push(at.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        open_objects(
            document,
            property,
            &format!("{at}.{name}"),
            found,
            depth + 1,
        );
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        for choice in schema[list].as_array().into_iter().flatten() {
            open_objects(document, choice, at, found, depth + 1);
        }
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            open_objects(
                document,
                &schema[below],
                &format!("{at}[]"),
                found,
                depth + 1,
            );
        }
    }
}

#[test]
fn nothing_that_may_be_sent_is_open_to_unknown_fields() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let document = server.nobody().get("/openapi.json").json();
    let (mut bodies, mut found) = (0, Vec::new());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = operation["requestBody"]["content"].as_object();
            for (kind, described) in content.into_iter().flatten() {
                let at = format!("{method} {path} {kind}");
                open_objects(&document, &described["schema"], &at, &mut found, 0);
                bodies += 1;
            }
        }
    }
    assert!(bodies > 4, "{bodies}");
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_time_limit_is_one_that_makes_sense() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let ask = |overrides: &Value| {
        server.exec(&json!({
            "policy_overrides": overrides, "exec": {"kind": "argv", "command": "true"},
        }))
    };
    let wall = |record: &Value| record["policy_snapshot"]["limits"]["wall_ms"].clone();
    // Nothing said: the default, never none.
    for nothing in [
        json!({}),
        json!({"timeout": null}),
        json!({"timeout_ms": null}),
    ] {
        let answer = ask(&nothing);
        assert_eq!(answer.status, 200, "{nothing}: {}", answer.text());
        assert_eq!(wall(&answer.json()), 60_000, "{nothing}");
    }
    for (asked, granted) in [
        (json!({"timeout": "5s"}), 5_000),
        (json!({"timeout": 5}), 5_000),
        (json!({"timeout_ms": 7_000}), 7_000),
    ] {
        let answer = ask(&asked);
        assert_eq!(answer.status, 200, "{asked}: {}", answer.text());
        assert_eq!(wall(&answer.json()), granted, "{asked}");
    }
    for senseless in [
        r#"{"timeout_ms": 0}"#,
        r#"{"timeout_ms": -1}"#,
        r#"{"timeout_ms": 1.5}"#,
        r#"{"timeout_ms": 1e308}"#,
        r#"{"timeout_ms": 2592000001}"#,
        r#"{"timeout_ms": 9223372036854775808}"#,
        r#"{"timeout_ms": 18446744073709551616}"#,
        r#"{"timeout_ms": "5"}"#,
        r#"{"timeout_ms": true}"#,
        r#"{"timeout": 0}"#,
        r#"{"timeout": -1}"#,
        r#"{"timeout": "-1s"}"#,
        r#"{"timeout": ""}"#,
        r#"{"timeout": "soon"}"#,
        r#"{"timeout": "999999999999999999999999s"}"#,
    ] {
        let body = format!(
            r#"{{"policy_overrides":{senseless},"exec":{{"kind":"argv","command":"true"}}}}"#
        );
        let kind = Some("application/json");
        let answer = server
            .client()
            .try_bytes("POST", "/v1/execs", kind, body.as_bytes())
            .unwrap();
        assert_eq!(answer.status, 400, "{senseless}: {}", answer.text());
    }
    // What could be meant and is not allowed is refused by policy, with a record of the refusal.
    for beyond in [
        json!({"timeout": "0s"}),
        json!({"timeout": "1000000d"}),
        json!({"timeout_ms": 2_592_000_000_u64}),
        json!({"timeout": "1h"}),
    ] {
        let answer = ask(&beyond);
        assert_eq!(answer.status, 403, "{beyond}: {}", answer.text());
        assert_eq!(answer.code(), "policy_denied", "{beyond}");
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
