//! The client against a server that is made by hand, and as bad as servers can be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use glovebox_model::{Code, ExecId, Stream};
use serde_json::Value;

use super::*;

fn nobody() -> Credential {
    Credential::none("no token was looked for")
}

/// What one connection is answered with, after its request was read.
type Script = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A server that answers each connection as it was told, and remembers what it was asked.
struct Fake {
    port: u16,
    asked: JoinHandle<Vec<String>>,
}

impl Fake {
    fn new(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = std::thread::spawn(move || {
            scripts
                .into_iter()
                .map(|script| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let request = read_request(&stream);
                    script(&mut stream);
                    request
                })
                .collect()
        });
        Self { port, asked }
    }

    fn remote(&self) -> Client {
        let address = format!("http://127.0.0.1:{}", self.port).parse().unwrap();
        let mut remote = Client::connect(address, None, nobody()).unwrap();
        remote.backoff = Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(5),
            total: Duration::from_secs(30),
        };
        remote
    }

    /// Every script was needed; what each was asked.
    fn asked(self) -> Vec<String> {
        self.asked.join().unwrap()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn says(text: impl Into<String>) -> Script {
    let text = text.into();
    Box::new(move |stream| stream.write_all(text.as_bytes()).unwrap())
}

fn answer(status: &str, body: &str) -> Script {
    let length = body.len();
    says(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A stream of events that ends properly after what is given.
fn events(text: &str) -> Script {
    says(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}"
    ))
}

fn state(seq: u64, status: &str) -> String {
    format!("id: {seq}\nevent: state\ndata: {{\"seq\":{seq},\"status\":\"{status}\"}}\n\n")
}

fn output(seq: u64, text: &str) -> String {
    format!("id: {seq}\nevent: output\ndata: {{\"stream\":\"stdout\",\"text\":\"{text}\"}}\n\n")
}

fn refusal(code: &str) -> String {
    format!(
        r#"{{"error":{{"code":"{code}","message":"m","stage":"admit","blame":"caller",
            "retry":{{"allowed":false,"after_ms":null}},"hints":[],"request_id":"r"}}}}"#
    )
}

#[derive(Default)]
struct Kept(String);

impl LiveOutput for Kept {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0.push_str(std::str::from_utf8(bytes).unwrap());
    }
}

fn exec() -> ExecId {
    format!("e_{}", "ab".repeat(16)).parse().unwrap()
}

fn presses() -> (OwnedFd, OwnedFd) {
    let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
    rustix::pipe::pipe_with(flags).unwrap()
}

/// What was shown, and how it ended; `pressed` times somebody wanted it to end before.
fn follow(remote: &Client, pressed: usize) -> (String, Result<Parting>) {
    let (read, write) = presses();
    rustix::io::write(&write, &vec![b'c'; pressed]).unwrap();
    let mut kept = Kept::default();
    let audience = Audience {
        live: &mut kept,
        waits: &mut |_| {},
        presses: read,
    };
    let parting = remote.follow(&exec(), audience);
    (kept.0, parting)
}

#[test]
fn nothing_is_lost_or_shown_twice_when_the_connection_breaks() {
    let half = &output(3, "never shown")[..20];
    let fake = Fake::new(vec![
        events(&(state(1, "running") + &output(2, "one ") + half)),
        // Cut in the middle of a head.
        says("HTTP/1.1 200 OK\r\ncontent-"),
        answer("503 Service Unavailable", ""),
        // Once more what was there, and then the rest.
        events(&(output(2, "one ") + ": alive\n\n" + &output(3, "two ") + &output(4, "three"))),
        events(&state(5, "succeeded")),
    ]);
    let (shown, parting) = follow(&fake.remote(), 0);
    assert_eq!(parting.unwrap(), Parting::Ended);
    assert_eq!(shown, "one two three");
    let asked = fake.asked();
    let after: Vec<&str> = asked
        .iter()
        .map(|head| {
            head.split_once("after=")
                .unwrap()
                .1
                .split_once(' ')
                .unwrap()
                .0
        })
        .collect();
    assert_eq!(after, ["0", "2", "2", "2", "4"]);
}

#[test]
fn a_missing_event_is_asked_for_again() {
    let fake = Fake::new(vec![
        events(&(output(1, "a") + &output(3, "c"))),
        events(&(output(2, "b") + &output(3, "c") + &state(4, "failed"))),
    ]);
    let (shown, parting) = follow(&fake.remote(), 0);
    assert_eq!((shown.as_str(), parting.unwrap()), ("abc", Parting::Ended));
    fake.asked();
}

