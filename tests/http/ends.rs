//! What is recorded as ended has ended: servers are stopped, killed and cut off from their database,
//! and what they ran keeps its limit and writes nothing after the end that is on record. What was
//! not taken over goes on.
//!
//! `GLOVEBOX_TEST_FULL=1` makes the last of them long.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::{
    Caller, Client, Column, Database, Docker, Server, Start, Trial, is_final, is_full, sh,
    wait_until, with,
};

use crate::kept_fire::{of_agent, rows};
use crate::pool_fire::{Dice, SOON, serve};
use crate::wire_cut::Wire;

/// Far more than a loaded machine holds a server up.
const LEASE: Duration = Duration::from_secs(6);
/// No limit is exceeded by more: a second, and what the engine's own command takes on this machine
/// just now.
fn late(column: Column) -> f64 {
    let since = Instant::now();
    if let Some(docker) = Docker::shared().filter(|_| column.is_docker()) {
        for _ in 0..3 {
            docker.ask(&["ps", "--quiet"]);
        }
    }
    1.0 + since.elapsed().as_secs_f64()
}

/// Deaf to everything that can be ignored, and heard of for as long as it lives.
const BEAT: &str = "trap '' TERM INT HUP; while :; do date +%s.%N >> beat; sleep 0.05; done";

/// A server of one column.
struct House {
    trial: Trial,
    column: Column,
    start: Start,
}

impl House {
    fn new(column: Column) -> Self {
        let trial = match column.is_docker() {
            true => Trial::new(Caller::Root),
            false => Trial::in_memory(Caller::Root),
        };
        let trial = trial.expect("a trial");
        let runtime = column.runtime();
        let runtime = runtime.map_or_else(String::new, |it| format!("runtime = \"{it}\"\n"));
        let config = format!(
            "[settings]\nbackend = \"{}\"\n{runtime}[pool]\nenabled = false\n",
            column.backend()
        );
        let mut start = serve(&trial, &config).patience("lease", LEASE);
        if let Some(docker) = Docker::shared().filter(|_| column.is_docker()) {
            start = start.outside("DOCKER_HOST", docker.host());
        }
        Self {
            trial,
            column,
            start,
        }
    }

    fn beats(&self) -> Beats {
        Beats(self.trial.state().join("projects/p/work/beat"))
    }

    /// A program that beats, begun and heard.
    fn begin(&self, client: &Client, limit: &str) -> String {
        let order = with(sh(BEAT), json!({"policy_overrides": {"timeout": limit}}));
        let id = client.begin(&order);
        let heard = wait_until(SOON, || self.beats().first().is_some());
        assert!(heard, "{}: {}", self.column, client.record(&id));
        id
    }

    fn end(self) {
        self.column.assert_no_container(&self.trial);
        self.trial.end();
    }
}

/// When a program wrote, by the host's clock.
struct Beats(PathBuf);

impl Beats {
    fn all(&self) -> Vec<f64> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(|it| it.parse().ok()).collect()
    }

    fn first(&self) -> Option<f64> {
        self.all().first().copied()
    }

    fn last(&self) -> f64 {
        self.all().last().copied().expect("a beat")
    }

    /// Waits until nothing was written for a while.
    fn silence(&self) -> f64 {
        let quiet = Duration::from_millis(800);
        let (mut last, mut since) = (self.last(), Instant::now());
        let silent = wait_until(SOON, || {
            let now = self.last();
            if now > last {
                (last, since) = (now, Instant::now());
            }
            since.elapsed() > quiet
        });
        assert!(silent, "it does not end");
        last
    }
}

fn seconds(time: &Value) -> f64 {
    let time: jiff::Timestamp = time.as_str().expect("a time").parse().expect("a time");
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are enough")]
    let seconds = time.as_microsecond() as f64 / 1e6;
    seconds
}

