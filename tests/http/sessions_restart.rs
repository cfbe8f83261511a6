//! Sessions outlive their server: it is killed, and comes back, and everything goes on. Without one they
//! end in time, and whose keeper is killed is lost, with no end that was made up.
//!
//! `GLOVEBOX_TEST_KILLS=50` makes it long.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Server, Start, Trial, is_full, processes_with, wait_until, with};

use crate::sessions_ground::{PATIENCE, Talk, bash, on_terminal, piped};

/// Says a number each time it is typed to, so that a gap or a number twice would show.
const COUNTS: &str = "n=0; while read x; do n=$((n+1)); echo at $n.; [ $x = over ] && exit $((40 + n % 10)); done; exit 99";

fn counting(number: usize) -> Value {
    let argv = ["sh", "-c", COUNTS];
    let body = match number % 3 {
        0 => piped(&argv),
        1 => on_terminal(&argv),
        _ => with(piped(&argv), json!({"project_id": format!("own-{number}")})),
    };
    with(body, json!({"client_id": format!("session-{number}")}))
}

#[test]
fn a_killed_server_finds_every_session_again() {
    let (sessions, kills) = match is_full() {
        true => (20, 50),
        false => (4, 3),
    };
    let trial = Trial::in_memory(Caller::Root).expect("root");
    let mut server = Start::default().on(&trial);
    let mut talks: Vec<Talk> = (0..sessions)
        .map(|number| Talk::start(&server.client(), &counting(number)))
        .collect();
    for kill in 1..=kills {
        for talk in &mut talks {
            talk.submit("on");
        }
        server.kill();
        server = Start::default().on(&trial);
        for talk in &mut talks {
            talk.client = talk.client.at(server.address);
            assert_eq!(talk.info()["state"], "running", "{}", talk.info());
            talk.until(&format!("at {kill}."));
        }
    }
    // One that was stopped as it should be leaves them alone, too.
    assert_eq!(server.stop(), 0);
    let server = Start::default().on(&trial);
    for talk in &mut talks {
        talk.client = talk.client.at(server.address);
        talk.submit("over");
        let ended = talk.until_end();
        assert_eq!(ended["exit_code"], 40 + (kills + 1) % 10, "{ended}");
        assert_eq!(ended["state"], "exited");
        assert!(ended["receipt"]["seq"].is_u64(), "{ended}");
    }
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// A server that dies after it has typed and before it has kept its answer: who asks again is answered,
/// and nothing is typed twice.
#[test]
fn what_a_killed_server_has_typed_is_not_typed_again() {
    let trial = Trial::in_memory(Caller::Root).expect("root");
    let mut server = Start::default().on(&trial);
    let mut talk = Talk::start(&server.client(), &piped(&["sh", "-c", COUNTS]));
    let send = |talk: &Talk| {
        let keyed = talk.client.clone().with("Idempotency-Key", "once");
        keyed.post(&talk.path("/input"), &json!({"submit": "on"}))
    };
    assert_eq!(send(&talk).status, 200);
    talk.until("at 1.");
    server.kill();
    let database =
        rusqlite::Connection::open(trial.state().join("glovebox.db")).expect("a database");
    let forgot = database.execute(
        "UPDATE request_keys SET status = NULL, body = NULL, content_type = NULL WHERE key = 'once'",
        [],
    );
    assert_eq!(forgot.expect("an update"), 1);
    drop(database);
    let server = Start::default().on(&trial);
    talk.client = talk.client.at(server.address);
    let again = send(&talk);
    assert_eq!(again.status, 200, "{}", again.text());
    talk.submit("over");
    talk.until_end();
    assert_eq!(talk.text(), "at 1.\nat 2.\n");
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// A session waits in vain for a server only so long.
#[test]
fn without_a_server_everything_ends_in_time() {
    let trial = Trial::in_memory(Caller::Root).expect("root");
    let start = || Start::default().patience("orphans", Duration::from_millis(1500));
    let mut server = start().on(&trial);
    let mut talk = Talk::start(&server.client(), &bash());
    talk.until("ready> ");
    server.kill();
    let ends = wait_until(PATIENCE, || processes_with(trial.tag()).is_empty());
    assert!(ends, "{:?}", processes_with(trial.tag()));
    let server = start().on(&trial);
    talk.client = talk.client.at(server.address);
    let ended = talk.info();
    assert_eq!(ended["state"], "killed", "{ended}");
    assert_eq!(ended["exit_code"], Value::Null);
    // What it had put out is still there.
    assert!(
        talk.output(0, 0, 0)["stdout"]["content"]
            .to_string()
            .contains("ready> ")
    );
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// The keeper is killed: the program ends with it, and how it would have ended is not known.
#[test]
fn a_session_whose_keeper_was_killed_is_lost() {
    let trial = Trial::in_memory(Caller::Root).expect("root");
    let server = Start::default().on(&trial);
    let keeper = |server: &Server, before: &[u32]| {
        let mut found = processes_with("glovebox-session");
        found.retain(|pid| !before.contains(pid) && is_below(*pid, server.pid()));
        found
    };
    let mut talk = Talk::start(&server.client(), &bash());
    talk.until("ready> ");
    let kept_by = keeper(&server, &[]);
    assert_eq!(kept_by.len(), 1, "{kept_by:?}");
    let pid = rustix::process::Pid::from_raw(kept_by[0].cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("kill");
    let since = Instant::now();
    let lost = wait_until(PATIENCE, || talk.info()["state"] == "lost");
    assert!(lost, "{} after {:?}", talk.info(), since.elapsed());
    assert_eq!(talk.info()["exit_code"], Value::Null);
    let typed = talk.try_order("/input", &json!({"text": "id\n"}));
    assert_eq!(typed.status, 409, "{}", typed.text());
    // What it had put out is there, as far as it was written down.
    let kept = talk.output(0, 0, 0)["stdout"]["content"].to_string();
    assert!(kept.contains("ready> "), "{kept}");
    // Its record is closed, too, and says so.
    let closed = wait_until(PATIENCE, || talk.record()["status"] == "lost");
    assert!(closed, "{}", talk.record());
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

fn is_below(pid: u32, ancestor: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let parent = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
    match parent {
        Some(parent) => parent == ancestor || (parent > 1 && is_below(parent, ancestor)),
        None => false,
    }
}

/// One that waits for people when its keeper dies is not asked about any more.
#[test]
fn a_session_that_waited_ends_with_its_keeper() {
    let trial = Trial::in_memory(Caller::Root).expect("root");
    let start = crate::pool_fire::serve(&trial, crate::approvals_ground::MANUAL);
    let start = start.patience("orphans", Duration::from_secs(60));
    let server = start.on(&trial);
    let agent = server.client_of(&server.token_of("agent", "local", "robot"));
    let talk = Talk::start(&agent, &bash());
    assert_eq!(talk.info()["state"], "waiting");
    let approval = talk.record()["approval_id"]
        .as_str()
        .expect("an approval")
        .to_owned();
    let keepers = processes_with("glovebox-session");
    let keeper = keepers.into_iter().find(|pid| is_below(*pid, server.pid()));
    let pid = rustix::process::Pid::from_raw(keeper.expect("a keeper").cast_signed());
    rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::KILL)
        .expect("kill");
    let state = || talk.info()["state"].clone();
    assert!(wait_until(PATIENCE, || state() == "lost"), "{}", state());
    let asked = || {
        server
            .client()
            .get(&format!("/v1/approvals/{approval}"))
            .json()["state"]
            .clone()
    };
    assert!(wait_until(PATIENCE, || asked() != "pending"), "{}", asked());
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}
