//! What happens to an exec is told in order, without gaps, with one end, and the same to everybody,
//! however often, from wherever and whenever they ask.

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use support::{Caller, Client, Event, Gate, Start, Trial, sh, wait_until, with};

fn all(client: &Client, id: &str, after: u64) -> Vec<Event> {
    let events = client.events(id, after).unwrap();
    events.map(Result::unwrap).collect()
}

fn is_end(event: &Event) -> bool {
    event.name == "state" && !matches!(event.data["status"].as_str(), Some("queued" | "running"))
}

/// Numbers from 1 without gaps, and one end, at the end.
#[track_caller]
fn assert_whole(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected, "{events:?}");
    for event in events {
        assert_eq!(event.data["seq"], event.seq, "{event:?}");
    }
    let ends = events.iter().filter(|event| is_end(event)).count();
    assert!(ends == 1 && is_end(events.last().unwrap()), "{events:?}");
}

fn output(events: &[Event], stream: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events.iter().filter(|it| it.data["stream"] == stream) {
        match (&event.data["text"], &event.data["base64"]) {
            (Value::String(text), Value::Null) => bytes.extend(text.as_bytes()),
            (Value::Null, Value::String(text)) => bytes.extend(unbase64(text)),
            (Value::Null, Value::Null) => assert_eq!(event.data["truncated"], true, "{event:?}"),
            _ => panic!("both: {event:?}"),
        }
    }
    bytes
}

