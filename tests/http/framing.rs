//! Bytes that two parsers could read differently. Each is the end of its connection, and what was
//! hidden behind it is never answered as a request of its own.

use std::io::{Read, Write};
use std::time::Duration;

use support::{Caller, Server, Start, Trial};

/// Alive at the end of a connection that should long be closed.
const PATIENCE: Duration = Duration::from_secs(8);

/// What would be answered with 200 if it were taken for a request.
const HIDDEN: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct Wire<'s>(&'s Server);

impl Wire<'_> {
    /// The statuses of all answers until the server closes.
    fn statuses(&self, bytes: &[u8]) -> Vec<String> {
        let mut stream = self.0.nobody().connect().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            let reset = error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(
                reset,
                "not closed: {:?} {error}",
                String::from_utf8_lossy(bytes)
            );
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        let lines = text.match_indices("HTTP/1.1 ");
        lines
            .map(|(at, _)| text[at + 9..].chars().take(3).collect())
            .collect()
    }

    #[track_caller]
    fn refuses(&self, what: &str, bytes: &[u8]) {
        assert_eq!(
            self.statuses(bytes),
            ["400"],
            "{what}: {:?}",
            String::from_utf8_lossy(bytes)
        );
    }

    /// A good request but for this, with another one behind it.
    fn post(&self, headers: &str, body: &str) -> Vec<u8> {
        let token = &self.0.token;
        format!(
            "POST /v1/policy/explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\n{headers}\r\n{body}{HIDDEN}"
        )
        .into_bytes()
    }
}

const BODY: &str = "{\"exec\":{\"kind\":\"argv\",\"command\":\"true\"}}";

#[test]
fn a_length_that_can_be_read_in_two_ways_ends_the_connection() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let wire = Wire(&server);
    let length = BODY.len();
    // The control: two good requests, two answers; then the server is asked to close.
    let mut good = wire.post(&format!("Content-Length: {length}\r\n"), BODY);
    good.extend(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(wire.statuses(&good), ["200", "200", "200"]);
    let chunked = format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n");
    for headers in [
        "Content-Length: LEN\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: LEN\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: LEN\r\nContent-Length: LEN\r\n",
        "Content-Length: LEN\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\ncontent-length: LEN\r\n",
        "Content-Length: LEN, LEN\r\n",
        "Content-Length: +LEN\r\n",
        "Content-Length: -LEN\r\n",
        "Content-Length: 0xLEN\r\n",
        "Content-Length: LEN.0\r\n",
        "Content-Length: LEN LEN\r\n",
        "Content-Length:\r\n",
        "Content-Length: x\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 99999999999999999999999999999999\r\n",
        "Content-Length : LEN\r\n",
        " Content-Length: LEN\r\n",
        "X: y\r\n Content-Length: LEN\r\n",
        "X: y\r\n\tfolded\r\nContent-Length: LEN\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding:\r\n",
        "Content-Length: LEN\n",
        "X: a\nContent-Length: LEN\r\n",
        "X: a\rContent-Length: LEN\r\n",
        "X: a\0b\r\nContent-Length: LEN\r\n",
        "X\0: a\r\nContent-Length: LEN\r\n",
        "X Y: a\r\nContent-Length: LEN\r\n",
        ": a\r\nContent-Length: LEN\r\n",
        "no colon\r\nContent-Length: LEN\r\n",
    ] {
        let headers = headers.replace("LEN", &length.to_string());
        for body in [BODY, &chunked, ""] {
            wire.refuses(&headers, &wire.post(&headers, body));
        }
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_first_line_that_is_none_ends_the_connection() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let wire = Wire(&server);
    for line in [
        "GET /healthz HTTP/1.1\nHost: localhost\n\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
        "\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /health\0z HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET\t/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        "GET /healthz  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.2\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTQ/1.1\r\nHost: localhost\r\n\r\n",
        "GET /healthz\r\n\r\n",
        "GE(T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}",
    ] {
        wire.refuses(line, format!("{line}{HIDDEN}").as_bytes());
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_head_that_is_too_large_ends_the_connection() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let wire = Wire(&server);
    let long = "x".repeat(20 << 10);
    let many: String = (0..80).map(|number| format!("X-{number}: y\r\n")).collect();
    for (what, head) in [
        (
            "a long header",
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"),
        ),
        (
            "a long path",
            format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ),
        (
            "many headers",
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        ),
        ("no end", "GET /".to_owned() + &long.repeat(8)),
    ] {
        let statuses = wire.statuses(format!("{head}{HIDDEN}").as_bytes());
        let fits =
            matches!(statuses.as_slice(), [one] if ["400", "414", "431"].contains(&one.as_str()));
        assert!(fits, "{what}: {statuses:?}");
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn nothing_hides_behind_a_chunked_body() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let wire = Wire(&server);
    let length = BODY.len();
    let post = |body: &str| wire.post("Transfer-Encoding: chunked\r\n", body);
    // A good one is answered, and the connection ends with it.
    let good = post(&format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n"));
    assert_eq!(wire.statuses(&good), ["200"]);
    for body in [
        format!("fffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n"),
        format!("1{length:016x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("-{length:x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("+{length:x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("0x{length:x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("{length:x}\n{BODY}\r\n0\r\n\r\n"),
        format!("{length:x}\r\n{BODY}XX0\r\n\r\n"),
        format!("{length:x}\r\n{BODY}0\r\n\r\n"),
        format!("\r\n{BODY}\r\n0\r\n\r\n"),
        format!("zz\r\n{BODY}\r\n0\r\n\r\n"),
        format!("{length:x};{}\r\n{BODY}\r\n0\r\n\r\n", "x".repeat(100_000)),
        format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", length - 1),
    ] {
        wire.refuses(&body[..body.len().min(80)], &post(&body));
    }
    // Trailers change nothing of what was said before.
    let trailer = post(&format!(
        "{length:x}\r\n{BODY}\r\n0\r\nContent-Length: 5\r\nHost: evil.test\r\n\r\n"
    ));
    let statuses = wire.statuses(&trailer);
    assert!(
        matches!(statuses.as_slice(), [one] if one == "200" || one == "400"),
        "{statuses:?}"
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}
