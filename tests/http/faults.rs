//! What goes wrong around a server: its disk, its database, its clock, its descriptors, and what its
//! operator writes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, Database, Gate, Start, Trial, is_final, sh, wait_until, with};

use crate::pool_fire::{PATIENT, SOON, at_work, serve};

#[track_caller]
fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// The state directory on a small disk, until dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn below(trial: &Trial, size: &str) -> Self {
        let state = trial.state();
        let options = format!("size={size},mode=0700");
        run(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &options,
            "small",
            state.to_str().unwrap(),
        ]);
        Self(state)
    }

    /// To its last byte.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_new_work_and_loses_nothing() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let disk = SmallDisk::below(&trial, "32m");
    let mut server = Start::default().on(&trial);
    let client = server.client();
    // Held by a file that is removed: nothing can be made on a full disk.
    let work = trial.state().join("projects/p/work");
    assert_eq!(client.post("/v1/execs", &sh("touch stop")).status, 200);
    let script = "echo here; while [ -e stop ]; do sleep 0.02; done; seq 1 20000";
    let held: Vec<_> = (0..3).map(|_| client.begin(&sh(script))).collect();
    for id in &held {
        client.events(id, 0).unwrap().nth(1).unwrap().unwrap();
    }
    let ballast = disk.fill();
    let away = client.post(
        "/v1/execs",
        &with(sh("touch never"), json!({"client_id": "away"})),
    );
    assert!(
        matches!(away.status, 503 | 507),
        "{} {}",
        away.status,
        away.text()
    );
    assert!(
        matches!(away.code().as_str(), "disk_full" | "store_unavailable"),
        "{}",
        away.text()
    );
    assert_eq!(client.get("/healthz").status, 200);
    assert!(
        wait_until(SOON, || client.get("/readyz").status == 503),
        "ready on a full disk"
    );
    fs::remove_file(work.join("stop")).unwrap();
    // They have ended; that they have cannot be written yet.
    let over = || support::processes_with("seq 1 20000").is_empty();
    assert!(wait_until(SOON, over), "they do not end");
    disk.fill();

    fs::remove_file(ballast).unwrap();
    for id in &held {
        let record = client.ended(id);
        assert!(record["receipt"]["seq"].is_u64(), "{record}");
        let fine = record["status"] == "succeeded" || !record["error"].is_null();
        assert!(fine, "it ended without a reason: {record}");
    }
    assert!(
        wait_until(SOON, || client.get("/readyz").status == 200),
        "{}",
        server.said()
    );
    assert_eq!(
        client.get("/v1/execs/away").status,
        404,
        "refused, and there"
    );
    let again = client.post("/v1/execs", &with(sh("ls"), json!({"client_id": "away"})));
    assert_eq!(
        (again.status, again.json()["stdout"].clone()),
        (200, json!("")),
        "{}",
        again.text()
    );
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    drop(disk);
    trial.end();
}

/// A server whose C library a test has a hand in.
struct Faulty {
    start: Start,
    directory: PathBuf,
}

impl Faulty {
    fn new(trial: &Trial) -> Self {
        let directory = trial.home().join("faulty");
        fs::create_dir(&directory).unwrap();
        let library = directory.join("faulty.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/http/faulty.c");
        run(&[
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-o",
            library.to_str().unwrap(),
            source,
        ]);
        Self {
            start: Start::default()
                .outside("LD_PRELOAD", library.to_str().unwrap())
                .outside("FAULTY", directory.to_str().unwrap()),
            directory,
        }
    }

    fn say(&self, what: &str, number: i64) {
        // In one step: it is read at any time.
        let next = self.directory.join("next");
        fs::write(&next, number.to_string()).unwrap();
        fs::rename(next, self.directory.join(what)).unwrap();
    }
}

