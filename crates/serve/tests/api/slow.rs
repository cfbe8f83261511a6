use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Ask, connect};
use crate::house::{House, eventually};

const SHORT: Duration = Duration::from_millis(300);
/// For whoever means to send a whole head, on a host that has little time for it.
const HEAD: Duration = Duration::from_secs(3);

fn connections(house: &House) -> usize {
    let text = house.get("/metrics").text();
    let line = text
        .lines()
        .find(|line| line.starts_with("glovebox_connections "))
        .unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The answer is on its way; nothing more of it is read.
fn begun(stream: &mut TcpStream) {
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

pub(crate) fn slow_heads_and_bodies_are_cut_off_and_others_are_served() {
    let house = House::with(|options| {
        options.times.head = HEAD;
        options.times.body_pause = SHORT;
        options.times.idle = SHORT;
    });
    let mut slow: Vec<_> = (0..50).map(|_| connect(house.address)).collect();
    for (index, stream) in slow.iter_mut().enumerate() {
        let start = match index % 3 {
            0 => String::new(),
            1 => "GET /healthz HTTP/1.1\r\nHost: lo".to_owned(),
            _ => format!(
                "PUT /v1/workspaces/p/files/f HTTP/1.1\r\nHost: localhost\r\n\
                 Authorization: Bearer {}\r\nContent-Length: 10\r\n\r\nabc",
                house.admin
            ),
        };
        stream.write_all(start.as_bytes()).unwrap();
    }
    let began = Instant::now();
    assert_eq!(house.get("/healthz").status, 200);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "others do not wait"
    );
    for (index, stream) in slow.iter_mut().enumerate() {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        match index % 3 {
            2 => assert!(answer.starts_with("HTTP/1.1 408"), "{answer}"),
            _ => assert_eq!(answer, ""),
        }
    }
    let mut idle = connect(house.address);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "answered, and closed when nothing followed"
    );
    eventually("nobody is left", || connections(&house) == 1);
}

pub(crate) fn a_client_that_does_not_read_is_dropped() {
    let house = House::with(|options| options.times.write = SHORT);
    let path = "/v1/workspaces/p/files/large";
    let put = Ask::new("PUT", path)
        .token(&house.admin)
        .body(&vec![7; 32 << 20]);
    assert_eq!(put.send(house.address).status, 200);
    let mut stream = connect(house.address);
    let get = Ask::new("GET", path)
        .token(&house.admin)
        .bytes(house.address);
    stream.write_all(&get).unwrap();
    begun(&mut stream);
    eventually("the response is cut off", || connections(&house) == 1);
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got);
    assert!(got.len() < 32 << 20, "{} bytes", got.len());
}
