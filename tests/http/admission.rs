//! Who runs, who waits and who is sent away, under load and while the limits change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use support::{Caller, Client, Gate, Trial, is_final, sh, wait_until, with};

use crate::pool_fire::{PATIENT, SOON, serve};

/// Its word in the arguments is how a payload is known on the host.
fn tagged(script: &str, tag: &str) -> Value {
    with(sh(script), json!({"exec": {"args": ["-c", script, tag]}}))
}

/// A process that runs now, told apart from a later one with its number.
type Process = (u32, String);

fn payloads(tag: &str) -> BTreeSet<Process> {
    let listed = fs::read_dir("/proc").unwrap().flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let tagged = pids.filter_map(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = words.split(|byte| *byte == 0);
        words.any(|it| it == tag.as_bytes()).then_some(())?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let (parent, begun) = (fields.get(1)?.parse().ok()?, fields.get(19)?);
        Some((pid, (parent, (*begun).to_owned())))
    });
    let tagged: BTreeMap<u32, (u32, String)> = tagged.collect();
    // A shell that is about to start a program is there twice for a moment.
    let first = tagged
        .iter()
        .filter(|(_, (parent, _))| !tagged.contains_key(parent));
    first
        .map(|(pid, (_, begun))| (*pid, begun.clone()))
        .collect()
}

/// How many are certainly alive at one instant: seen before it and after it.
fn alive_at_once(tag: &str) -> usize {
    payloads(tag).intersection(&payloads(tag)).count()
}

/// The most that were alive at one instant while it did that.
fn most_alive<T>(tag: &str, doing: impl FnOnce(&AtomicUsize) -> T) -> (usize, T) {
    let (most, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(alive_at_once(tag), Ordering::Relaxed);
            }
        });
        let done = doing(&most);
        over.store(true, Ordering::Relaxed);
        done
    });
    (most.into_inner(), done)
}

fn running(client: &Client) -> usize {
    let page = client.get("/v1/execs?status=running&limit=100").json();
    page["items"].as_array().unwrap().len()
}