#[test]
fn a_final_word_is_not_argued_with() {
    for code in ["unauthenticated", "not_found", "expired"] {
        let fake = Fake::new(vec![answer("400 Bad Request", &refusal(code))]);
        let error = follow(&fake.remote(), 0).1.unwrap_err();
        assert_eq!(error.code.as_str(), code);
        assert_eq!(error.exec_id, Some(exec()));
        fake.asked();
    }
}

#[test]
fn a_server_that_stays_away_is_given_up_and_the_exec_is_named() {
    let fake = Fake::new(vec![events(&output(1, "a"))]);
    let mut remote = fake.remote();
    remote.backoff.total = Duration::from_millis(50);
    let (shown, parting) = follow(&remote, 0);
    let error = parting.unwrap_err();
    assert_eq!(shown, "a");
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.hints[0].contains(exec().as_str()), "{error:?}");
    fake.asked();
}

#[test]
fn who_presses_once_cancels_and_sees_the_end() {
    // The stream stays open until the cancel was heard; both are told apart by their paths.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(read_request(&stream).contains("/events?after=0"));
        events(&output(1, "a"))(&mut stream);
        let (mut cancel, _) = listener.accept().unwrap();
        let request = read_request(&cancel);
        answer("200 OK", "{}")(&mut cancel);
        stream.write_all(state(2, "canceled").as_bytes()).unwrap();
        request
    });
    let address = format!("http://127.0.0.1:{port}").parse().unwrap();
    let remote = Client::connect(address, None, nobody()).unwrap();
    let (shown, parting) = follow(&remote, 1);
    assert_eq!((shown.as_str(), parting.unwrap()), ("a", Parting::Ended));
    let request = server.join().unwrap();
    assert!(
        request.starts_with(&format!("POST /v1/execs/{}/cancel ", exec())),
        "{request}"
    );
    assert!(request.contains("idempotency-key: "), "{request}");
}

#[test]
fn who_presses_three_times_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&stream);
        events("")(&mut stream);
        for _ in 0..2 {
            let (mut cancel, _) = listener.accept().unwrap();
            read_request(&cancel);
            let body = "{}";
            let close =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{body}");
            cancel.write_all(close.as_bytes()).unwrap();
        }
        // Open until the client goes.
        let _ = stream.read(&mut [0; 1]);
    });
    let address = format!("http://127.0.0.1:{port}").parse().unwrap();
    let remote = Client::connect(address, None, nobody()).unwrap();
    assert_eq!(follow(&remote, 3).1.unwrap(), Parting::Left);
    drop(remote);
    server.join().unwrap();
}

#[test]
fn a_file_is_sent_again_whole() {
    let broken: Script = Box::new(|stream: &mut TcpStream| {
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    });
    let fake = Fake::new(vec![broken, answer("200 OK", "{}")]);
    let file = FileContent::new(std::io::Cursor::new(b"all of it".to_vec()));
    let target = Target::new("/v1/x");
    let _: Value = fake.remote().put_file(target, file, Vec::new()).unwrap();
    for request in fake.asked() {
        assert!(request.contains("all of it"), "{request}");
    }
}

