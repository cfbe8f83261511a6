//! Sessions that are followed as they go on: by server-sent events, by a WebSocket, and by what is recorded.

use std::time::Duration;

use serde_json::{Value, json};
use support::{Ears, Event, wait_until};

use crate::sessions_ground::{House, JOB, PATIENCE, Talk, bash, piece, piped};

/// The WebSocket of one session.
fn attend(house: &House, talk: &Talk, token: &str) -> Result<Ears, (u16, String)> {
    let bearer = format!("Bearer {token}");
    Ears::open_at(
        &house.server.nobody(),
        house.server.address,
        &talk.path("/ws"),
        &[("Authorization", &bearer)],
    )
}

/// Reads on until this was put out.
#[track_caller]
fn hear(ears: &mut Ears, read: &mut String, cue: &str) {
    while !read.contains(cue) {
        let message = ears.hear(|it| it["event"] == "output");
        let (bytes, _) = piece(&message["data"]);
        read.push_str(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn events_are_the_output_and_go_on_where_they_were_cut_off() {
    let house = House::open();
    let script = "for i in 1 2 3 4 5; do echo line $i; read x; done; echo err >&2; exit 7";
    let talk = house.start(&piped(&["sh", "-c", script]));
    let client = house.server.client();
    let (mut read, mut last) = (String::new(), String::from("0-0"));
    for number in 1..=5 {
        // Another connection each time.
        let (out, err) = last.split_once('-').expect("two offsets");
        let path = talk.path(&format!("/stream?stdout={out}&stderr={err}"));
        let mut events = client.follow(&path).expect("a stream");
        let cue = format!("line {number}\n");
        while !read.ends_with(&cue) {
            let event = events.next().expect("no end yet").expect("an event");
            assert_eq!(
                (event.name.as_str(), &event.data["stream"]),
                ("output", &json!("stdout"))
            );
            let (bytes, next) = piece(&event.data);
            read.push_str(&String::from_utf8_lossy(&bytes));
            last = format!("{next}-0");
        }
        talk.send("\n");
    }
    assert_eq!(read, "line 1\nline 2\nline 3\nline 4\nline 5\n");
    let resumed = client.with("Last-Event-ID", last.as_str());
    let rest = resumed
        .follow(&talk.path("/stream?stdout=0"))
        .expect("a stream");
    let rest: Vec<Event> = rest.map(|it| it.expect("an event")).collect();
    let end = rest.last().expect("an end");
    assert_eq!(
        (end.name.as_str(), &end.data["exit_code"]),
        ("end", &json!(7))
    );
    let errors = rest.iter().filter(|it| it.data["stream"] == "stderr");
    let errors: Vec<&Value> = errors.map(|it| &it.data["content"]).collect();
    assert_eq!(errors, ["err\n"]);
    assert_eq!(rest.len(), 2, "{rest:?}");
    // The same to who comes when all is over.
    let late = talk.client.follow(&talk.path("/stream")).expect("a stream");
    let late: Vec<Event> = late.map(|it| it.expect("an event")).collect();
    let late = &late.last().expect("an end").data;
    for field in [
        "state",
        "exit_code",
        "receipt",
        "stdout",
        "stderr",
        "ended_at",
    ] {
        assert_eq!(late[field], end.data[field], "{field}");
    }
    let wrong = talk.client.clone().with("Last-Event-ID", "1");
    assert_eq!(wrong.get(&talk.path("/stream")).status, 400);
    house.close();
}

#[test]
fn a_websocket_types_and_hears_and_mistakes_end_nothing() {
    let house = House::open();
    let talk = house.start(&bash());
    let mut ears = attend(&house, &talk, &house.server.token).expect("a WebSocket");
    let mut second = attend(&house, &talk, &house.server.token).expect("another");
    let mut read = String::new();
    hear(&mut ears, &mut read, "ready> ");
    ears.say(&json!({"resize": {"columns": 120, "rows": 40}}));
    ears.say(&json!({"input": {"submit": "stty size"}}));
    hear(&mut ears, &mut read, "40 120\r\nready> ");
    for (wrong, code) in [
        (
            json!({"input": {"text": "a", "submit": "b"}}),
            "invalid_argument",
        ),
        (
            json!({"resize": {"columns": 0, "rows": 0}}),
            "invalid_argument",
        ),
        (json!({"signal": "NONE"}), "invalid_argument"),
        (json!({"close_input": false}), "invalid_argument"),
        (json!({"no": "such"}), "invalid_argument"),
    ] {
        ears.say(&wrong);
        let error = ears.hear(|it| it["event"] == "error");
        assert_eq!(error["data"]["code"], code, "{wrong}: {error}");
    }
    read.clear();
    ears.say(&json!({"input": {"submit": JOB.0}}));
    hear(&mut ears, &mut read, JOB.1);
    read.clear();
    ears.say(&json!({"signal": "INT"}));
    hear(&mut ears, &mut read, "ready> ");
    ears.say(&json!({"input": {"submit": "exit 6"}}));
    let mut other = String::new();
    hear(&mut second, &mut other, "exit 6");
    assert!(other.contains("40 120"), "{other}");
    for ears in [&mut ears, &mut second] {
        let end = ears.hear(|it| it["event"] == "end");
        assert_eq!(end["data"]["exit_code"], 6, "{end}");
        assert!(ears.message().is_err());
    }
    house.close();
}

/// A token that only reads sees and does not type; one that was revoked does neither.
#[test]
fn a_token_that_may_not_type_or_is_revoked_is_told_so() {
    let house = House::open();
    let mut talk = house.start(&bash());
    talk.until("ready> ");
    let reader = house.server.token_of("auditor", "local", "reader");
    let mut ears = attend(&house, &talk, &reader).expect("a WebSocket");
    ears.say(&json!({"input": {"submit": "echo typed"}}));
    let error = ears.hear(|it| it["event"] == "error");
    assert_eq!(error["data"]["code"], "forbidden", "{error}");
    let writer = house.server.token_of("agent", "local", "writer");
    let other = attend(&house, &talk, &writer).expect_err("another agent's is not there");
    assert_eq!(other.0, 404, "{}", other.1);
    let made = house
        .server
        .client()
        .post("/v1/tokens", &json!({"name": "second", "role": "admin"}));
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let (id, admin) = (made["token"]["token_id"].as_str(), made["secret"].as_str());
    let (id, admin) = id.zip(admin).expect("a token");
    let mut ears = attend(&house, &talk, admin).expect("a WebSocket");
    let revoked = house
        .server
        .client()
        .send("DELETE", &format!("/v1/tokens/{id}"), None);
    assert!(matches!(revoked.status, 200 | 204), "{}", revoked.text());
    ears.say(&json!({"input": {"submit": "echo revoked"}}));
    let refused = ears.hear(|it| it["event"] == "error");
    assert_eq!(refused["data"]["code"], "unauthenticated", "{refused}");
    talk.submit("echo all");
    talk.until("\r\nall");
    assert!(!talk.text().contains("typed") && !talk.text().contains("revoked"));
    talk.kill();
    assert!(wait_until(PATIENCE, || talk.info()["state"] == "killed"));
    house.close();
}

/// What is recorded until now: when each piece came, and the piece.
#[track_caller]
fn recorded(talk: &Talk) -> Vec<(f64, String)> {
    let answer = talk.client.get(&talk.path("/recording"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let parsed = |line| serde_json::from_str::<(f64, String, String)>(line).expect("a line");
    let lines = text.lines().skip(1).map(parsed);
    lines.map(|(at, _, shown)| (at, shown)).collect()
}

fn all(pieces: &[(f64, String)]) -> String {
    pieces.iter().map(|(_, shown)| shown.as_str()).collect()
}

/// From 4096 events on, those of another exec wait for more output.
#[test]
fn a_long_session_is_recorded_until_now_with_its_times() {
    const SCRIPT: &str = r#"
import os, select, sys, time
while not select.select([0], [], [], 0.0005)[0]:
    os.write(1, b".")
for word in (b"one", b"two"):
    sys.stdin.readline()
    os.write(1, word)
    time.sleep(0.01)
    os.write(1, b"!")
sys.stdin.readline()
print("\u00e4" * 300_000)
"#;
    const PAUSE: Duration = Duration::from_millis(500);
    let house = House::open();
    let mut talk = house.start(&piped(&["python3", "-c", SCRIPT]));
    let events = format!("/v1/execs/{}/events?after=4095", talk.id);
    let mut events = talk.client.follow(&events).expect("a stream");
    events.next().expect("no end yet").expect("an event");
    for word in ["one!", "two!"] {
        talk.send("\n");
        let is_there = wait_until(PATIENCE, || all(&recorded(&talk)).ends_with(word));
        assert!(is_there, "{word:?} is not recorded");
        std::thread::sleep(PAUSE);
    }
    let pieces = recorded(&talk);
    let marks = pieces.iter().filter(|(_, shown)| shown.contains('!'));
    let marks: Vec<f64> = marks.map(|(at, _)| *at).collect();
    assert!(
        matches!(marks[..], [one, two] if two - one >= PAUSE.as_secs_f64()),
        "{marks:?}"
    );
    talk.send("\n");
    talk.until_end();
    let pieces = recorded(&talk);
    assert!(pieces.is_sorted_by_key(|(at, _)| *at));
    assert!(
        all(&pieces) == talk.text(),
        "the recording is not the output"
    );
    house.close();
}
