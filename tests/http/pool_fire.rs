//! The pool under fire: many clients with many shapes, sandboxes that are killed where they stand,
//! clients that go away, and at last the spawner's death. Every exec has an honest end and its own
//! output, and nothing is left.
//!
//! `GLOVEBOX_TEST_FIRE_SECONDS=60` makes it long.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{
    Caller, Client, Gate, Response, Server, Start, Trial, is_final, sh, wait_until, with,
};

/// Anything here, on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// An exec that waits for its test has all the time that a server gives: a disk that is busy elsewhere
/// may cost the test more than the usual minute.
pub(crate) const PATIENT: &str = "[settings]\ntimeout = \"5m\"\n";

const CLIENTS: u64 = 64;

/// So many ends that were good, and so many processes killed, show that it was under fire.
const ENOUGH: u64 = 60;
const KILLED: u64 = 12;

pub(crate) fn fire() -> Duration {
    let given = std::env::var("GLOVEBOX_TEST_FIRE_SECONDS").ok();
    Duration::from_secs(given.map_or(2, |text| text.parse().expect("seconds")))
}

/// Numbers that look random and come again with the same seed.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// A server with this configuration.
pub(crate) fn serve(trial: &Trial, config: &str) -> Start {
    let path = trial.home().join("config.toml");
    fs::write(&path, config).expect("write the configuration");
    Start::default().outside("GLOVEBOX_CONFIG", path.to_str().expect("a path"))
}

/// Begins this, and waits until its program is at work: one that is said to run may still be on its
/// way into its sandbox and its workspace.
#[track_caller]
pub(crate) fn at_work(client: &Client, script: &str) -> String {
    let id = client.begin(&sh(&format!("echo in; {script}")));
    let said = client.events(&id, 0).unwrap().nth(1).unwrap().unwrap();
    assert_eq!(said.data["text"], "in\n", "{:?}", said.data);
    id
}

/// A process below the server: who it is, and what it calls itself.
#[derive(Debug)]
pub(crate) struct Below {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
}

impl Below {
    /// Only while it still is who it was.
    pub(crate) fn kill(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let is_same = facts(self.pid).is_some_and(|(_, name)| name == self.name);
        is_same && pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }
}

/// The parent and the name of a process that is not over.
fn facts(pid: u32) -> Option<(u32, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split(' ');
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    (state != "Z").then(|| (parent, name.to_owned()))
}