#[test]
fn one_above_the_cap_waits_and_one_above_the_queue_is_sent_away() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let start = serve(&trial, PATIENT);
    let mut server = start.on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 2, "max_queued": 3}));
    let body = |word: &str| sh(&format!("echo {word} >> log; {}", gate.wait()));
    let first: Vec<String> = (0..2)
        .map(|n| client.begin(&body(&format!("r{n}"))))
        .collect();
    let mut waiting = Vec::new();
    for position in 0..3 {
        let more = json!({"wait": false, "client_id": format!("q{position}")});
        let answer = client.post("/v1/execs", &with(body(&format!("q{position}")), more));
        assert_eq!(answer.status, 202, "{}", answer.text());
        let record = answer.json();
        assert_eq!(record["status"], "queued");
        assert_eq!(record["queue_position"], position);
        waiting.push(record["exec_id"].as_str().unwrap().to_owned());
    }
    for (position, id) in waiting.iter().enumerate() {
        assert_eq!(client.record(id)["queue_position"], position);
    }
    for wait in [true, false] {
        let away = client.post("/v1/execs", &with(body("never"), json!({"wait": wait})));
        assert_eq!((away.status, away.code().as_str()), (429, "rate_limited"));
        let after: u64 = away.header("retry-after").unwrap().parse().unwrap();
        let retry = away.json()["error"]["retry"].clone();
        assert!(after >= 1 && retry["allowed"] == true, "{}", away.text());
        assert!(
            retry["after_ms"].as_u64().unwrap() >= 1000,
            "{}",
            away.text()
        );
    }
    // Full and at work, it still answers what is not work.
    let asked = Instant::now();
    assert_eq!(client.get("/healthz").status, 200);
    let is_ready = || client.get("/readyz").status == 200;
    assert!(wait_until(SOON, is_ready), "not ready");
    assert_eq!(client.get("/sandbox/health").json()["queued"], 3);
    assert_eq!(client.cancel(&waiting[0])["status"], "canceled");
    // Those who run would keep it waiting until they are killed.
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    assert_eq!(client.record(&waiting[1])["queue_position"], 0);
    // The place in the queue is free again.
    let last = client.begin(&body("q3"));
    assert_eq!(client.record(&last)["queue_position"], 2);

    let both = || gate.file("log").is_some_and(|log| log.lines().count() == 2);
    assert!(wait_until(SOON, both), "not both run");
    // What waits is still there after a crash, and runs once.
    server.kill();
    let server = start.on(&trial);
    let client = server.client();
    for id in &first {
        assert_eq!(client.ended(id)["status"], "lost");
    }
    gate.open();
    for id in [&waiting[1], &waiting[2], &last] {
        let record = client.ended(id);
        assert_eq!(record["status"], "succeeded", "{record}");
    }
    assert_eq!(client.record(&waiting[0])["status"], "canceled");
    assert_eq!(client.ended("q1")["exec_id"], waiting[1]);
    let log = gate.file("log").unwrap();
    let mut ran: Vec<&str> = log.lines().collect();
    ran.sort_unstable();
    assert_eq!(ran, ["q1", "q2", "q3", "r0", "r1"]);
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_space_that_floods_keeps_no_other_waiting() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::in_space(&trial, "a", "gate");
    let server = serve(&trial, PATIENT).on(&trial);
    let operator = server.client();
    operator.set(&json!({"max_concurrent_execs": 1}));
    let a = server.client_of(&server.token_of("agent", "a", "a"));
    let b = server.client_of(&server.token_of("agent", "b", "b"));
    let held = a.begin(&sh(&gate.wait()));
    let flood: Vec<String> = (0..20).map(|_| a.begin(&sh("sleep 0.05"))).collect();
    let guest = b.begin(&sh("true"));
    // It is not told what goes on in other spaces.
    assert_eq!(b.record(&guest)["queue_position"], 0);
    gate.open();
    let guest = b.ended(&guest);
    a.ended(&held);
    let started = |record: &Value| record["started_at"].as_str().unwrap().to_owned();
    let before = flood
        .iter()
        .filter(|id| started(&a.ended(id)) < started(&guest))
        .count();
    assert!(before <= 1, "{before} of the flood went before");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn limits_that_change_under_load_are_never_exceeded() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let tag = &format!("payload-of-{}", trial.tag());
    let (first, second, third) = (
        Gate::new(&trial, "first"),
        Gate::new(&trial, "second"),
        Gate::new(&trial, "third"),
    );
    let server = serve(&trial, PATIENT).on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 8}));
    // With eight at work, it goes down to two: nobody is stopped, and nobody starts.
    let (most, held) = most_alive(tag, |_| {
        let script = |n: usize| match n {
            0..6 => first.wait(),
            _ => second.wait(),
        };
        let held: Vec<_> = (0..8)
            .map(|n| client.begin(&tagged(&script(n), tag)))
            .collect();
        assert!(
            wait_until(SOON, || alive_at_once(tag) == 8),
            "not all eight run"
        );
        held
    });
    assert!(most <= 8, "{most} at once with a limit of 8");
    let queued: Vec<_> = (0..24)
        .map(|_| client.begin(&tagged("sleep 0.05", tag)))
        .collect();
    client.set(&json!({"max_concurrent_execs": 2}));
    first.open();
    for id in &held[..6] {
        assert_eq!(client.ended(id)["status"], "succeeded");
    }
    let (most, ()) = most_alive(tag, |most| {
        // The two that are left take both places.
        assert!(
            queued
                .iter()
                .all(|id| client.record(id)["status"] == "queued")
        );
        let seen = || most.load(Ordering::Relaxed) >= 2;
        assert!(wait_until(SOON, seen), "the two were not seen");
        second.open();
        for id in &queued[..8] {
            assert_eq!(client.ended(id)["status"], "succeeded");
        }
    });
    assert_eq!(most, 2, "at once with a limit of 2");
    // Up again, and down and up while they come and go: eight and no more.
    let (most, ()) = most_alive(tag, |most| {
        let held: Vec<_> = (0..12)
            .map(|_| client.begin(&tagged(&third.wait(), tag)))
            .collect();
        for limit in [8, 2, 5, 3, 8] {
            client.set(&json!({"max_concurrent_execs": limit}));
        }
        assert!(
            wait_until(SOON, || most.load(Ordering::Relaxed) >= 8),
            "eight never ran at once"
        );
        assert!(running(&client) <= 8);
        third.open();
        for id in held.iter().chain(&queued) {
            assert_eq!(client.ended(id)["status"], "succeeded");
        }
    });
    assert_eq!(most, 8);
    let above = client.send(
        "PATCH",
        "/v1/settings",
        Some(&json!({"max_concurrent_execs": 17})),
    );
    assert_eq!(above.status, 403, "above the ceiling: {}", above.text());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_user_and_a_space_have_limits_of_their_own() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = serve(&trial, PATIENT).on(&trial);
    let client = server.client();
    client.set(&json!({
        "max_concurrent_execs": 8,
        "max_concurrent_per_space": 3,
        "max_concurrent_per_user": 1,
        "max_queued_per_space": 2,
    }));
    let of = |user: &str| with(sh(&gate.wait()), json!({"task_ref": {"user_id": user}}));
    let begun = ["ann", "ann", "bob", "eve", "joe"].map(|user| client.begin(&of(user)));
    let waits = |id: &str| client.record(id)["status"] == "queued";
    let states = begun.each_ref().map(|id| waits(id));
    // Ann has one already, and with Eve the space has three.
    assert_eq!(states, [false, true, false, false, true]);
    let away = client.post("/v1/execs", &of("kim"));
    assert_eq!((away.status, away.code().as_str()), (429, "rate_limited"));
    // Another space has places of its own.
    let guest = server.client_of(&server.token_of("agent", "guests", "g"));
    let ran = guest.post(
        "/v1/execs",
        &with(sh("true"), json!({"task_ref": {"user_id": "ann"}})),
    );
    assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
    gate.open();
    for id in &begun {
        assert_eq!(client.ended(id)["status"], "succeeded");
    }
    assert!(is_final(&client.record(&begun[1])));
    assert_eq!(server.stop(), 0);
    trial.end();
}