fn unbase64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter(|digit| *digit != b'=');
    let values: Vec<u32> = digits
        .map(|digit| DIGITS.iter().position(|it| *it == digit).unwrap() as u32)
        .collect();
    let mut bytes = Vec::new();
    for four in values.chunks(4) {
        let number = four.iter().fold(0, |number, digit| number << 6 | digit);
        let number = number << (6 * (4 - four.len()));
        bytes.extend(&number.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Every position while it runs, after its end, and after a crash and a restart of the server.
#[test]
fn a_reader_resumes_anywhere_and_gets_exactly_the_rest() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let mut server = Start::default().on(&trial);
    let client = server.client();
    let script = format!(
        "for i in 1 2 3 4 5; do echo line $i; sleep 0.03; done; printf '\\377\\376\\n' >&2; {}; echo end",
        gate.wait()
    );
    let id = client.begin(&sh(&script));
    // Some have come; the rest is still to come for everybody.
    let mut stream = client.events(&id, 0).unwrap();
    let mut seen = Vec::new();
    while output(&seen, "stderr").is_empty() {
        seen.push(stream.next().unwrap().unwrap());
    }
    let readers: Vec<_> = (0..=seen.len() as u64)
        .map(|after| {
            let (client, id) = (client.clone(), id.clone());
            thread::spawn(move || (after, all(&client, &id, after)))
        })
        .collect();
    gate.open();
    seen.extend(stream.map(Result::unwrap));
    assert_whole(&seen);
    assert_eq!(
        output(&seen, "stdout"),
        b"line 1\nline 2\nline 3\nline 4\nline 5\nend\n"
    );
    assert_eq!(output(&seen, "stderr"), b"\xff\xfe\n");
    for reader in readers {
        let (after, events) = reader.join().unwrap();
        assert_eq!(
            events,
            seen[after as usize..],
            "while it ran, after {after}"
        );
    }
    let last = seen.last().unwrap();
    let record = client.ended(&id);
    for field in ["status", "exit_code", "signal", "limit_hit", "receipt"] {
        assert_eq!(last.data[field], record[field], "{field}");
    }
    let positions = 0..=seen.len() as u64 + 1;
    for after in positions.clone() {
        let rest = seen.get(after as usize..).unwrap_or_default();
        assert_eq!(all(&client, &id, after), rest, "ended, after {after}");
        let header = client.clone().with("Last-Event-ID", after.to_string());
        assert_eq!(
            all(&header, &id, 0),
            rest,
            "ended, `Last-Event-ID: {after}`"
        );
    }

    server.kill();
    let server = Start::default().on(&trial);
    for after in positions {
        let rest = seen.get(after as usize..).unwrap_or_default();
        assert_eq!(
            all(&server.client(), &id, after),
            rest,
            "restarted, after {after}"
        );
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// What was told before the crash stays true after it: for one that ran, and for one that waited.
#[test]
fn a_crash_takes_back_nothing_that_was_told() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let mut server = Start::default().on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 1}));
    let runs = client.begin(&sh(&format!("echo here; {}", gate.wait())));
    let mut stream = client.events(&runs, 0).unwrap();
    let before: Vec<Event> = (0..2).map(|_| stream.next().unwrap().unwrap()).collect();
    assert_eq!(before[1].data["text"], "here\n");
    let waits = client.begin(&sh("echo at last"));
    let mut stream = client.events(&waits, 0).unwrap();
    let queued = stream.next().unwrap().unwrap();
    assert_eq!(queued.data["status"], "queued");
    server.kill();
    assert!(
        stream.next().unwrap().is_err(),
        "a cut stream looks like an end"
    );

    let server = Start::default().on(&trial);
    let client = server.client();
    let events = all(&client, &runs, 0);
    assert_whole(&events);
    assert_eq!(events[..2], before);
    assert_eq!(events.last().unwrap().data["status"], "lost");
    assert_eq!(all(&client, &runs, 2), events[2..]);

    let events = all(&client, &waits, 0);
    assert_whole(&events);
    assert_eq!(events[0], queued);
    assert_eq!(events[1].data["status"], "running");
    assert_eq!(output(&events, "stdout"), b"at last\n");
    assert_eq!(all(&client, &waits, 1), events[1..]);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_hundred_readers_see_the_same() {
    const READERS: usize = 100;
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = Start::default().on(&trial);
    let client = server.client();
    let script = "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); done";
    let id = client.begin(&sh(&format!("{script}; {}; {script}", gate.wait())));
    let ready = Barrier::new(READERS + 1);
    let told = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = client.events(&id, 0).unwrap();
                    let first = stream.next().unwrap().unwrap();
                    ready.wait();
                    let rest = stream.map(Result::unwrap);
                    std::iter::once(first).chain(rest).collect::<Vec<_>>()
                })
            })
            .collect();
        // All of them have it open while it runs.
        ready.wait();
        gate.open();
        let readers = readers.into_iter().map(|reader| reader.join().unwrap());
        readers.collect::<Vec<_>>()
    });
    assert_whole(&told[0]);
    assert_eq!(output(&told[0], "stdout").len(), 2 * (10 * 2 + 50 * 3));
    for events in &told {
        assert_eq!(*events, told[0]);
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn bytes_survive_and_what_is_above_the_cap_is_said_once() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let client = server.client();
    let code = "import os\n\
                os.write(1, bytes(range(256)) * 40)\n\
                for i in range(300): os.write(2, 'ü€😀'.encode() * 100)\n";
    let body = json!({
        "exec": {"kind": "python", "command": "python", "args": ["-c", code]},
        "policy_overrides": {"stdout": "64K", "stderr": "32K"},
    });
    let id = client.begin(&body);
    let events = all(&client, &id, 0);
    assert_whole(&events);
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(output(&events, "stdout"), bytes.repeat(40));
    assert_eq!(
        client.get(&format!("/v1/execs/{id}/stdout")).body,
        bytes.repeat(40)
    );
    let kept = "ü€😀".repeat(100 * 300).into_bytes()[..32 << 10].to_vec();
    assert_eq!(output(&events, "stderr"), kept);
    let markers: Vec<_> = events
        .iter()
        .filter(|it| it.data["truncated"] == true)
        .collect();
    assert_eq!(markers.len(), 1, "{markers:?}");
    assert_eq!(markers[0].data["stream"], "stderr");
    let record = client.record(&id);
    assert_eq!(record["stderr_truncated"], true);
    assert_eq!(record["stdout_truncated"], false);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_client_that_goes_away_changes_nothing() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = Start::default().on(&trial);
    let client = server.client();
    let body = with(
        sh(&format!("touch here; {}; echo done", gate.wait())),
        json!({"client_id": "left-alone", "wait": true}),
    )
    .to_string();
    let request = format!(
        "POST /v1/execs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    let mut connection = client.connect().unwrap();
    std::io::Write::write_all(&mut connection, request.as_bytes()).unwrap();
    let runs = wait_until(std::time::Duration::from_secs(60), || {
        gate.file("here").is_some()
    });
    assert!(runs, "it does not start");
    // One reads events, one waits for the answer; both are gone in the middle.
    let mut stream = client.events("left-alone", 0).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().data["status"], "running");
    drop(stream);
    drop(connection);
    gate.open();
    let record = client.ended("left-alone");
    assert_eq!(record["status"], "succeeded", "{record}");
    assert_eq!(record["stdout"], "done\n");
    let events = all(&client, "left-alone", 0);
    assert_whole(&events);
    assert_eq!(output(&events, "stdout"), b"done\n");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_cancel_ends_the_stream_once_and_changes_no_end() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = Start::default().on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 1}));
    let runs = client.begin(&sh(&format!("echo here; {}", gate.wait())));
    let waits = client.begin(&sh("touch it-ran"));
    let mut stream = client.events(&runs, 0).unwrap();
    for _ in 0..2 {
        stream.next().unwrap().unwrap();
    }

    // One that waits is canceled at once, and never runs.
    let canceled = client.cancel(&waits);
    assert_eq!(canceled["status"], "canceled", "{canceled}");
    assert!(canceled["receipt"]["seq"].is_u64(), "{canceled}");
    let events = all(&client, &waits, 0);
    assert_whole(&events);
    let states: Vec<_> = events.iter().map(|event| &event.data["status"]).collect();
    assert_eq!(states, ["queued", "canceled"]);

    // Two at once, by another token than the one that reads.
    let other = server.client_of(&server.token_of("admin", "local", "other"));
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                both.wait();
                other.cancel(&runs)
            });
        }
    });
    let end = stream.last().unwrap().unwrap();
    assert_eq!(end.data["status"], "canceled");
    let events = all(&client, &runs, 0);
    assert_whole(&events);
    let record = client.ended(&runs);
    assert_eq!(record["status"], "canceled", "{record}");

    // Its place is free, and the one that was canceled is not given it.
    let next = client.post("/v1/execs", &sh("ls"));
    assert_eq!(next.json()["stdout"], "", "{}", next.text());
    for id in [&runs, &waits] {
        let before = client.record(id);
        assert_eq!(client.cancel(id), before);
        assert_eq!(client.record(id), before);
    }
    let ended = client.post("/v1/execs", &sh("exit 3")).json();
    let id = ended["exec_id"].as_str().unwrap();
    assert_eq!(client.cancel(id), ended);
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
