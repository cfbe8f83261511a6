//! Kept sandboxes under fire: many clients on few sandboxes, their first process killed, the server
//! killed, two servers that both want one; and what becomes of those that nobody wants, or that
//! policy would make otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, Database, Start, Trial, is_final, wait_until, with};

use crate::pool_fire::{Dice, PATIENT, SOON, blame, fire, named, serve};
use crate::two_servers::LEASE;

/// So many turns show that they are taken.
const ENOUGH: u64 = 20;

/// Only kept sandboxes stand.
const ALONE: &str = "[pool]\nenabled = false\n";

/// A script in the sandbox of this agent.
pub(crate) fn of_agent(agent: &str, script: &str) -> Value {
    json!({
        "exec": {"kind": "argv", "command": "sh", "args": ["-c", script]},
        "task_ref": {"agent_id": agent},
        "sandbox": {"lifetime": "agent"},
    })
}

pub(crate) fn rows(client: &Client) -> Vec<Value> {
    let answer = client.get("/v1/sandboxes");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["items"].as_array().expect("a list").clone()
}

#[track_caller]
pub(crate) fn row(client: &Client, agent: &str) -> Value {
    let mut rows = rows(client);
    rows.retain(|row| row["scope"] == agent);
    assert_eq!(rows.len(), 1, "{agent}: {rows:?}");
    rows.remove(0)
}

/// The row once it is so: a sandbox is given back a moment after the record of its exec is there.
#[track_caller]
pub(crate) fn row_when(client: &Client, agent: &str, state: &str) -> Value {
    let mut last = Value::Null;
    let came = wait_until(SOON, || {
        last = row(client, agent);
        last["state"] == state
    });
    assert!(came, "not `{state}`: {last}");
    last
}

