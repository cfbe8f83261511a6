//! Two servers on one PostgreSQL, each with a state directory of its own, as on two machines. One is
//! killed under load: what it had running is lost and said to be, what waited is run by the other,
//! once, and nothing that either acknowledged is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Client, Database, Start, Trial, wait_until};

/// A server is dead that gave no sign of life for so long: far more than a loaded machine holds one up.
pub(crate) const LEASE: Duration = Duration::from_secs(6);
/// The lease of a dead server, what another needs to notice, and a loaded machine.
const TAKEN_OVER: Duration = Duration::from_secs(90);

/// Fewer than may wait at one server: nobody is to be sent away here.
const MOST: u64 = 160;

fn body(id: &str) -> Value {
    json!({
        "project_id": "both",
        "client_id": id,
        "exec": {
            "kind": "argv", "command": "sh",
            "args": ["-c", format!("echo {id} >> log; sleep 0.1")],
        },
        "wait": false,
    })
}

fn ask(client: &Client, id: &str) -> Option<Value> {
    let client = client.clone().with("Idempotency-Key", id);
    let answer = client.try_send("POST", "/v1/execs", Some(&body(id))).ok()?;
    matches!(answer.status, 200 | 202).then(|| answer.json())
}

#[test]
fn one_of_two_is_killed_and_nothing_is_lost_or_run_twice() {
    let Some(database) = Database::new() else {
        return;
    };
    let (one, two) = (
        Trial::in_memory(Caller::Root).unwrap(),
        Trial::in_memory(Caller::Root).unwrap(),
    );
    let keys = tempfile::tempdir().unwrap();
    let start = Start::default().patience("lease", LEASE).with([
        "--database",
        database.url(),
        "--keys-dir",
        keys.path().to_str().unwrap(),
    ]);
    let mut first = start.on(&one);
    let mut second = start.on(&two);

    let over = Arc::new(AtomicBool::new(false));
    let numbers = Arc::new(AtomicU64::new(0));
    let told: Arc<Mutex<BTreeMap<String, Option<Value>>>> = Arc::default();
    // One token for both: a key is remembered for who sent it.
    let token = first.token_of("agent", "local", "both");
    let loads: Vec<_> = [first.client_of(&token), second.client_of(&token)]
        .into_iter()
        .cycle()
        .take(8)
        .map(|client| {
            let (over, numbers, told) =
                (Arc::clone(&over), Arc::clone(&numbers), Arc::clone(&told));
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    if number >= MOST {
                        return;
                    }
                    let id = format!("x{number}");
                    let answer = ask(&client, &id);
                    told.lock().unwrap().insert(id, answer);
                }
            })
        })
        .collect();
    let loaded = wait_until(Duration::from_secs(60), || {
        // The first has some that run and some that wait.
        let Ok(answer) = first
            .client()
            .try_send("GET", "/v1/execs?status=queued&limit=5", None)
        else {
            return false;
        };
        answer.json()["items"]
            .as_array()
            .is_some_and(|items| items.len() == 5)
    });
    assert!(loaded, "{}", first.said());
    first.kill();
    over.store(true, Ordering::Relaxed);
    for load in loads {
        load.join().unwrap();
    }

    let client = second.client_of(&token);
    let ids: Vec<String> = told.lock().unwrap().keys().cloned().collect();
    for id in &ids {
        let unanswered = told.lock().unwrap()[id].is_none();
        if unanswered {
            let answered = wait_until(Duration::from_secs(60), || {
                let answer = ask(&client, id);
                let came = answer.is_some();
                told.lock().unwrap().insert(id.clone(), answer);
                came
            });
            assert!(answered, "{id} gets no answer:\n{}", second.said());
        }
    }
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for (id, answer) in told.lock().unwrap().iter() {
        let before = answer.as_ref().unwrap();
        let mut now = Value::Null;
        let ended = wait_until(TAKEN_OVER, || {
            let answer = client.get(&format!("/v1/execs/{id}"));
            assert_eq!(answer.status, 200, "{id} is lost: {}", answer.text());
            now = answer.json();
            !matches!(now["status"].as_str(), Some("queued" | "running"))
        });
        assert!(ended, "{id} is stuck: {now}");
        assert_eq!(now["exec_id"], before["exec_id"], "{id}");
        let status = now["status"].as_str().unwrap().to_owned();
        *statuses.entry(status).or_default() += 1;
    }
    let logs: String = [&one, &two]
        .map(|trial| trial.state().join("projects/both/work/log"))
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let mut ran = BTreeSet::new();
    for id in logs.lines() {
        assert!(ran.insert(id), "{id} ran twice");
    }
    let verified = second.client().get("/v1/audit/verify");
    assert_eq!(verified.status, 200, "{}", verified.text());
    assert_eq!(
        verified.json()["problems"],
        json!([]),
        "{}",
        verified.text()
    );
    println!(
        "{} execs on two servers, one killed: {statuses:?}",
        ids.len()
    );
    // At most those that ran when it was killed.
    assert!(
        statuses.get("lost").copied().unwrap_or(0) <= 4,
        "{statuses:?}"
    );
    assert_eq!(second.stop(), 0);
    two.end();
    // Whoever comes next to the dead server's machine takes down what it left there.
    let again = start.on(&one);
    assert_eq!(again.stop(), 0);
    one.end();
}