#[test]
fn a_change_is_said_again_with_the_same_key() {
    let fake = Fake::new(vec![
        says(""),
        says("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":"),
        answer("200 OK", r#"{"a":1}"#),
    ]);
    let remote = fake.remote();
    let heard: Value = remote
        .post(Target::new("/v1/x"), &serde_json::json!({"b": 2}))
        .unwrap();
    assert_eq!(heard, serde_json::json!({"a": 1}));
    let asked = fake.asked();
    let key = |head: &String| {
        let line = head
            .lines()
            .find(|line| line.starts_with("idempotency-key: "));
        line.unwrap().to_owned()
    };
    assert!(
        asked
            .iter()
            .all(|head| key(head) == key(&asked[0]) && head.ends_with(r#"{"b":2}"#))
    );
}

#[test]
fn who_does_not_want_to_wait_for_the_answer_need_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let remote = Client::connect(address.parse().unwrap(), None, nobody()).unwrap();
    let (read, write) = presses();
    rustix::io::write(&write, b"c").unwrap();
    let call = glovebox_model::Call::new(
        glovebox_model::Correlation::of_space(glovebox_model::SpaceId::local()),
        glovebox_model::Vouched::People,
        glovebox_model::WorkspaceRef::Scratch,
        glovebox_model::Program::Shell {
            script: glovebox_model::ByteString::default(),
        },
    );
    let request = ExecRequest::of(call, None).unwrap();
    let error = remote.submit(&request, &read).unwrap_err();
    assert_eq!(error.code, Code::Canceled);
    assert!(error.hints[0].contains("glovebox ps"), "{error:?}");
}

#[test]
fn a_server_that_comes_back_is_waited_for() {
    let fake = Fake::new(vec![
        says(""),
        answer("503 Service Unavailable", ""),
        answer("200 OK", "5"),
    ]);
    let remote = fake.remote();
    let heard: u8 = remote
        .insistently(|| remote.get(Target::new("/v1/x")))
        .unwrap();
    assert_eq!(heard, 5);
    fake.asked();
    let fake = Fake::new(vec![answer("404 Not Found", &refusal("not_found"))]);
    let remote = fake.remote();
    let heard: Result<u8> = remote.insistently(|| remote.get(Target::new("/v1/x")));
    assert_eq!(heard.unwrap_err().code, Code::NotFound);
    fake.asked();
}

#[test]
fn a_refused_change_is_said_once() {
    let fake = Fake::new(vec![answer(
        "429 Too Many Requests",
        &refusal("rate_limited"),
    )]);
    let heard: Result<Value> = fake.remote().post(Target::new("/v1/x"), &());
    assert_eq!(heard.unwrap_err().code, Code::RateLimited);
    fake.asked();
}

#[test]
fn garbage_is_called_garbage() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n<p>",
        "HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]",
    ] {
        let fake = Fake::new(vec![says(garbage)]);
        let heard: Result<std::collections::BTreeMap<String, u8>> =
            fake.remote().get(Target::new("/v1/x"));
        let error = heard.unwrap_err();
        assert_eq!(error.code, Code::Internal, "{garbage}: {error}");
        assert!(
            error.message.contains("Glovebox server"),
            "{garbage}: {error}"
        );
        fake.asked();
    }
}

#[test]
fn half_an_answer_is_none() {
    let fake = Fake::new(vec![says(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    )]);
    let mut out = Vec::new();
    let error = fake
        .remote()
        .copy(Target::new("/v1/x"), &mut out)
        .unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    fake.asked();
}

#[test]
fn a_head_that_does_not_come_ends_the_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let remote = Client::connect(address, None, nobody()).unwrap();
    let ask = ApiRequest {
        patience: Duration::from_millis(50),
        ..ApiRequest::get(Target::new("/v1/x"))
    };
    match remote.runtime.block_on(remote.transport.ask(&ask)) {
        Err(SendError::Broken(error)) => assert!(error.message.contains("said nothing"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_there_is_said_at_once() {
    // Nothing listens on port 1.
    let address: Address = "http://127.0.0.1:1".parse().unwrap();
    let remote = Client::connect(address, None, nobody()).unwrap();
    let heard: Result<Value> = remote.post(Target::new("/v1/x"), &());
    let error = heard.unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("cannot reach"), "{error}");
}

#[test]
fn one_connection_serves_many_and_a_closed_one_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..2 {
            read_request(&stream);
            answer("200 OK", "1")(&mut stream);
        }
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&stream);
        answer("200 OK", "2")(&mut stream);
    });
    let address = format!("http://127.0.0.1:{port}").parse().unwrap();
    let remote = Client::connect(address, None, nobody()).unwrap();
    let heard: Vec<u8> = (0..3)
        .map(|_| remote.get(Target::new("/v1/x")).unwrap())
        .collect();
    assert_eq!(heard, [1, 1, 2]);
    server.join().unwrap();
}

#[test]
fn a_unix_socket_and_a_token() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("api.sock");
    let file = place.path().join("token");
    std::fs::write(&file, "gb_1_2\n").unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(&stream);
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7")
            .unwrap();
        head
    });
    let address: Address = format!("unix:{}", path.display()).parse().unwrap();
    let credential = Credential::find(&address, Some(&file), None).unwrap();
    let remote = Client::connect(address, None, credential).unwrap();
    assert_eq!(remote.get::<u8>(Target::new("/v1/x")).unwrap(), 7);
    let head = server.join().unwrap();
    assert!(head.contains("host: localhost\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer gb_1_2\r\n"), "{head}");
}

#[test]
fn a_file_without_an_authority_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ca.pem");
    std::fs::write(&file, "nothing").unwrap();
    let address: Address = "https://127.0.0.1:1".parse().unwrap();
    let error = Client::connect(address, Some(&file), nobody()).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}