/// Everything that descends from this process.
pub(crate) fn below(root: u32) -> Vec<Below> {
    let all: BTreeMap<u32, (u32, String)> = fs::read_dir("/proc")
        .expect("list /proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, facts(pid)?)))
        .collect();
    let descends = |mut pid: u32| {
        while let Some((parent, _)) = all.get(&pid) {
            if *parent == root {
                return true;
            }
            pid = *parent;
        }
        false
    };
    all.iter()
        .filter(|(pid, _)| descends(**pid))
        .map(|(pid, (parent, name))| Below {
            pid: *pid,
            parent: *parent,
            name: name.clone(),
        })
        .collect()
}

pub(crate) fn named(root: u32, name: &str) -> Vec<Below> {
    // The kernel keeps so many characters of it.
    let kept = &name[..name.len().min(15)];
    let mut found = below(root);
    found.retain(|it| it.name == kept);
    found
}

fn python(code: &str) -> Value {
    json!({
        "project_id": "p",
        "exec": {"kind": "python", "command": "python3", "args": ["-c", code]},
    })
}

/// One of a handful of configurations and of a few programs; it prints its word and nothing else.
fn shot(dice: &mut Dice, word: &str) -> Value {
    let body = match dice.below(5) {
        0 => python(&format!("print('{word}')")),
        1 => python(&format!("import time; time.sleep(0.02); print('{word}')")),
        2 => sh(&format!("sleep 0.03; echo {word}")),
        _ => sh(&format!("echo {word}")),
    };
    match dice.below(3) {
        0 => body,
        _ => {
            let pids = 40 + dice.below(4);
            with(body, json!({"policy_overrides": {"pids": pids}}))
        }
    }
}

/// What is the matter with this end, if anything is. A process that was killed from outside may be
/// the cause, but nothing is made up, and nobody's output is another's.
pub(crate) fn blame(record: &Value, word: &str) -> Option<String> {
    let said = record["stdout"].as_str().unwrap_or_default();
    let own = format!("{word}\n");
    let status = record["status"].as_str().unwrap_or_default();
    let wrong = |why: &str| Some(format!("{why}: {record}"));
    if !(said.is_empty() || said == own) {
        return wrong("it says what is not its own");
    }
    if !record["limit_hit"].is_null() {
        return wrong("it met no limit");
    }
    match status {
        "succeeded" if record["exit_code"] == 0 && said == own => None,
        "succeeded" => wrong("it cannot have succeeded"),
        "canceled" => None,
        // The program itself was killed.
        "failed" if record["signal"] == 9 => None,
        "error" if !record["error"]["message"].is_null() && record["exit_code"].is_null() => None,
        _ => wrong("it has no honest end"),
    }
}

#[derive(Debug, Default)]
struct Shots {
    /// By exec id, what it was to say.
    taken_on: BTreeMap<String, String>,
    refused: BTreeMap<String, usize>,
    /// As far as they were waited for.
    succeeded: u64,
}

fn refused(answer: &Response) -> Option<String> {
    matches!(answer.status, 429 | 503).then(|| answer.code())
}

fn shoot(client: &Client, dice: &mut Dice, word: &str, shots: &Mutex<Shots>) {
    let style = dice.below(8);
    let body = with(shot(dice, word), json!({"wait": style < 5}));
    let answer = client.post("/v1/execs", &body);
    if let Some(code) = refused(&answer) {
        *shots.lock().unwrap().refused.entry(code).or_default() += 1;
        return;
    }
    assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
    let record = answer.json();
    let id = record["exec_id"].as_str().expect("an id").to_owned();
    let mut all = shots.lock().unwrap();
    all.taken_on.insert(id.clone(), word.to_owned());
    all.succeeded += u64::from(record["status"] == "succeeded");
    drop(all);
    if (5..7).contains(&style) {
        // Somewhere on its way: in the queue, while it is given its sandbox, while it runs.
        thread::sleep(Duration::from_millis(dice.below(60)));
        client.cancel(&id);
    }
}

/// Ends a process of some sandbox, again and again: those that wait for an exec among them.
fn sabotage(server: u32, over: &AtomicBool, killed: &AtomicU64) {
    let mut dice = Dice::new(7);
    while !over.load(Ordering::Relaxed) {
        let mut targets = below(server);
        targets.retain(|it| {
            ["glovebox-keeper", "glovebox-init", "python3"].contains(&it.name.as_str())
        });
        if !targets.is_empty() {
            let index = dice.below(targets.len() as u64);
            let target = &targets[usize::try_from(index).unwrap()];
            killed.fetch_add(u64::from(target.kill()), Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(20 + dice.below(60)));
    }
}

fn pool(client: &Client) -> Value {
    let answer = client.get("/v1/pool");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

const POOL: &str = r#"
[pool]
min = 4
max = 24
python = 3
acquire_timeout = "20ms"
"#;

/// Waits until as many stand as are to stand and nothing is being built.
fn settled(client: &Client, least: u64) -> Value {
    let mut stats = Value::Null;
    let calm = wait_until(SOON, || {
        stats = pool(client);
        stats["building"] == 0 && number(&stats["idle"]) >= least
    });
    assert!(calm, "the pool does not come to rest: {stats}");
    stats
}

/// All that wait are killed at once: whoever comes next is not given a dead one.
fn all_die_at_rest(server: &Server) {
    let client = server.client();
    for attempt in 0..20 {
        let before = settled(&client, 7);
        let waiting = named(server.pid(), "glovebox-init");
        for it in &waiting {
            it.kill();
        }
        let dead = wait_until(SOON, || waiting.iter().all(|it| facts(it.pid).is_none()));
        assert!(dead, "{waiting:?}");
        let word = format!("rest-{attempt}");
        let record = client
            .post("/v1/execs", &sh(&format!("echo {word}")))
            .json();
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(blame(&record, &word), None);
        // Unless the pool's own round has found them first.
        if number(&pool(&client)["dead_on_borrow"]) > number(&before["dead_on_borrow"]) {
            return;
        }
    }
    panic!("nobody was ever offered a dead one: {}", pool(&client));
}

/// Whatever an exec would take, it asks once.
fn each_counts_once(client: &Client) {
    let before = settled(client, 7);
    for round in 0..12 {
        let word = format!("once-{round}");
        let body = match round % 2 {
            0 => python(&format!("print('{word}')")),
            _ => sh(&format!("echo {word}")),
        };
        // Nothing stands yet of most of these.
        let body = with(body, json!({"policy_overrides": {"pids": 60 + round / 2}}));
        let record = client.post("/v1/execs", &body).json();
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(blame(&record, &word), None);
    }
    let stats = pool(client);
    let since = |field: &str| number(&stats[field]) - number(&before[field]);
    assert_eq!(since("hits") + since("misses"), 12, "{stats}");
}

#[test]
fn sixty_four_clients_while_sandboxes_are_killed_under_them() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = serve(&trial, POOL).on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 12}));
    let usual = settled(&client, 7)["shapes"].clone();
    each_counts_once(&client);
    all_die_at_rest(&server);
    let before = settled(&client, 7);

    let over = Arc::new(AtomicBool::new(false));
    let killed = Arc::new(AtomicU64::new(0));
    let shots: Arc<Mutex<Shots>> = Arc::default();
    let saboteur = {
        let (over, killed, pid) = (Arc::clone(&over), Arc::clone(&killed), server.pid());
        thread::spawn(move || sabotage(pid, &over, &killed))
    };
    let began = Instant::now();
    // A disk that is busy elsewhere makes every exec long: it goes on until there was enough of both.
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, shots) = (server.client(), Arc::clone(&shots));
            let killed = Arc::clone(&killed);
            thread::spawn(move || {
                let mut dice = Dice::new(number + 1);
                for round in 0.. {
                    let enough = shots.lock().unwrap().succeeded >= ENOUGH
                        && killed.load(Ordering::Relaxed) >= KILLED;
                    let patience = if enough { fire() } else { SOON.max(fire()) };
                    if began.elapsed() >= patience {
                        return;
                    }
                    shoot(&client, &mut dice, &format!("w{number}r{round}"), &shots);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client");
    }
    over.store(true, Ordering::Relaxed);
    saboteur.join().expect("the saboteur");

    let shots = shots.lock().unwrap();
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let (mut blames, mut asked) = (Vec::new(), 0);
    for (id, word) in &shots.taken_on {
        let record = client.record_when(id, is_final);
        blames.extend(blame(&record, word));
        // One that was canceled while it waited in the queue asked for nothing.
        asked += u64::from(!record["started_at"].is_null());
        let status = record["status"].as_str().unwrap_or_default().to_owned();
        *ends.entry(status).or_default() += 1;
    }
    assert!(
        blames.is_empty(),
        "{}:\n{}",
        blames.len(),
        blames.join("\n")
    );
    let stats = settled(&client, 1);
    let since = |field: &str| number(&stats[field]) - number(&before[field]);
    println!(
        "{} execs {ends:?}, refused {:?}, {} kills; pool: {} hits, {} misses of {asked}, {} dead on \
         borrow, {} dead at rest",
        shots.taken_on.len(),
        shots.refused,
        killed.load(Ordering::Relaxed),
        since("hits"),
        since("misses"),
        since("dead_on_borrow"),
        since("dead_at_rest"),
    );
    assert!(ends.get("succeeded") >= Some(&ENOUGH), "{ends:?}");
    assert!(killed.load(Ordering::Relaxed) >= KILLED);
    // One that was canceled between asking and starting may have asked too.
    let most = shots.taken_on.len() as u64;
    let counted = since("hits") + since("misses");
    assert!((asked..=most).contains(&counted), "{counted}: {stats}");
    assert!(since("hits") > 0, "{stats}");
    // Those that always stand ready do so again, whatever else was asked for.
    let stands = |shape: &Value, stats: &Value| {
        let same = |it: &&Value| it["config_hash"] == shape["config_hash"];
        let now = stats["shapes"]
            .as_array()
            .and_then(|all| all.iter().find(same));
        now.is_some_and(|now| number(&now["idle"]) >= number(&shape["idle"]))
    };
    let usual = usual.as_array().expect("shapes").clone();
    assert!(!usual.is_empty());
    let ready = wait_until(SOON, || {
        let stats = pool(&client);
        usual.iter().all(|shape| stands(shape, &stats))
    });
    assert!(ready, "{usual:?} are not there any more: {}", pool(&client));
    client.verify_ledger();
    // A place is given back a moment after the record is there.
    let empty = wait_until(SOON, || {
        let health = client.get("/sandbox/health").json();
        health["running"] == 0 && health["queued"] == 0
    });
    assert!(empty, "{}", client.get("/sandbox/health").text());
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn without_the_spawner_only_what_stands_is_used_and_nothing_leaks() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = serve(&trial, &format!("{POOL}{PATIENT}")).on(&trial);
    let client = server.client();
    let standing = number(&settled(&client, 7)["idle"]);
    // One that runs goes on.
    let long = at_work(&client, &gate.wait());
    // Keepers are its forks, and have its name for a moment.
    let mut spawners = named(server.pid(), "glovebox-spawner");
    spawners.retain(|it| it.parent == server.pid());
    assert_eq!(spawners.len(), 1, "{spawners:?}");
    assert!(spawners[0].kill());
    let told = wait_until(SOON, || {
        client.get("/readyz").code() == "backend_unavailable"
    });
    assert!(told, "it says that it is ready");
    let (mut ran, mut failed) = (0, 0);
    for round in 0..standing + 8 {
        let word = format!("r{round}");
        let answer = client.post("/v1/execs", &sh(&format!("echo {word}")));
        let record = answer.json();
        if answer.status != 200 {
            assert_eq!(answer.code(), "backend_unavailable", "{record}");
            failed += 1;
            continue;
        }
        assert_eq!(blame(&record, &word), None);
        match record["status"].as_str() {
            Some("succeeded") => ran += 1,
            _ => {
                let error = &record["error"];
                assert_eq!(error["code"], "backend_unavailable", "{error}");
                assert!(
                    !error["hints"].as_array().is_none_or(Vec::is_empty),
                    "{error}"
                );
                failed += 1;
            }
        }
    }
    println!("{ran} of {standing} that stood were used, {failed} were refused");
    assert!(ran <= standing, "one was used twice");
    assert!(failed > 0, "nothing was refused");
    gate.open();
    assert_eq!(client.ended(&long)["status"], "succeeded");
    assert_eq!(client.get("/healthz").status, 200);
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