#[test]
fn a_server_that_is_stopped_lengthens_no_limit() {
    for column in Column::ALL.into_iter().filter(|it| it.is_here()) {
        let house = House::new(column);
        let server = house.start.on(&house.trial);
        let client = server.client();
        let id = house.begin(&client, "3s");
        server.signal(Signal::STOP);
        let first = house.beats().first().expect("a beat");
        let last = house.beats().silence();
        assert!(
            last - first < 3.0 + late(column),
            "{column}: {} s",
            last - first
        );
        server.signal(Signal::CONT);
        let record = client.ended(&id);
        assert_eq!(record["status"], "timed_out", "{column}: {record}");
        assert_eq!(record["limit_hit"], "wall", "{column}: {record}");
        let lasted = record["duration_ms"].as_u64().expect("its time");
        let most = Duration::from_secs_f64(3.5 + late(column));
        assert!(
            lasted >= 2900 && u128::from(lasted) < most.as_millis(),
            "{column}: {record}"
        );
        assert!(last <= seconds(&record["ended_at"]), "{column}: {record}");
        // What ended in time has, however late the server hears of it.
        let order = sh("echo here; sleep 1");
        let id = client.begin(&with(order, json!({"policy_overrides": {"timeout": "4s"}})));
        let said = |client: &Client| client.record(&id)["status"] == "running";
        assert!(wait_until(SOON, || said(&client)));
        server.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(5500));
        server.signal(Signal::CONT);
        let record = client.ended(&id);
        assert_eq!(record["status"], "succeeded", "{column}: {record}");
        assert_eq!(server.stop(), 0);
        house.end();
    }
}

/// It cannot end its sandbox, so it is ended itself.
#[test]
fn a_keeper_that_is_stopped_lengthens_no_limit_for_ever() {
    let house = House::new(Column::Native);
    let server = house.start.on(&house.trial);
    let client = server.client();
    let id = house.begin(&client, "1s");
    let spawner = children(server.pid(), "glovebox-spawner");
    let keepers = spawner.iter().flat_map(|pid| children(*pid, ""));
    // The others wait for work.
    let busy = keepers.filter(|pid| !children(*pid, "glovebox-init").is_empty());
    let busy: Vec<u32> = busy.collect();
    assert_eq!(busy.len(), 1, "{busy:?}");
    for keeper in busy {
        let keeper = keeper.to_string();
        let _ = Command::new("kill").args(["-STOP", &keeper]).status();
    }
    let record = client.ended(&id);
    assert_eq!(record["status"], "timed_out", "{record}");
    assert!(
        house.beats().silence() <= seconds(&record["ended_at"]),
        "{record}"
    );
    assert_eq!(server.stop(), 0);
    house.end();
}

