//! A server that is told to stop: first no new work, then patience, then a request, then force, and
//! all of it on record.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Caller, Client, Gate, Start, Trial, sh, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// What the ledger says about the last stop.
fn last_stop(client: &Client) -> Value {
    let page = client.get("/v1/audit?kind=administered&limit=50").json();
    let items = page["items"].as_array().unwrap();
    let stop = items
        .iter()
        .find(|it| it["body"].to_string().contains("server_stopped"));
    stop.unwrap_or_else(|| panic!("no stop in {page}"))["body"]["details"].clone()
}

#[test]
fn what_runs_may_end_and_what_waits_goes_on_after_the_next_start() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let mut server = Start::default().on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 1}));
    let runs = client.begin(&sh(&format!("echo here; {}; echo done", gate.wait())));
    let waits: Vec<_> = (0..3)
        .map(|n| client.begin(&sh(&format!("echo {n} >> log"))))
        .collect();
    let mut stream = client.events(&runs, 0).unwrap();
    assert_eq!(stream.nth(1).unwrap().unwrap().data["text"], "here\n");
    assert!(wait_until(SOON, || client.get("/readyz").status == 200));

    server.signal(Signal::TERM);
    // It says so first, while everybody who waits for an answer can still get it.
    assert!(
        wait_until(SOON, || client.get("/readyz").status == 503),
        "it is still ready"
    );
    assert_eq!(client.get("/readyz").code(), "shutting_down");
    assert_eq!(client.get("/healthz").status, 200);
    let late = client.post("/v1/execs", &sh("echo late >> log"));
    assert_eq!((late.status, late.code().as_str()), (503, "shutting_down"));
    assert!(late.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(client.record(&runs)["status"], "running");
    gate.open();
    let end = stream.last().unwrap().unwrap();
    assert_eq!(end.data["status"], "succeeded");
    assert_eq!(server.wait(SOON), 0);
    assert!(gate.file("log").is_none(), "one that waited was started");

    let server = Start::default().on(&trial);
    let client = server.client();
    assert_eq!(client.record(&runs)["stdout"], "here\ndone\n");
    assert_eq!(
        last_stop(&client),
        json!({"ended": 1, "stopped": 0, "killed": 0, "left": 0, "queued": 3})
    );
    for id in &waits {
        assert_eq!(client.ended(id)["status"], "succeeded");
    }
    assert_eq!(gate.file("log").as_deref(), Some("0\n1\n2\n"));
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn after_its_patience_it_asks_and_then_kills() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "never");
    let mut server = Start::default()
        .with(["--drain", "100ms"])
        .patience("grace", Duration::from_secs(2))
        .on(&trial);
    let client = server.client();
    let polite = format!("trap 'echo asked; exit 9' TERM; echo here; {}", gate.wait());
    let stubborn = format!("trap '' TERM; echo here; {}", gate.wait());
    let ids = [polite, stubborn].map(|script| client.begin(&sh(&script)));
    for id in &ids {
        let mut stream = client.events(id, 0).unwrap();
        assert_eq!(stream.nth(1).unwrap().unwrap().data["text"], "here\n");
    }
    let asked = Instant::now();
    server.signal(Signal::TERM);
    assert_eq!(server.wait(SOON), 0);
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}",
        asked.elapsed()
    );
    // What it said last may still be on its way through the pipe.
    let told = wait_until(SOON, || server.said().contains("killed"));
    assert!(told, "{}", server.said());

    let server = Start::default().on(&trial);
    let client = server.client();
    assert_eq!(
        last_stop(&client),
        json!({"ended": 0, "stopped": 1, "killed": 1, "left": 0, "queued": 0})
    );
    let [polite, stubborn] = ids.map(|id| client.ended(&id));
    assert_eq!(
        polite["stdout"], "here\nasked\n",
        "it was not asked: {polite}"
    );
    for record in [polite, stubborn] {
        assert_eq!(record["error"]["code"], "shutting_down", "{record}");
        assert_ne!(record["status"], "succeeded");
        assert!(record["receipt"]["seq"].is_u64(), "{record}");
    }
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_second_signal_does_not_wait_for_twenty() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "never");
    let mut server = Start::default().with(["--max-concurrent", "20"]).on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 20}));
    let ids: Vec<_> = (0..20)
        .map(|_| client.begin(&sh(&format!("trap '' TERM; touch $$; {}", gate.wait()))))
        .collect();
    for id in &ids {
        client.record_when(id, |record| record["status"] == "running");
    }
    server.signal(Signal::TERM);
    assert!(wait_until(SOON, || client.get("/readyz").status == 503));
    let asked = Instant::now();
    server.signal(Signal::TERM);
    assert_eq!(server.wait(SOON), 0);
    // Less than the patience, which is 30 s, and what asking would take after it.
    assert!(
        asked.elapsed() < Duration::from_secs(15),
        "{:?}",
        asked.elapsed()
    );
    trial.assert_nothing_is_left();

    let server = Start::default().on(&trial);
    let client = server.client();
    for id in &ids {
        let record = client.ended(id);
        assert_eq!(record["error"]["code"], "shutting_down", "{record}");
    }
    assert_eq!(last_stop(&client)["killed"], 20);
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