#[track_caller]
pub(crate) fn runs(client: &Client, body: &Value) -> Value {
    let answer = client.post("/v1/execs", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = answer.json();
    assert_eq!(record["status"], "succeeded", "{record}");
    record
}

fn said(record: &Value) -> &str {
    record["stdout"].as_str().unwrap_or_default().trim()
}

/// The code of an exec's error, wherever it is told.
pub(crate) fn code(client: &Client, body: &Value) -> String {
    let answer = client.post("/v1/execs", body);
    match answer.status {
        200 => {
            let record = answer.json();
            record["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }
        _ => answer.code(),
    }
}

#[test]
fn sixteen_clients_take_turns_in_three_sandboxes() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = format!("{ALONE}[sandbox]\nacquire_timeout = \"2s\"\n");
    let server = serve(&trial, &config).on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 16}));
    let began = Instant::now();
    // A disk that is busy elsewhere makes every turn long: it goes on until there were enough of them.
    let succeeded = Arc::new(AtomicU64::new(0));
    let taken_on: Arc<Mutex<BTreeMap<String, (String, String)>>> = Arc::default();
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let (client, taken_on) = (server.client(), Arc::clone(&taken_on));
            let succeeded = Arc::clone(&succeeded);
            thread::spawn(move || {
                let mut dice = Dice::new(number + 100);
                for round in 0.. {
                    let enough = succeeded.load(Ordering::Relaxed) >= ENOUGH;
                    let patience = if enough { fire() } else { SOON };
                    if began.elapsed() >= patience {
                        return;
                    }
                    let (word, agent) = (format!("w{number}r{round}"), format!("a{}", number % 3));
                    // A canceled one cannot tidy up, so it does not take part in the count.
                    let body = match dice.below(6) {
                        0 => of_agent(&agent, &format!("echo {word}; sleep 60")),
                        _ => of_agent(
                            &agent,
                            &format!("mkdir inside || echo OVERLAP; echo {word}; sleep 0.02; rmdir inside"),
                        ),
                    };
                    let is_long = body.to_string().contains("sleep 60");
                    let id = client.begin(&body);
                    taken_on.lock().unwrap().insert(id.clone(), (word, agent));
                    if is_long {
                        // While it waits for its turn, or while it runs.
                        thread::sleep(Duration::from_millis(dice.below(300)));
                        client.cancel(&id);
                    }
                    let record = client.record_when(&id, is_final);
                    let well = record["status"] == "succeeded";
                    succeeded.fetch_add(u64::from(well), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client");
    }
    let taken_on = taken_on.lock().unwrap();
    let (mut ends, mut began) = (BTreeMap::new(), BTreeMap::new());
    for (id, (word, agent)) in taken_on.iter() {
        let record = client.record(id);
        assert_eq!(blame(&record, word), None);
        let mut end = record["status"].as_str().unwrap_or_default().to_owned();
        if end == "error" {
            end = record["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert!(["busy", "canceled"].contains(&end.as_str()), "{record}");
        }
        *began.entry(agent.clone()).or_insert(0) += u64::from(end == "succeeded");
        *ends.entry(end).or_insert(0) += 1;
    }
    println!("{} execs in three sandboxes: {ends:?}", taken_on.len());
    let well = ends.get("succeeded");
    assert!(well.is_some_and(|count| *count >= ENOUGH), "{ends:?}");
    for (agent, began) in began {
        let row = row_when(&client, &agent, "idle");
        assert_eq!(row["exec_id"], Value::Null, "{row}");
        assert!(row["uses"].as_u64() >= Some(began), "{began}: {row}");
    }
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn one_whose_first_process_was_killed_comes_back() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = serve(&trial, ALONE)
        .patience("care", Duration::from_millis(500))
        .on(&trial);
    let client = server.client();
    runs(
        &client,
        &of_agent("ann", "echo kept > file; echo gone > /tmp/file"),
    );
    let before = row(&client, "ann");
    for target in ["glovebox-init", "glovebox-keeper"] {
        // Idle: nobody is told but whoever looks.
        // All of that name: one that is on its way out may still be found beside it.
        let found = named(server.pid(), target);
        let killed = found.iter().filter(|it| it.kill()).count();
        assert_ne!(killed, 0, "no {target}");
        row_when(&client, "ann", "down");
        let record = runs(
            &client,
            &of_agent("ann", "cat file; cat /tmp/file 2>&- || echo fresh"),
        );
        assert_eq!(said(&record), "kept\nfresh");
        // With an exec in it.
        let id = client.begin(&of_agent("ann", "echo in; sleep 60"));
        client.record_when(&id, |record| record["status"] == "running");
        client.events(&id, 0).unwrap().nth(1).unwrap().unwrap();
        let busy = row_when(&client, "ann", "busy");
        assert_eq!(busy["exec_id"], json!(id));
        let found = named(server.pid(), target);
        assert_ne!(found.iter().filter(|it| it.kill()).count(), 0);
        let record = client.ended(&id);
        assert_eq!(blame(&record, "in"), None);
        assert_eq!(record["status"], "error", "{record}");
        let fallen = row_when(&client, "ann", "down");
        assert!(!fallen["trouble"].is_null(), "{fallen}");
        let record = runs(&client, &of_agent("ann", "cat file; echo new > /tmp/file"));
        assert_eq!(said(&record), "kept");
        let now = row_when(&client, "ann", "idle");
        assert_eq!(now.get("trouble"), None, "{now}");
        assert_eq!(now["sandbox_id"], before["sandbox_id"]);
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_killed_server_leaves_rows_that_are_down_and_used_again() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let start = serve(&trial, ALONE);
    let mut server = start.on(&trial);
    for agent in ["ann", "bob"] {
        runs(&server.client(), &of_agent(agent, "echo kept > file"));
    }
    let before = row(&server.client(), "ann");
    let id = server.client().begin(&of_agent("bob", "echo in; sleep 60"));
    server
        .client()
        .record_when(&id, |record| record["status"] == "running");
    server.kill();
    let server = start.on(&trial);
    let client = server.client();
    assert_eq!(client.ended(&id)["status"], "lost");
    for agent in ["ann", "bob"] {
        let row = row(&client, agent);
        assert_eq!(
            (&row["state"], &row["exec_id"]),
            (&json!("down"), &Value::Null),
            "{row}"
        );
        assert_eq!(said(&runs(&client, &of_agent(agent, "cat file"))), "kept");
    }
    let after = row_when(&client, "ann", "idle");
    for field in ["sandbox_id", "name", "config_hash", "created_at"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn two_servers_never_have_one_in_common() {
    let Some(database) = Database::new() else {
        return;
    };
    let trials = [(); 2].map(|()| Trial::in_memory(Caller::Root).unwrap());
    let keys = tempfile::tempdir().unwrap();
    let start = |trial: &Trial| {
        let keys = keys.path().to_str().unwrap();
        let config = format!("{ALONE}[sandbox]\nacquire_timeout = \"1s\"\n");
        serve(trial, &config).patience("lease", LEASE).with([
            "--database",
            database.url(),
            "--keys-dir",
            keys,
        ])
    };
    let starts: [Start; 2] = [start(&trials[0]), start(&trials[1])];
    let mut first = starts[0].on(&trials[0]);
    let second = starts[1].on(&trials[1]);
    let (one, two) = (first.client(), second.client());
    // Both at once: one of them has it, and it stays that one.
    let body = of_agent("ann", "echo here");
    let raced: Vec<_> = [&one, &two]
        .map(|client| {
            let (client, body) = (client.clone(), body.clone());
            thread::spawn(move || code(&client, &body))
        })
        .map(|asked| asked.join().unwrap())
        .into();
    let won = raced.iter().filter(|code| code.is_empty()).count();
    assert_eq!(won, 1, "{raced:?}");
    let lost = raced.iter().find(|code| !code.is_empty());
    assert_eq!(lost.map(String::as_str), Some("busy"));
    // For the rest it is to be the first one's.
    let body = of_agent("bob", "echo here");
    runs(&one, &body);
    for _ in 0..10 {
        assert_eq!(code(&two, &body), "busy");
        let removal = two.send(
            "DELETE",
            &format!("/v1/sandboxes/{}", name(&one, "bob")),
            None,
        );
        assert_eq!(removal.code(), "busy", "{}", removal.text());
        runs(&one, &body);
    }
    assert_eq!(
        row(&two, "bob")["sandbox_id"],
        row(&one, "bob")["sandbox_id"]
    );
    first.kill();
    // The lease of the dead one, and what the other needs to notice.
    let taken_over = wait_until(Duration::from_secs(90), || code(&two, &body).is_empty());
    assert!(taken_over, "it is nobody's: {}", row(&two, "bob"));
    let again = starts[0].on(&trials[0]);
    assert_eq!(code(&again.client(), &body), "busy");
    runs(&two, &body);
    two.verify_ledger();
    assert_eq!(second.stop(), 0);
    // A server that goes in peace leaves it to anybody at once.
    runs(&again.client(), &body);
    assert_eq!(again.stop(), 0);
    trials.into_iter().for_each(Trial::end);
}

fn name(client: &Client, agent: &str) -> String {
    row(client, agent)["name"]
        .as_str()
        .expect("a name")
        .to_owned()
}

/// Something on a directory that makes its removal impossible, until dropped.
struct Nailed(PathBuf);

impl Nailed {
    fn down(path: PathBuf) -> Self {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=4k", "nailed"])
            .arg(&path);
        assert!(mount.status().expect("mount").success(), "{path:?}");
        Self(path)
    }
}

impl Drop for Nailed {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn pruned(client: &Client) -> Value {
    let answer = client.send("POST", "/v1/sandboxes/prune", None);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Who is removed and who could not be, until these are: one that is being looked at just then is left
/// to the next time.
fn pruned_until(client: &Client, wanted: &[&String]) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut removed: BTreeSet<String> = BTreeSet::new();
    let mut failed: BTreeSet<String> = BTreeSet::new();
    let name = |it: &Value| it.as_str().expect("a name").to_owned();
    let came = wait_until(SOON, || {
        let done = pruned(client);
        removed.extend(done["removed"].as_array().unwrap().iter().map(name));
        let troubles = done["failed"].as_array().unwrap().iter();
        failed.extend(troubles.map(|it| name(&it["name"])));
        let is_told = |it: &&String| removed.contains(*it) || failed.contains(*it);
        wanted.iter().all(is_told)
    });
    assert!(
        came,
        "of {wanted:?}: removed {removed:?}, failed {failed:?}"
    );
    (removed, failed)
}

/// So much older than a second that a loaded machine cannot be the reason.
fn older(client: &Client, agents: &[&str], field: &str) {
    let grown = wait_until(SOON, || {
        agents.iter().all(|agent| {
            let row = row(client, agent);
            let then: jiff::Timestamp = row[field].as_str().unwrap().parse().unwrap();
            jiff::Timestamp::now().duration_since(then).as_secs() >= 2
        })
    });
    assert!(grown);
}

#[test]
fn pruning_takes_what_is_idle_or_old_and_one_failure_stops_nothing() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = format!("{ALONE}{PATIENT}[sandbox]\nprune_idle = \"1s\"\nprune_age = 0\n");
    let server = serve(&trial, &config).on(&trial);
    let client = server.client();
    for agent in ["idle", "stuck", "busy", "fresh"] {
        runs(&client, &of_agent(agent, "touch file"));
    }
    let held = client.begin(&of_agent(
        "busy",
        "echo in; while [ ! -e go ]; do sleep 0.05; done",
    ));
    row_when(&client, "busy", "busy");
    older(&client, &["idle", "stuck", "busy", "fresh"], "last_used_at");
    let id = row(&client, "stuck")["sandbox_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let nailed = Nailed::down(find(&trial.state(), &id));
    let stuck = name(&client, "stuck");
    let idle = name(&client, "idle");
    let (fresh, used) = (name(&client, "fresh"), Instant::now());
    runs(&client, &of_agent("fresh", "true"));
    let (mut removed, failed) = pruned_until(&client, &[&idle, &stuck]);
    // On a busy disk it may have become as idle as the other before it was looked at.
    if used.elapsed() >= Duration::from_secs(1) && removed.remove(&fresh) {
        runs(&client, &of_agent("fresh", "true"));
    }
    assert_eq!(removed, BTreeSet::from([idle.clone()]));
    assert_eq!(failed, BTreeSet::from([stuck.clone()]));
    assert_eq!(row(&client, "busy")["state"], "busy");
    row_when(&client, "fresh", "idle");
    drop(nailed);
    fs::write(trial.state().join("projects/agent-busy/work/go"), "").unwrap();
    assert_eq!(client.ended(&held)["status"], "succeeded");
    row_when(&client, "busy", "idle");
    older(&client, &["busy", "fresh"], "last_used_at");
    let busy = name(&client, "busy");
    let (removed, failed) = pruned_until(&client, &[&stuck, &busy, &fresh]);
    assert_eq!(removed, BTreeSet::from([stuck, busy, fresh]));
    assert_eq!(failed, BTreeSet::new());
    assert_eq!(rows(&client), Vec::<Value>::new());
    // Its workspace stays.
    let record = runs(&client, &of_agent("idle", "ls"));
    assert_eq!(said(&record), "file");
    assert_eq!(server.stop(), 0);

    let config = format!("{ALONE}{PATIENT}[sandbox]\nprune_idle = 0\nprune_age = \"1s\"\n");
    let server = serve(&trial, &config).on(&trial);
    let client = server.client();
    older(&client, &["idle"], "created_at");
    runs(&client, &of_agent("idle", "true"));
    let (removed, _) = pruned_until(&client, &[&idle]);
    assert_eq!(removed, BTreeSet::from([idle]));
    runs(&client, &of_agent("idle", "true"));
    older(&client, &["idle"], "created_at");
    assert_eq!(server.stop(), 0);

    let config = format!("{ALONE}{PATIENT}[sandbox]\nprune_idle = 0\nprune_age = 0\n");
    let server = serve(&trial, &config).on(&trial);
    let client = server.client();
    assert_eq!(pruned(&client), json!({"removed": [], "failed": []}));
    assert_eq!(rows(&client).len(), 1);
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// The directory of a sandbox below the state directory.
fn find(state: &std::path::Path, id: &str) -> PathBuf {
    let mut waiting = vec![state.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str() == Some(id) {
                return entry.path();
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    panic!("no directory of {id}");
}

#[test]
fn a_changed_configuration_keeps_what_is_hot_and_says_how_to_make_it_anew() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    // With something on disk, so that a restart does not make it nothing to lose.
    let config = |pids: u32, more: &str| {
        format!("{ALONE}[settings]\npids = {pids}\n[sandbox]\nkeep_root = true\n{more}")
    };
    let server = serve(&trial, &config(100, "")).on(&trial);
    let client = server.client();
    for agent in ["ann", "bob"] {
        runs(&client, &of_agent(agent, "true"));
    }
    // Narrower than what stands: neither of the two is right.
    let narrow = with(
        of_agent("ann", "true"),
        json!({"policy_overrides": {"pids": 50}}),
    );
    assert_eq!(code(&client, &narrow), "conflict");
    assert_eq!(server.stop(), 0);

    let server = serve(&trial, &config(200, "")).on(&trial);
    let client = server.client();
    let before = row(&client, "ann");
    let record = runs(&client, &of_agent("ann", "true"));
    let notes = record["notes"].to_string();
    assert!(notes.contains("sandbox recreate"), "{record}");
    assert_eq!(row(&client, "ann")["config_hash"], before["config_hash"]);
    // One that is made as policy wants it now is not meant.
    runs(&client, &of_agent("new", "true"));
    let done = client.post("/v1/sandboxes/recreate", &json!({"mismatched": true}));
    assert_eq!(done.status, 200, "{}", done.text());
    let done = done.json();
    let mut scopes: Vec<_> = done["recreated"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["scope"].to_string())
        .collect();
    scopes.sort();
    assert_eq!(scopes, ["\"ann\"", "\"bob\""], "{done}");
    assert_eq!(done["failed"], json!([]));
    let record = runs(&client, &of_agent("ann", "true"));
    assert_eq!(record.get("notes"), None, "{record}");
    assert_ne!(row(&client, "ann")["config_hash"], before["config_hash"]);
    let none = client
        .post("/v1/sandboxes/recreate", &json!({"mismatched": true}))
        .json();
    assert_eq!(none, json!({"recreated": [], "failed": []}));
    assert_eq!(server.stop(), 0);

    // Narrowed by the operator, and hot: refused. Cold: made anew without a word.
    let server = serve(&trial, &config(60, "")).on(&trial);
    assert_eq!(code(&server.client(), &of_agent("ann", "true")), "conflict");
    assert_eq!(server.stop(), 0);
    let server = serve(&trial, &config(60, "hot_window = 0\n")).on(&trial);
    let client = server.client();
    let record = runs(&client, &of_agent("ann", "true"));
    assert_eq!(record.get("notes"), None, "{record}");
    assert_eq!(row(&client, "ann")["config"]["limits"]["pids"], 60);
    assert_eq!(server.stop(), 0);
    trial.end();
}