/// All processes of a server but its keepers, as an operator who kills them by name would.
fn kill_with_commands(server: &mut Server) {
    for pid in children(server.pid(), "docker") {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    server.kill();
}

#[test]
fn a_server_that_is_killed_leaves_no_program_behind() {
    for column in Column::ALL.into_iter().filter(|it| it.is_here()) {
        for kept in [false, true] {
            let house = House::new(column);
            let mut server = house.start.on(&house.trial);
            let client = server.client();
            let order = match kept {
                false => sh(BEAT),
                true => with(of_agent("a", BEAT), json!({"project_id": "p"})),
            };
            let id = client.begin(&order);
            let heard = wait_until(SOON, || house.beats().first().is_some());
            assert!(heard, "{column}: {}", client.record(&id));
            kill_with_commands(&mut server);
            let killed = Instant::now();
            house.beats().silence();
            let took = killed.elapsed();
            assert!(took < Duration::from_secs(10), "{column}: {took:?}");
            if !kept {
                // No server was started since, and nothing is there.
                house.column.assert_no_container(&house.trial);
            }
            let again = house.start.on(&house.trial);
            let client = again.client();
            assert_eq!(client.ended(&id)["status"], "lost", "{column}");
            for row in rows(&client) {
                let path = format!("/v1/sandboxes/{}", row["name"].as_str().expect("a name"));
                assert_eq!(client.send("DELETE", &path, None).status, 200);
            }
            assert_eq!(again.stop(), 0);
            house.end();
        }
    }
}

/// The engine holds what is left of the limit, when even the keepers are gone.
#[test]
fn a_container_ends_although_everything_of_ours_was_killed() {
    let containers = [Column::Runc, Column::Runsc].into_iter();
    for column in containers.filter(|it| it.is_here()) {
        let house = House::new(column);
        let mut server = house.start.on(&house.trial);
        let id = house.begin(&server.client(), "3s");
        let spawner = children(server.pid(), "glovebox-spawner");
        let keepers = spawner.iter().flat_map(|pid| children(*pid, ""));
        let ours: Vec<u32> = keepers.chain(spawner.iter().copied()).collect();
        assert!(ours.len() > 1, "{column}: {ours:?}");
        // Stopped first: none of them may see another's end.
        for signal in ["-STOP", "-KILL"] {
            for pid in &ours {
                let pid = pid.to_string();
                let _ = Command::new("kill").args([signal, &pid]).status();
            }
            if signal == "-STOP" {
                server.kill();
            }
        }
        let first = house.beats().first().expect("a beat");
        let last = house.beats().silence();
        assert!(last - first < 10.0, "{column}: {} s", last - first);
        let again = house.start.on(&house.trial);
        assert_eq!(again.client().ended(&id)["status"], "lost", "{column}");
        assert_eq!(again.stop(), 0);
        house.end();
    }
}

/// Of a process, by what they are called; all of them without a name.
pub(crate) fn children(pid: u32, name: &str) -> Vec<u32> {
    let mut found = Command::new("pgrep");
    found.args(["-P", &pid.to_string()]);
    // Names are cut at 15 characters.
    found.args(Some(&name[..name.len().min(15)]).filter(|it| !it.is_empty()));
    let found = found.output().expect("pgrep").stdout;
    let found = String::from_utf8_lossy(&found).into_owned();
    found.lines().filter_map(|it| it.parse().ok()).collect()
}

/// Two servers on one database, each by a wire of its own, as on two machines.
struct Pair {
    database: Database,
    keys: tempfile::TempDir,
}

impl Pair {
    fn new() -> Option<Self> {
        Some(Self {
            database: Database::new()?,
            keys: tempfile::tempdir().expect("a directory"),
        })
    }

    fn start(&self, house: &House) -> (Server, Wire) {
        let (wire, url) = Wire::to(self.database.url());
        let keys = self.keys.path().to_str().expect("a path");
        let start = house.start.clone();
        let start = start.with(["--database", &url, "--keys-dir", keys]);
        (start.on(&house.trial), wire)
    }
}

#[test]
fn what_is_lost_writes_nothing_more_whatever_becomes_of_its_server() {
    let Some(pair) = Pair::new() else { return };
    for column in Column::ALL.into_iter().filter(|it| it.is_here()) {
        for is_stopped in [true, false] {
            let (house, other) = (House::new(column), House::new(Column::Native));
            let (mut first, wire) = pair.start(&house);
            let (second, _wire) = pair.start(&other);
            let id = house.begin(&first.client(), "60s");
            match is_stopped {
                true => first.signal(Signal::STOP),
                false => wire.cut(),
            }
            let record = second.client().ended(&id);
            let seen = house.beats().last();
            assert_eq!(record["status"], "lost", "{column}: {record}");
            assert!(
                seen <= seconds(&record["ended_at"]),
                "{column}: wrote at {seen}, lost: {record}"
            );
            match is_stopped {
                true => first.signal(Signal::CONT),
                false => wire.mend(),
            }
            // It hears that another has taken over, and goes.
            assert_ne!(first.wait(SOON), 0, "{}", first.said());
            assert_eq!(house.beats().last(), seen, "{column}");
            let record = second.client().record(&id);
            assert_eq!(record["status"], "lost", "{column}: {record}");
            second.client().verify_ledger();
            assert_eq!(second.stop(), 0);
            house.end();
            other.end();
        }
    }
}

#[test]
fn a_database_that_is_away_or_locked_ends_nothing_that_was_not_taken_over() {
    let Some(pair) = Pair::new() else { return };
    let (house, other) = (House::new(Column::Native), House::new(Column::Native));
    let (first, wire) = pair.start(&house);
    let (second, other_wire) = pair.start(&other);
    let (client, idle) = (first.client(), second.client());
    let away = |long: Duration| {
        wire.cut();
        other_wire.cut();
        std::thread::sleep(long);
        wire.mend();
        other_wire.mend();
    };
    let locked = |long: Duration| {
        pair.database.psql(&format!(
            "BEGIN; LOCK TABLE glovebox.owners, glovebox.sandbox_execs IN ACCESS EXCLUSIVE MODE; \
             SELECT pg_sleep({}); COMMIT",
            long.as_secs_f64()
        ));
    };
    for happens in [&away as &dyn Fn(Duration), &locked] {
        let _ = fs::remove_file(&house.beats().0);
        let id = client.begin(&sh("echo 1 > beat; sleep 5; echo done"));
        assert!(wait_until(SOON, || house.beats().first().is_some()));
        // A little less than what the keepers wait for.
        happens(LEASE * 2 / 3);
        let record = client.ended(&id);
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(record["stdout"], "done\n");
        // Far longer than any lease: what runs ends, what idles and what waits does not.
        happens(LEASE * 2);
        for client in [&client, &idle] {
            let mut answer = None;
            let works = wait_until(SOON, || {
                let ran = client.post("/v1/execs", &sh("echo again"));
                let good = ran.status == 200;
                answer = Some(ran.text());
                good
            });
            assert!(works, "{answer:?}");
        }
    }
    client.verify_ledger();
    assert_eq!((first.stop(), second.stop()), (0, 0));
    house.end();
    other.end();
}

/// What was done to the server while its program ran, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Stop,
    Cut,
    Kill,
    CutAndStop,
}

