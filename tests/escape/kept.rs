//! A sandbox that is kept has one exec after another, and the one before is an enemy.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Caller, Server, Start, Trial, python};

/// More with `GLOVEBOX_TEST_FULL=1`.
fn wanted() -> usize {
    if support::is_full() { 6 } else { 2 }
}

fn serve(trial: &Trial) -> Server {
    let config = trial.home().join("config.toml");
    fs::write(&config, "[pool]\nenabled = false\n").unwrap();
    Start::default()
        .with(["--config", &config.to_string_lossy()])
        .on(trial)
}

fn exec(server: &Server, code: &str, argument: &str, timeout: &str) -> Value {
    let answer = server.exec(&json!({
        "project_id": "p",
        "sandbox": {"lifetime": "agent"},
        "task_ref": {"agent_id": "a"},
        "policy_overrides": {"pids": 64, "timeout": timeout},
        "exec": {"kind": "argv", "command": python(), "args": ["-c", code, argument]},
    }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// What lies in the exec's artifacts, with its size and time.
fn artifacts(trial: &Trial, record: &Value) -> Vec<(String, u64)> {
    let place = trial
        .state()
        .join(record["artifacts_dir"].as_str().unwrap());
    let mut found: Vec<_> = fs::read_dir(place)
        .unwrap()
        .flatten()
        .map(|it| {
            (
                it.file_name().to_string_lossy().into_owned(),
                it.metadata().unwrap().len(),
            )
        })
        .collect();
    found.sort();
    found
}

fn beats(work: &Path) -> u64 {
    fs::metadata(work.join("beat")).map_or(0, |it| it.len())
}

fn rounds(argument: &str, timeout: &str, status: &str) {
    let trial = Trial::new(Caller::Root).unwrap();
    let server = serve(&trial);
    let work = trial.state().join("projects/p/work");
    let mut sandbox = Value::Null;
    let (mut round, mut lively, wanted) = (0, 0, wanted());
    while lively < wanted {
        let left = exec(&server, include_str!("leave.py"), argument, timeout);
        assert_eq!(left["status"], status, "{left}");
        let (kept, beaten) = (artifacts(&trial, &left), beats(&work));
        let next = exec(&server, include_str!("look.py"), "", "60s");
        assert_eq!(next["status"], "succeeded", "{next}");
        assert_eq!(next["stdout"], "[]\n", "round {round}");
        let own: Vec<&Value> = next["artifacts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["path"])
            .collect();
        assert_eq!(own, ["mine"], "round {round}");
        assert_eq!(artifacts(&trial, &left), kept, "written after its end");
        assert_eq!(beats(&work), beaten, "something still writes");
        // All that in one and the same sandbox.
        assert_eq!(next["sandbox_id"], left["sandbox_id"]);
        if round > 0 {
            assert_eq!(next["sandbox_id"], sandbox);
        }
        sandbox = next["sandbox_id"].clone();
        round += 1;
        // On a disk that is busy elsewhere its time may be over before its first beat: that proves
        // little, and does not count.
        if beaten > 0 {
            lively += 1;
            fs::remove_file(work.join("beat")).unwrap();
        }
        assert!(round < 10 * wanted, "nothing of it ran");
    }
    let info = server.client().get("/v1/sandboxes").json();
    assert_eq!(info["items"][0]["uses"], 2 * round, "{info}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn nothing_of_an_exec_reaches_into_the_next() {
    rounds("", "60s", "succeeded");
}

#[test]
fn nothing_of_an_exec_that_timed_out_reaches_into_the_next() {
    rounds("stay", "1s", "timed_out");
}
