use std::io::{Read, Write};

use serde_json::json;

use crate::client::{Ask, Reply, connect, raw};
use crate::house::House;

fn post(house: &House, body: &[u8]) -> Reply {
    Ask::new("POST", "/v1/policy/explain")
        .token(&house.admin)
        .header("Content-Type", "application/json")
        .body(body)
        .send(house.address)
}

pub(crate) fn only_strict_json_is_taken() {
    let house = House::open();
    let good = json!({"exec": {"kind": "argv", "command": "true"}}).to_string();
    assert_eq!(post(&house, good.as_bytes()).status, 200);
    let with = |field: &str| format!("{},{field}}}", &good[..good.len() - 1]);
    let in_policy = |field: &str| with(&format!("\"policy_overrides\":{{{field}}}"));
    let deep = "[".repeat(100_000);
    let long = format!("\"client_id\":\"{}\"", "x".repeat(100_000));
    let digits = format!("\"timeout_ms\":1{}", "0".repeat(100_000));
    let cases: Vec<Vec<u8>> = [
        String::new(),
        good[..good.len() - 1].to_owned(),
        format!("{good}{good}"),
        format!("{good} x"),
        format!("\u{feff}{good}"),
        deep,
        with(&long),
        with("\"wait\":true,\"wait\":true"),
        with("\"wait\":1"),
        with("\"client_id\":\"a/b\""),
        with("\"client_id\":\"\\ud800\""),
        with("\"netwrok\":\"none\""),
        with("\"mode\":\"dream\""),
        with("\"inputs\":[{\"path\":\"../x\",\"content\":\"\"}]"),
        with("\"inputs\":[{\"path\":\"/x\",\"content\":\"\"}]"),
        with("\"inputs\":[{\"path\":\"\",\"content\":\"\"}]"),
        with("\"inputs\":[{\"path\":\"x\"}]"),
        with("\"inputs\":[{\"path\":\"x\",\"content\":\"\",\"content_base64\":\"\"}]"),
        with("\"inputs\":[{\"path\":\"x\",\"content_base64\":\"a\"}]"),
        in_policy("\"netwrok\":\"none\""),
        in_policy("\"timeout_ms\":0"),
        in_policy("\"timeout_ms\":-1"),
        in_policy("\"timeout_ms\":-0"),
        in_policy("\"timeout_ms\":9223372036854775808"),
        in_policy("\"timeout_ms\":1e400"),
        in_policy("\"timeout_ms\":NaN"),
        in_policy("\"timeout_ms\":1.5"),
        in_policy("\"timeout\":\"-1s\""),
        in_policy("\"pids\":0"),
        in_policy(&digits),
        json!({"exec": {"kind": "argv", "command": "a\u{0}b"}}).to_string(),
        json!({"exec": {"kind": "argv", "command": ""}}).to_string(),
        json!({"exec": {"kind": "argv", "command": "a", "args": ["\u{0}"]}}).to_string(),
        json!({"exec": {"kind": "argv", "command": "a", "env": {"A=": "1"}}}).to_string(),
        json!({"exec": {"kind": "argv", "command": "a", "env": {"A": "\u{0}"}}}).to_string(),
        json!({"exec": {"kind": "argv", "command": "a", "cwd": "/etc"}}).to_string(),
        json!({"exec": {"kind": "argv", "command": "a", "cwd": "../.."}}).to_string(),
        json!({"exec": {"kind": "sql", "command": "a"}}).to_string(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([b"{\"exec\":\"\xff\"}".to_vec()])
    .collect();
    for body in cases {
        let reply = post(&house, &body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (400, "invalid_argument"),
            "{shown}"
        );
    }
    let reply = post(&house, in_policy("\"netwrok\":\"none\"").as_bytes()).json();
    assert_eq!(reply["error"]["hints"][0], "did you mean `network`?");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
    ] {
        let ask = Ask::new("POST", "/v1/policy/explain").token(&house.admin);
        let ask = ask.header("Content-Type", kind).body(good.as_bytes());
        assert_eq!(ask.send(house.address).status, 415, "{kind}");
    }
    for query in [
        "limit=0",
        "limit=x",
        "limit=1&limit=1",
        "unknown=1",
        "status=odd",
        "cursor=x",
    ] {
        assert_eq!(
            house.get(&format!("/v1/execs?{query}")).status,
            400,
            "{query}"
        );
    }
}

pub(crate) fn what_is_too_large_is_refused_before_it_is_read() {
    let house = House::open();
    let head = |path: &str, framing: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n",
            house.admin
        )
    };
    for (path, most, hint) in [
        ("/v1/execs", 16_usize << 20, "PUT /v1/workspaces"),
        ("/v1/tokens", 1 << 20, "send less"),
    ] {
        let announced = head(path, &format!("Content-Length: {}", most * 10));
        let answer = raw(house.address, announced.as_bytes());
        assert!(
            answer.starts_with(b"HTTP/1.1 413"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        let error = Reply::parse(&answer).json()["error"].clone();
        let limit = format!("{} MiB", most >> 20);
        assert!(error["message"].as_str().unwrap().contains(&limit));
        assert!(error["hints"][0].as_str().unwrap().contains(hint));
        let mut stream = connect(house.address);
        stream
            .write_all(head(path, "Transfer-Encoding: chunked").as_bytes())
            .unwrap();
        let piece = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
        let mut sent = 0;
        // The server says no and closes; how much got into the buffers before does not matter.
        while sent < most * 10 && stream.write_all(&piece).is_ok() {
            sent += 0x10000;
        }
        assert!(sent < most + (24 << 20), "{sent} bytes were taken");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 413"));
    }
    assert_eq!(house.get("/healthz").status, 200);
}

pub(crate) fn a_large_head_is_refused() {
    let house = House::open();
    let long = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(20 << 10)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(100)
    );
    for head in [long, many] {
        let answer = raw(house.address, head.as_bytes());
        assert!(
            answer.starts_with(b"HTTP/1.1 431"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
}