#[test]
fn a_write_that_fails_leaves_no_half_record() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let faulty = Faulty::new(&trial);
    let server = faulty.start.on(&trial);
    let client = server.client();
    assert_eq!(client.post("/v1/execs", &sh("true")).status, 200);
    for (number, fault) in ["full-write", "full-sync"].into_iter().enumerate() {
        let gate = Gate::new(&trial, ["one", "two"][number]);
        let held = at_work(&client, &gate.wait());
        faulty.say(fault, 1);
        let name = format!("never-{number}");
        let body = with(sh(&format!("touch {name}")), json!({"client_id": name}));
        let away = client.post("/v1/execs", &body);
        assert!(
            matches!(away.status, 503 | 507),
            "{fault}: {} {}",
            away.status,
            away.text()
        );
        gate.open();
        // Its end is due and cannot be written.
        let due = Instant::now();
        while due.elapsed() < Duration::from_millis(400) {
            assert!(
                !is_final(&client.record(&held)),
                "{fault}: an end that is not on disk"
            );
        }
        faulty.say(fault, 0);
        let record = client.ended(&held);
        assert_eq!(record["status"], "succeeded", "{fault}: {record}");
        assert!(
            gate.file(&name).is_none(),
            "{fault}: it ran without a record"
        );
        assert_eq!(
            client.get(&format!("/v1/execs/{name}")).status,
            404,
            "{fault}"
        );
        assert_eq!(client.post("/v1/execs", &body).status, 200, "{fault}");
        client.verify_ledger();
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_clock_that_jumps_changes_no_timeout_and_no_order() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let faulty = Faulty::new(&trial);
    let gate = Gate::new(&trial, "gate");
    let config = trial.home().join("config.toml");
    fs::write(&config, PATIENT).unwrap();
    let start = faulty.start.clone();
    let server = start
        .with(["--config", config.to_str().unwrap()])
        .on(&trial);
    let client = server.client();
    // Far less than the clock jumps, and far more than a busy disk takes.
    let held = client.begin(&with(
        sh(&gate.wait()),
        json!({"policy_overrides": {"timeout": "4m"}}),
    ));
    client.record_when(&held, |record| record["status"] == "running");
    let mut ids = Vec::new();
    let year = 365 * 24 * 3600;
    for jump in [3600, -3600, 50 * year, 0] {
        faulty.say("clock", jump);
        let asked = Instant::now();
        let body = with(
            sh("sleep 100"),
            json!({"policy_overrides": {"timeout_ms": 300}}),
        );
        let record = client.post("/v1/execs", &body).json();
        assert_eq!(record["status"], "timed_out", "{jump}: {record}");
        assert!(asked.elapsed() < SOON, "{jump}: {:?}", asked.elapsed());
        assert!(
            record["duration_ms"].as_u64().unwrap() >= 300,
            "{jump}: {record}"
        );
        ids.push(record["exec_id"].clone());
        let record = client.post("/v1/execs", &sh("true")).json();
        assert_eq!(record["status"], "succeeded", "{jump}: {record}");
        ids.push(record["exec_id"].clone());
        let is_ready = || client.get("/readyz").status == 200;
        assert!(wait_until(SOON, is_ready), "{jump}");
    }
    // It is written down when it was by that clock; the shim is in the way of the right one.
    let shown = client.record(ids[4].as_str().unwrap());
    assert!(
        shown["ended_at"].as_str().unwrap() > "2070",
        "the clock did not jump: {shown}"
    );
    gate.open();
    let record = client.ended(&held);
    assert_eq!(record["status"], "succeeded", "{record}");
    assert!(
        record["duration_ms"].as_u64().unwrap() < 240_000,
        "{record}"
    );
    // As they came, whatever the clock said.
    let listed = client.get("/v1/execs?limit=100").json();
    let listed: Vec<Value> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["exec_id"].clone())
        .collect();
    ids.reverse();
    assert_eq!(listed[..ids.len()], ids);
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_slow_disk_keeps_nobody_waiting_who_writes_nothing() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let faulty = Faulty::new(&trial);
    let server = faulty.start.on(&trial);
    let client = server.client();
    let id = client.begin(&sh("echo once"));
    client.ended(&id);
    faulty.say("slow", 100);
    thread::scope(|scope| {
        let execs: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| client.post("/v1/execs", &sh("true"))))
            .collect();
        let mut worst = Duration::ZERO;
        while !execs.iter().all(thread::ScopedJoinHandle::is_finished) {
            for path in [
                "/healthz",
                "/v1/whoami",
                &format!("/v1/execs/{id}"),
                &format!("/v1/execs/{id}/stdout"),
            ] {
                let asked = Instant::now();
                assert_eq!(client.get(path).status, 200, "{path}");
                worst = worst.max(asked.elapsed());
            }
        }
        for exec in execs {
            assert_eq!(exec.join().unwrap().json()["status"], "succeeded");
        }
        assert!(worst < Duration::from_secs(10), "{worst:?}");
    });
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_locked_database_is_waited_for_within_bounds() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().patience("store", PATIENCE).on(&trial);
    let client = server.client().with("Idempotency-Key", "locked");
    assert_eq!(server.client().post("/v1/execs", &sh("true")).status, 200);
    let lock = rusqlite::Connection::open(trial.state().join("glovebox.db")).unwrap();
    lock.busy_timeout(SOON).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = sh("echo ran >> log");
    let asked = Instant::now();
    thread::scope(|scope| {
        let away = scope.spawn(|| client.post("/v1/execs", &body));
        while !away.is_finished() {
            let health = Instant::now();
            assert_eq!(server.nobody().get("/healthz").status, 200);
            assert!(
                health.elapsed() < Duration::from_secs(10),
                "{:?}",
                health.elapsed()
            );
            thread::sleep(Duration::from_millis(50));
        }
        let away = away.join().unwrap();
        assert_eq!(away.status, 503, "{}", away.text());
        assert!(
            matches!(away.code().as_str(), "busy" | "store_unavailable"),
            "{}",
            away.text()
        );
        assert!(away.header("retry-after").is_some());
    });
    // It was really waited for; and what a loaded machine takes.
    let waited = asked.elapsed();
    assert!((PATIENCE..PATIENCE + SOON).contains(&waited), "{waited:?}");
    let asked = Instant::now();
    assert_eq!(server.nobody().get("/readyz").status, 503);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?}",
        asked.elapsed()
    );
    lock.execute_batch("ROLLBACK").unwrap();
    drop(lock);
    let ran = client.post("/v1/execs", &body);
    assert_eq!(
        (ran.status, ran.json()["status"].clone()),
        (200, json!("succeeded"))
    );
    let log = fs::read_to_string(trial.state().join("projects/p/work/log")).unwrap();
    assert_eq!(log, "ran\n", "it ran once");
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn one_that_takes_too_much_is_ended_alone() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = serve(&trial, PATIENT).on(&trial);
    let client = server.client();
    let neighbour = client.begin(&sh(&format!("{}; echo fine", gate.wait())));
    let hog = json!({
        "exec": {"kind": "python", "command": "python", "args": ["-c", "b = bytearray(500 << 20)"]},
        "policy_overrides": {"memory": "64M"},
    });
    let full = with(
        sh("dd if=/dev/zero of=big bs=64k count=2000"),
        json!({"project_id": "other", "policy_overrides": {"disk": "2M"}}),
    );
    for (body, limit) in [(hog, "memory"), (full, "disk")] {
        let record = client.post("/v1/execs", &body).json();
        assert_eq!(record["limit_hit"], limit, "{record}");
        assert_ne!(record["status"], "succeeded", "{record}");
        let is_ready = || client.get("/readyz").status == 200;
        assert!(wait_until(SOON, is_ready), "{limit}");
    }
    gate.open();
    let record = client.ended(&neighbour);
    assert_eq!(
        (&record["status"], &record["stdout"]),
        (&json!("succeeded"), &json!("fine\n"))
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// The record as it lies in the state directory.
fn beside(trial: &Trial, id: &str) -> Value {
    let output = Command::new(support::glovebox())
        .arg("--state-dir")
        .arg(trial.state())
        .args(["show", "--json", id])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Time that a process has had of the processors, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_descriptors_it_rests_and_what_runs_ends() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let mut server = Start::default().on(&trial);
    let client = server.client();
    let held = client.begin(&sh(&format!("echo here; {}; echo done", gate.wait())));
    client.events(&held, 0).unwrap().nth(1).unwrap().unwrap();
    let pid = server.pid();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let limit = |most: &str| {
        run(&[
            "prlimit",
            "--pid",
            &pid.to_string(),
            &format!("--nofile={most}:"),
        ])
    };
    limit(&(open + 5).to_string());
    let crowd: Vec<_> = (0..40).map(|_| client.connect().unwrap()).collect();
    let cannot = "a connection could not be taken";
    assert!(
        wait_until(SOON, || server.said().contains(cannot)),
        "it took all of them"
    );
    let (before, since) = (ticks(pid), Instant::now());
    thread::sleep(Duration::from_secs(1));
    let (used, passed) = (ticks(pid) - before, since.elapsed());
    // Whoever sleeps a second on a loaded machine may sleep longer.
    let share = u128::from(used) * 1000 / passed.as_millis();
    assert!(share < 30, "{share} % of a processor with nothing to do");
    gate.open();
    // Nobody can ask the server now; what it has written down can be read beside it.
    let ended = || is_final(&beside(&trial, &held));
    assert!(wait_until(SOON, ended), "{}", server.said());
    drop(crowd);
    limit("1024");
    let record = client.ended(&held);
    assert_eq!(
        (&record["status"], &record["stdout"]),
        (&json!("succeeded"), &json!("here\ndone\n")),
        "{record}"
    );
    assert_eq!(
        client.post("/v1/execs", &sh("true")).json()["status"],
        "succeeded"
    );
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn what_the_operator_wrote_wrongly_is_named() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    let with_config = Start::default().with(["--config", config.to_str().unwrap()]);
    let refused = |start: &Start, named: &str| match start.try_on(&trial) {
        Ok(_) => panic!("it starts, whatever `{named}` is"),
        Err(said) => assert!(said.contains(named), "no `{named}` in: {said}"),
    };
    for (text, named) in [
        ("[settings]\nmemry = \"1G\"\n", "memry"),
        ("[settings]\nmemory = \"much\"\n", "memory"),
        ("[settings\n", "config.toml"),
    ] {
        fs::write(&config, text).unwrap();
        refused(&with_config, named);
    }
    fs::write(&config, "[settings]\nmemory = \"1G\"\n").unwrap();
    fs::set_permissions(&config, PermissionsExt::from_mode(0o666)).unwrap();
    refused(&with_config, "config.toml");
    refused(
        &Start::default().outside("GLOVEBOX_LOG", "lots=and=lots"),
        "GLOVEBOX_LOG",
    );
    refused(
        &Start::default().with(["--config", "/nowhere/at/all"]),
        "/nowhere/at/all",
    );
    refused(
        &Start::default().with(["--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"]),
        "/nowhere/cert",
    );
    assert_eq!(Start::default().on(&trial).stop(), 0);
    for file in ["token", "token.key", "ledger.key", "queue.key"] {
        loosen(&trial.state().join(file), 0o666);
        refused(&Start::default(), file);
        loosen(&trial.state().join(file), 0o600);
    }
    assert_eq!(Start::default().on(&trial).stop(), 0);
    trial.end();
}

fn loosen(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Whoever asks until it is answered, as a good client does.
fn insist(client: &Client, id: &str) -> Value {
    let client = client.clone().with("Idempotency-Key", id);
    let body = with(sh(&format!("echo {id} >> log")), json!({"client_id": id}));
    let mut answer = Value::Null;
    let answered = wait_until(Duration::from_secs(60), || {
        match client.try_send("POST", "/v1/execs", Some(&body)) {
            Ok(it) if it.status == 200 => answer = it.json(),
            Ok(it) => assert!(
                matches!(it.status, 429 | 503),
                "{} {}",
                it.status,
                it.text()
            ),
            Err(error) => panic!("{error}"),
        }
        !answer.is_null()
    });
    assert!(answered, "{id}");
    answer
}

#[test]
fn connections_to_the_database_are_cut_and_nothing_is_lost() {
    let Some(database) = Database::new() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .with(["--database", database.url()])
        .on(&trial);
    let client = server.client();
    thread::scope(|scope| {
        let loads: Vec<_> = (0..4)
            .map(|load| {
                let client = &client;
                scope.spawn(move || {
                    (0..8)
                        .map(|n| {
                            (
                                format!("x{load}-{n}"),
                                insist(client, &format!("x{load}-{n}")),
                            )
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let (mut cuts, mut pause) = (0, Duration::from_millis(150));
        while !loads.iter().all(thread::ScopedJoinHandle::is_finished) {
            let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
            cuts += database.psql(cut).parse::<u32>().unwrap();
            // On a loaded machine nothing gets done in so little: each time there is a little more.
            thread::sleep(pause);
            pause += Duration::from_millis(10);
        }
        assert!(cuts > 0);
        for (id, told) in loads.into_iter().flat_map(|load| load.join().unwrap()) {
            let record = client.ended(&id);
            assert_eq!(record["exec_id"], told["exec_id"]);
            assert_eq!(record["status"], "succeeded", "{record}");
        }
    });
    let log = fs::read_to_string(trial.state().join("projects/p/work/log")).unwrap();
    let mut ran: Vec<&str> = log.lines().collect();
    ran.sort_unstable();
    let before = ran.len();
    ran.dedup();
    assert_eq!((ran.len(), before), (32, 32), "run twice or never: {log}");
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_misspelt_variable_starts_no_server() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let said = Start::default()
        .outside("GLOVEBOX_DATABSE", "postgresql://elsewhere/db")
        .try_on(&trial)
        .expect_err("it starts");
    assert!(said.contains("`GLOVEBOX_DATABSE` is not known"), "{said}");
    assert!(
        !said.contains("elsewhere"),
        "its value is not shown: {said}"
    );
    trial.end();
}
