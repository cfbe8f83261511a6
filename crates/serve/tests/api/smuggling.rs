use std::io::{Read, Write};

use crate::client::{connect, raw};
use crate::house::House;

/// What would be answered with 404 if it ever was taken for a request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn heads() -> Vec<String> {
    let post = "POST /v1/execs HTTP/1.1\r\nHost: localhost\r\n";
    [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\n",
        "Content-Length: +4\r\n\r\n",
        "Content-Length: 4, 4\r\n\r\n",
        "Content-Length: 0x4\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 99999999999999999999999\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n",
        "X: a\r\n folded\r\n\r\n",
        "X: a\0b\r\n\r\n",
        "X: a\rb\r\n\r\n",
        "X: a\n\r\n",
        "X: a\nY: b\r\n\r\n",
    ]
    .iter()
    .map(|rest| format!("{post}{rest}"))
    .chain(["GET /healthz HTTP/1.1\nHost: localhost\n\n".to_owned()])
    .collect()
}

fn check(address: std::net::SocketAddr, bytes: &[u8], answers: usize) {
    let answer = String::from_utf8_lossy(&raw(address, bytes)).into_owned();
    let shown = String::from_utf8_lossy(bytes);
    let statuses: Vec<&str> = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|it| &it[..3])
        .collect();
    assert_eq!(statuses.len(), answers, "{shown:?} → {answer}");
    assert_eq!(statuses.last(), Some(&"400"), "{shown:?} → {answer}");
}

pub(crate) fn ambiguous_requests_end_the_connection() {
    let house = House::open();
    for head in heads() {
        check(
            house.address,
            format!("{head}0\r\n\r\n{SMUGGLED}").as_bytes(),
            1,
        );
    }
    let overflow =
        "POST /v1/execs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let token = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/json\r\n",
        house.admin
    );
    let overflow = overflow.replace("\r\n\r\n", &format!("\r\n{token}\r\n"));
    for size in ["ffffffffffffffffff\r\n", "-1\r\n", "1;\0\r\n", "zz\r\n"] {
        let answer = raw(
            house.address,
            format!("{overflow}{size}{SMUGGLED}").as_bytes(),
        );
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400"), "{size:?} → {answer}");
        assert!(!answer.contains("HTTP/1.1 404"), "{answer}");
    }
}

pub(crate) fn a_request_after_a_good_one_is_looked_at_too() {
    let house = House::open();
    let good = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for head in heads() {
        check(
            house.address,
            format!("{good}{head}0\r\n\r\n{SMUGGLED}").as_bytes(),
            2,
        );
    }
    // Two good ones in one piece are two answers, and the connection stays.
    let mut stream = connect(house.address);
    let mut answer = Vec::new();
    stream
        .write_all(format!("{good}{good}").as_bytes())
        .unwrap();
    while answer
        .windows(15)
        .filter(|it| *it == b"{\"status\":\"ok\"}")
        .count()
        < 2
    {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0);
        answer.extend_from_slice(&piece[..count]);
    }
    // A chunked body is the last thing on its connection.
    let chunked = format!(
        "POST /v1/execs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"
    );
    let answer = raw(house.address, chunked.as_bytes());
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with("HTTP/1.1 401") && answer.contains("connection: close"),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
}
