//! The server is killed under load, at every stage of the path, again and again: nothing that it
//! acknowledged is lost, nothing runs twice, nothing is left, and the ledger verifies.
//!
//! `GLOVEBOX_TEST_KILLS=300` makes it long; otherwise each stage is killed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, Start, Trial, glovebox, wait_until};

const CLIENTS: u64 = 8;

/// Where a thread of the server stands when it is killed; `any` is wherever it happens to be.
const STAGES: [&str; 13] = [
    "resolve", "assess", "obtain", "reserve", "build", "admitted", "open", "admit", "run",
    "collect", "judge", "close", "any",
];

fn kills() -> Option<usize> {
    let given = std::env::var("GLOVEBOX_TEST_KILLS").ok();
    given.map(|text| text.parse().expect("a number"))
}

/// How many have passed when the next one stops there: the load has been on for longer and longer.
fn passing(number: usize) -> usize {
    match kills() {
        Some(_) => 8 + number % 29,
        None => 2 + number % 5,
    }
}

/// What one client was told, and what it never heard the end of.
#[derive(Debug, Default)]
struct Told {
    /// By the client's own id: the exec, and the record if it was final.
    acknowledged: BTreeMap<String, Value>,
    unanswered: BTreeSet<String>,
    /// Seen with its end after a restart; looked at again when all is over.
    settled: BTreeSet<String>,
}

/// Every payload writes its name, so that one that ran twice shows.
fn body(id: &str, number: u64) -> Value {
    let script = match number % 4 {
        0 => format!("echo {id} >> log"),
        1 => format!("echo {id} >> log; sleep 0.05"),
        2 => format!("echo {id} >> log; head -c 200000 /dev/zero | tr '\\0' x"),
        _ => format!("echo {id} >> log; echo {id} > /workspace/artifacts/it; exit 3"),
    };
    json!({
        "project_id": "kills",
        "client_id": id,
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
        "wait": !number.is_multiple_of(3),
    })
}

fn ask(client: &Client, id: &str, number: u64, told: &Mutex<Told>) {
    let client = client.clone().with("Idempotency-Key", format!("key-{id}"));
    let answer = client.try_send("POST", "/v1/execs", Some(&body(id, number)));
    let mut told = told.lock().unwrap();
    match answer {
        Ok(answer) if matches!(answer.status, 200 | 202) => {
            told.unanswered.remove(id);
            told.acknowledged.insert(id.to_owned(), answer.json());
        }
        Ok(answer) if answer.status == 503 || answer.status == 429 => {
            told.unanswered.insert(id.to_owned());
        }
        Ok(answer) => panic!("{id}: {} {}", answer.status, answer.text()),
        Err(_) => {
            told.unanswered.insert(id.to_owned());
        }
    }
}

struct House {
    trial: Trial,
    told: Arc<Mutex<Told>>,
    numbers: Arc<AtomicU64>,
}

impl House {
    /// Loads the server until it is to be killed there, and kills it.
    fn kill_at(&self, stage: &str, passing: usize) -> Duration {
        let mark = self.trial.home().join("reached");
        let _ = fs::remove_file(&mark);
        let start = Start::default().outside(
            "GLOVEBOX_PAUSE_AT",
            format!("{stage}#{passing}:{}", mark.display()),
        );
        let mut server = start.on(&self.trial);
        let ready = server.ready_after;
        let over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (client, over) = (server.client(), Arc::clone(&over));
                let (told, numbers) = (Arc::clone(&self.told), Arc::clone(&self.numbers));
                std::thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let number = numbers.fetch_add(1, Ordering::Relaxed);
                        ask(&client, &format!("c{number}"), number, &told);
                    }
                })
            })
            .collect();
        let begun = self.numbers.load(Ordering::Relaxed);
        let reached = wait_until(Duration::from_secs(120), || {
            mark.exists() || (stage == "any" && self.numbers.load(Ordering::Relaxed) > begun + 20)
        });
        assert!(reached, "nobody came to `{stage}`:\n{}", server.said());
        over.store(true, Ordering::Relaxed);
        server.kill();
        for client in clients {
            client.join().expect("a client");
        }
        ready
    }

    /// After a restart: everybody who got no answer asks again, and everything comes to an end.
    fn settle(&self, last: bool) {
        let server = Start::default().on(&self.trial);
        let client = server.client();
        let unanswered = std::mem::take(&mut self.told.lock().unwrap().unanswered);
        for id in &unanswered {
            let number = id[1..].parse().unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while !self.told.lock().unwrap().acknowledged.contains_key(id) {
                assert!(Instant::now() < deadline, "{id} gets no answer");
                ask(&client, id, number, &self.told);
            }
        }
        let mut told = self.told.lock().unwrap();
        told.unanswered.clear();
        if last {
            told.settled.clear();
        }
        drop(told);
        self.check(&client);
        assert_eq!(server.stop(), 0);
        self.trial.assert_nothing_is_left();
        self.verify();
    }

    /// Everything that was acknowledged is there, as it was told, and ends.
    fn check(&self, client: &Client) {
        let mut told = self.told.lock().unwrap();
        let told = &mut *told;
        let fresh = |(id, _): &(&String, &Value)| !told.settled.contains(*id);
        let mut settled = Vec::new();
        for (id, before) in told.acknowledged.iter().filter(fresh) {
            settled.push(id.clone());
            let mut now = Value::Null;
            let ended = wait_until(Duration::from_secs(60), || {
                let answer = client.get(&format!("/v1/execs/{id}"));
                assert_eq!(answer.status, 200, "{id} is lost: {}", answer.text());
                now = answer.json();
                !matches!(now["status"].as_str(), Some("queued" | "running"))
            });
            assert!(ended, "{id} is stuck: {now}");
            assert_eq!(now["exec_id"], before["exec_id"], "{id}");
            if !before["receipt"].is_null() {
                assert_eq!(now["receipt"], before["receipt"], "{id}");
                assert_eq!(now["status"], before["status"], "{id}");
            }
        }
        told.settled.extend(settled);
        let log = self.trial.state().join("projects/kills/work/log");
        let log = fs::read_to_string(log).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for id in log.lines() {
            assert!(seen.insert(id), "{id} ran twice");
        }
    }

    fn verify(&self) {
        let output = Command::new(glovebox())
            .arg("--state-dir")
            .arg(self.trial.state())
            .args(["audit", "verify"])
            .output()
            .expect("verify");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn killed_at_every_stage_under_load() {
    let house = House {
        trial: Trial::in_memory(Caller::Root).unwrap(),
        told: Arc::default(),
        numbers: Arc::default(),
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ready = Vec::new();
    let count = kills().unwrap_or(STAGES.len());
    for (number, stage) in STAGES.iter().cycle().take(count).enumerate() {
        ready.push(house.kill_at(stage, passing(number)));
        *counts.entry(stage).or_default() += 1;
        // Not after each: a restart over a restart's leftovers must do as well.
        if number % 3 == 2 || number + 1 == count {
            house.settle(number + 1 == count);
        }
    }
    ready.sort_unstable();
    let told = house.told.lock().unwrap();
    println!(
        "{count} kills {counts:?}; {} acknowledged records, 0 lost, 0 stuck, 0 run twice, 0 left; \
         ready again after {:?} (median), {:?} (worst)",
        told.acknowledged.len(),
        ready[ready.len() / 2],
        ready[ready.len() - 1]
    );
    drop(told);
    let House { trial, .. } = house;
    trial.end();
}