#[test]
fn servers_stopped_killed_and_cut_off_in_random_order() {
    let Some(pair) = Pair::new() else { return };
    let columns: Vec<Column> = Column::ALL.into_iter().filter(|it| it.is_here()).collect();
    let rounds = if is_full() { 100 } else { 4 };
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let watcher = House::new(Column::Native);
    let (second, _wire) = pair.start(&watcher);
    for round in 0..rounds {
        let column = columns[round % columns.len()];
        let house = House::new(column);
        let (mut first, wire) = pair.start(&house);
        let client = first.client();
        let limit = 2 + dice.below(8);
        let id = house.begin(&client, &format!("{limit}s"));
        std::thread::sleep(Duration::from_millis(dice.below(1500)));
        let deed = [Deed::Stop, Deed::Cut, Deed::Kill, Deed::CutAndStop]
            [usize::try_from(dice.below(4)).expect("a number")];
        let long = Duration::from_millis(dice.below(12_000));
        if matches!(deed, Deed::Cut | Deed::CutAndStop) {
            wire.cut();
        }
        match deed {
            Deed::Stop | Deed::CutAndStop => first.signal(Signal::STOP),
            Deed::Kill => first.kill(),
            Deed::Cut => {}
        }
        std::thread::sleep(long);
        if matches!(deed, Deed::Stop | Deed::CutAndStop) {
            first.signal(Signal::CONT);
        }
        wire.mend();
        let told = format!("round {round}, {column}, limit {limit} s, {deed:?} for {long:?}");
        println!("{told}");
        // Whichever of them can say it.
        let mut record = Value::Null;
        let ended = wait_until(SOON, || {
            let path = format!("/v1/execs/{id}");
            if let Ok(answer) = second.client().try_send("GET", &path, None) {
                record = answer.json();
            }
            is_final(&record)
        });
        assert!(ended, "{told}: {record}");
        let (start, end) = (
            house.beats().first().expect("a beat"),
            house.beats().silence(),
        );
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        let most = limit as f64 + late(column);
        assert!(end - start < most, "{told}: {} s: {record}", end - start);
        assert!(
            end <= seconds(&record["ended_at"]),
            "{told}: {end}: {record}"
        );
        // What was renewed so lately may not be taken over.
        if deed != Deed::Kill && long < LEASE / 2 {
            assert_eq!(record["status"], "timed_out", "{told}: {record}");
        }
        if deed == Deed::Kill {
            assert_eq!(record["status"], "lost", "{told}: {record}");
        } else {
            first.signal(Signal::TERM);
            first.wait(SOON);
        }
        // The next server on this machine removes what a dead one left there.
        let (again, _wire) = pair.start(&house);
        assert_eq!(again.stop(), 0);
        house.end();
    }
    second.client().verify_ledger();
    assert_eq!(second.stop(), 0);
    watcher.end();
}
