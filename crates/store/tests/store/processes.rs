//! Several processes on one state directory, and processes that are killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{ended, exec_id, running};
use glovebox_model::{ExecId, SpaceId, Status};
use glovebox_store::{Expectations, Owner, StateDir, Store, dead_owners};

const STATE: &str = "GLOVEBOX_TEST_STATE";
const COUNT: &str = "GLOVEBOX_TEST_COUNT";
const DATABASE: &str = "GLOVEBOX_TEST_DATABASE";

/// A process that writes execs and says on its standard output what was acknowledged.
struct Writer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(state: &Path, execs: usize) -> Self {
        Self::start_on(state, None, execs)
    }

    /// On SQLite, or on the PostgreSQL of this URL.
    fn start_on(state: &Path, database: Option<&str>, execs: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "--ignored",
                "--nocapture",
                "processes::child_writes_execs",
            ])
            .env(STATE, state)
            .env(COUNT, execs.to_string())
            .stdout(Stdio::piped());
        if let Some(url) = database {
            command.env(DATABASE, url);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next word and id that the writer said; `None` at its end.
    fn next(&mut self) -> Option<(String, String)> {
        loop {
            // A line that was cut by a kill was not said.
            let line = self.lines.next()?.ok()?;
            if let Some(said) = line.strip_prefix("said ")
                && let Some((word, rest)) = said.split_once(' ')
                && let Some(id) = rest.strip_suffix(" .")
            {
                return Some((word.to_owned(), id.to_owned()));
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run as a child process"]
fn child_writes_execs() {
    let state = StateDir::open(std::env::var_os(STATE).unwrap()).unwrap();
    let execs: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    let url = std::env::var(DATABASE).ok();
    let store = crate::common::opened(&state, url.as_deref());
    let owner = Owner::claim(&state).unwrap();
    store.enlist(owner.id(), crate::common::HOUR).unwrap();
    println!("\nsaid owner {} .", owner.id());
    for _ in 0..execs {
        let mut record = running();
        record.exec_id = exec_id();
        let id = record.exec_id.clone();
        let opened = store.plan(owner.id(), &record).unwrap();
        println!("said planned {id} .");
        store
            .close(opened, ended(record, Status::Succeeded))
            .unwrap();
        println!("said closed {id} .");
    }
}

#[test]
fn twenty_processes_keep_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    // None of them finds a state directory, a database or a key: all of that is part of the race.
    let mut writers: Vec<Writer> = (0..20).map(|_| Writer::start(&path, 10)).collect();
    for writer in &mut writers {
        let mut closed = 0;
        while let Some((word, _)) = writer.next() {
            closed += usize::from(word == "closed");
        }
        assert!(writer.child.wait().unwrap().success());
        assert_eq!(closed, 10);
    }
    let state = StateDir::open(&path).unwrap();
    let store = Store::open(&state).unwrap();
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 20 * 10 * 2);
    assert!(dead_owners(&state, None).unwrap().is_empty());
}

#[test]
fn threads_with_stores_of_their_own_keep_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let state = StateDir::open(&path).unwrap();
                for _ in 0..5 {
                    crate::common::run_one(&crate::common::opened(&state, None));
                }
            });
        }
    });
    let store = Store::open(&StateDir::open(&path).unwrap()).unwrap();
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, 8 * 5 * 2);
}

#[test]
fn a_killed_owner_is_dead_and_a_living_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    let mut killed = Writer::start(&path, usize::MAX);
    let (_, killed_id) = killed.next().unwrap();
    let mut living = Writer::start(&path, usize::MAX);
    let (_, living_id) = living.next().unwrap();

    let state = StateDir::open(&path).unwrap();
    let mine = Owner::claim(&state).unwrap();
    assert!(dead_owners(&state, Some(&mine)).unwrap().is_empty());
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let dead = dead_owners(&state, Some(&mine)).unwrap();
    let ids: Vec<&str> = dead.iter().map(|owner| owner.id()).collect();
    assert_eq!(ids, [killed_id]);
    assert!(state.owners().join(living_id).exists());
}

/// Starts writers and kills them; returns what each acknowledged last about each exec.
fn kill_writers(path: &Path, database: Option<&str>, kills: usize) -> HashMap<ExecId, String> {
    let mut acknowledged: HashMap<ExecId, String> = HashMap::new();
    for round in 0..kills {
        let mut writer = Writer::start_on(path, database, usize::MAX);
        let mut random = [0; 1];
        getrandom::fill(&mut random).unwrap();
        let until = match round {
            0 => 0,
            // However the dice fall, enough is heard.
            1 => 1 + 3 * kills,
            _ => usize::from(random[0] % 16),
        };
        let mut heard = 0;
        while heard < until
            && let Some((word, id)) = writer.next()
        {
            heard += 1;
            if word != "owner" {
                acknowledged.insert(id.parse().unwrap(), word);
            }
        }
        writer.child.kill().unwrap();
        // What it said before it died counts too.
        while let Some((word, id)) = writer.next() {
            if word != "owner" {
                acknowledged.insert(id.parse().unwrap(), word);
            }
        }
    }
    assert!(acknowledged.len() > kills, "the writers were heard");
    acknowledged
}

fn assert_kept(store: &Store, acknowledged: &HashMap<ExecId, String>) {
    for (id, word) in acknowledged {
        let exec = store.get(&SpaceId::local(), id).unwrap();
        assert!(
            word == "planned" || exec.status == Status::Succeeded,
            "{id} {word} {exec:?}"
        );
    }
}

fn assert_settled(store: &Store, state: &StateDir, acknowledged: &HashMap<ExecId, String>) {
    for id in acknowledged.keys() {
        let exec = store.get(&SpaceId::local(), id).unwrap();
        assert!(exec.status.is_final() && exec.receipt.is_some());
    }
    assert!(store.stray_owners(state).unwrap().is_empty());
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
}

#[test]
fn no_acknowledged_record_is_lost_to_a_kill() {
    let kills: usize =
        std::env::var("GLOVEBOX_TEST_KILLS").map_or(30, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    let acknowledged = kill_writers(&path, None, kills);
    let state = StateDir::open(&path).unwrap();
    let store = Store::open(&state).unwrap();
    assert_kept(&store, &acknowledged);
    for owner in dead_owners(&state, None).unwrap() {
        store.recover(owner.id()).unwrap();
        owner.settle().unwrap();
    }
    assert_settled(&store, &state, &acknowledged);
}

#[test]
fn on_postgres_no_acknowledged_record_is_lost_to_a_kill() {
    let Some(it) = crate::common::postgres_fixture() else {
        return;
    };
    let url = &it.shared.as_ref().unwrap().url;
    let acknowledged = kill_writers(it.state.path(), Some(url), 12);
    assert_kept(&it.store, &acknowledged);
    it.execute("UPDATE owners SET expires_at = clock_timestamp() - interval '1 second'");
    let expired = it.store.expired_owners().unwrap();
    assert!(expired.len() > 1, "{expired:?}");
    for owner in expired {
        it.store.recover(&owner).unwrap();
    }
    assert!(it.store.expired_owners().unwrap().is_empty());
    assert_settled(&it.store, &it.state, &acknowledged);
}
