//! A workspace that is watched: what is told, what is told again, and what is left of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use support::{Client, sh, wait_until};

use crate::files::Desk;

struct Watch {
    reader: BufReader<TcpStream>,
    status: u16,
}

#[derive(Debug)]
struct Event {
    id: u64,
    name: String,
    data: Value,
}

impl Watch {
    fn begin(desk: &Desk, client: &Client, query: &str, more: &str) -> Self {
        let mut stream = client.connect().unwrap();
        let head = format!(
            "GET /v1/workspaces/p/watch{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{more}\r\n",
            desk.server.address, desk.server.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Self { reader, status }
    }

    fn on(desk: &Desk, query: &str, more: &str) -> Self {
        let watch = Self::begin(desk, &desk.client, query, more);
        assert_eq!(watch.status, 200);
        watch
    }

    /// None at the end of the stream. Lines that are only framing or signs of life are passed over.
    fn next(&mut self) -> Option<Event> {
        let (mut id, mut name) = (0, String::new());
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if line == "0" {
                return None;
            }
            match line.split_once(": ") {
                Some(("id", it)) => id = it.parse().unwrap(),
                Some(("event", it)) => it.clone_into(&mut name),
                Some(("data", it)) => {
                    let data = serde_json::from_str(it).unwrap();
                    return Some(Event { id, name, data });
                }
                _ => {}
            }
        }
    }

    fn until(&mut self, path: &str) -> Event {
        loop {
            let event = self.next().expect("the stream goes on");
            if event.data["path"] == path {
                return event;
            }
        }
    }
}

/// The watches that the server has of the kernel.
fn inotify(desk: &Desk) -> usize {
    let fds = fs::read_dir(format!("/proc/{}/fd", desk.server.pid())).unwrap();
    let is = |it: &fs::DirEntry| {
        fs::read_link(it.path()).is_ok_and(|to| to.to_string_lossy().contains("inotify"))
    };
    fds.filter_map(Result::ok).filter(is).count()
}

#[test]
fn changes_are_told_as_they_happen_and_again_to_whoever_comes_back() {
    let desk = Desk::new();
    let mut watch = Watch::on(&desk, "", "");
    let ready = watch.next().unwrap();
    assert_eq!(
        (ready.name.as_str(), &ready.data["partial"]),
        ("ready", &Value::Bool(false))
    );
    desk.put("a/f", b"one");
    let event = watch.until("a/f");
    assert_eq!(event.name, "change");
    assert_eq!(event.data["is_dir"], false);
    assert_eq!(event.data["seq"], event.id);
    // By whomever: this one is in a sandbox.
    let ran = desk.client.post(
        "/v1/execs",
        &sh("echo x > by-exec; mv first second; rm -r a"),
    );
    assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
    watch.until("by-exec");
    let moved = watch.until("second");
    assert_eq!(
        (&moved.data["kind"], &moved.data["from"]),
        (&"moved".into(), &"first".into())
    );
    assert_eq!(watch.until("a").data["kind"], "removed");
    // Gone, and something happens meanwhile.
    drop(watch);
    desk.put("meanwhile", b"x");
    let last = format!("Last-Event-ID: {}\r\n", event.id);
    let mut again = Watch::on(&desk, "", &last);
    assert_eq!(again.next().unwrap().id, event.id);
    again.until("by-exec");
    again.until("meanwhile");
    let mut again = Watch::on(&desk, &format!("?after={}", event.id), "");
    assert_eq!(again.next().unwrap().id, event.id);
    assert_ne!(again.next().unwrap().name, "overflow");
    // Numbers that this watch never gave.
    for long_ago in ["?after=1", "?after=9007199254740991"] {
        let mut watch = Watch::on(&desk, long_ago, "");
        watch.next().unwrap();
        assert_eq!(watch.next().unwrap().name, "overflow", "{long_ago}");
    }
    let mut short = Watch::on(&desk, "?seconds=0", "");
    assert_eq!(short.next().unwrap().name, "ready");
    assert!(short.next().is_none());
    for bad in ["?after=-1", "?after=x", "?seconds=100000"] {
        assert_eq!(
            Watch::begin(&desk, &desk.client, bad, "").status,
            400,
            "{bad}"
        );
    }
    let bad = "Last-Event-ID: x\r\n";
    assert_eq!(Watch::begin(&desk, &desk.client, "", bad).status, 400);
    desk.close();
}

#[test]
fn watchers_share_and_are_bounded_and_leave_nothing() {
    let desk = Desk::new();
    let before = inotify(&desk);
    let mut held: Vec<Watch> = Vec::new();
    for _ in 0..32 {
        let mut watch = Watch::on(&desk, "", "");
        assert_eq!(watch.next().unwrap().name, "ready");
        held.push(watch);
    }
    assert_eq!(inotify(&desk), before + 1);
    let mut one_more = Watch::begin(&desk, &desk.client, "", "Connection: close\r\n");
    assert_eq!(one_more.status, 503);
    let mut said = String::new();
    one_more.reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("watch already"), "{said}");
    // Another space has places of its own.
    let blue = desk
        .server
        .client_of(&desk.server.token_of("agent", "blue", "blue"));
    let kind = Some("application/octet-stream");
    blue.try_bytes("PUT", "/v1/workspaces/p/files/f", kind, b"x")
        .unwrap();
    let watched = blue.get("/v1/workspaces/p/watch?seconds=0");
    assert_eq!(watched.status, 200, "{}", watched.text());
    desk.put("f", b"x");
    for watch in &mut held {
        watch.until("f");
    }
    held.clear();
    let free = wait_until(Duration::from_secs(60), || {
        Watch::begin(&desk, &desk.client, "?seconds=0", "").status == 200
    });
    assert!(free, "who leaves gives its place back");
    assert!(inotify(&desk) <= before + 2);
    desk.close();
}

#[test]
fn a_watch_ends_with_its_workspace_and_with_the_server() {
    let desk = Desk::new();
    let mut watch = Watch::on(&desk, "", "");
    watch.next().unwrap();
    let gone = desk.client.send("DELETE", "/v1/workspaces/p", None);
    assert_eq!(gone.status, 204, "{}", gone.text());
    let end = std::iter::from_fn(|| watch.next()).last().unwrap();
    assert_eq!(end.name, "end");
    let missing = Watch::begin(&desk, &desk.client, "", "");
    assert_eq!(missing.status, 404);
    // One of the same name is another.
    desk.put("f", b"x");
    let mut watch = Watch::on(&desk, "", "");
    watch.next().unwrap();
    desk.put("g", b"x");
    watch.until("g");
    let reader = std::thread::spawn(move || std::iter::from_fn(|| watch.next()).count());
    desk.close();
    reader.join().unwrap();
}
