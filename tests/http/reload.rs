//! What a server's operator does to it while it runs, and who goes first when memory runs out.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;
use support::{Caller, Client, Column, Docker, Gate, Trial, sh, wait_until, with};

use crate::pool_fire::{PATIENT, SOON, serve};

/// The time that an exec without a wish gets.
fn timeout(client: &Client) -> u64 {
    let ran = client.post("/v1/execs", &sh("true"));
    assert_eq!(ran.status, 200, "{}", ran.text());
    let record = ran.json();
    let limit = record["policy_snapshot"]["limits"]["wall_ms"].as_u64();
    limit.unwrap_or_else(|| panic!("{record}"))
}

#[test]
fn a_signal_reads_the_configuration_anew_and_a_bad_one_changes_nothing() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let config = trial.home().join("config.toml");
    let mut server = serve(&trial, PATIENT).on(&trial);
    let client = server.client();
    let runs = client.begin(&sh(&gate.wait()));
    client.record_when(&runs, |it| it["status"] == "running");
    assert_eq!(timeout(&client), 300_000);
    fs::write(&config, "[settings]\ntimeout = \"9s\"\n").unwrap();
    server.signal(Signal::HUP);
    assert!(wait_until(SOON, || timeout(&client) == 9_000));
    for bad in [
        "[settings]\ntimeout = \"nine\"\n",
        "[settings]\ntimeout = \"20h\"\n",
        "no toml",
        "[settings]\nunknown = 1\n",
    ] {
        let complaints = |said: &str| said.matches("stays as it was").count();
        let before = complaints(&server.said());
        fs::write(&config, bad).unwrap();
        server.signal(Signal::HUP);
        let told = wait_until(SOON, || complaints(&server.said()) > before);
        assert!(told, "{bad}: {}", server.said());
        assert_eq!(timeout(&client), 9_000, "{bad}");
    }
    // One that is not there is no configuration that allows everything.
    fs::remove_file(&config).unwrap();
    server.signal(Signal::HUP);
    assert!(wait_until(SOON, || server
        .said()
        .matches("stays as it was")
        .count()
        == 5));
    assert_eq!(timeout(&client), 9_000);
    // What ran meanwhile has the limit that it began with.
    assert_eq!(client.record(&runs)["status"], "running");
    gate.open();
    let record = client.ended(&runs);
    assert_eq!(record["status"], "succeeded", "{record}");
    assert_eq!(record["policy_snapshot"]["limits"]["wall_ms"], 300_000);
    let noted = client.get("/v1/audit?kind=administered&limit=50").text();
    assert_eq!(
        noted.matches("event:configuration_reloaded").count(),
        1,
        "{noted}"
    );
    client.verify_ledger();
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Not every root may: a host may keep that power for itself.
fn may_be_lowered() -> bool {
    let lowered = "echo -900 > /proc/self/oom_score_adj";
    let tried = Command::new("sh")
        .args(["-c", lowered])
        .stderr(Stdio::null())
        .status();
    tried.unwrap().success()
}

#[test]
fn memory_is_taken_from_what_runs_before_the_server() {
    for column in Column::ALL.into_iter().filter(|it| it.is_here()) {
        let trial = Trial::new(Caller::Root).unwrap();
        let mut start = serve(&trial, "[pool]\nenabled = false\n");
        if let Some(docker) = Docker::shared().filter(|_| column.is_docker()) {
            start = start.outside("DOCKER_HOST", docker.host());
        }
        let server = start.on(&trial);
        let score = |pid: u32| {
            let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
            score.trim().parse::<i32>().unwrap()
        };
        let own = score(server.pid());
        assert_eq!(own, if may_be_lowered() { -900 } else { 0 });
        for keeper in crate::ends::children(server.pid(), "glovebox-spawner") {
            assert_eq!(score(keeper), own);
        }
        let wishes = json!({"backend": column.backend(), "runtime": column.runtime()});
        let order = with(
            sh(
                "cat /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj; \
                cat /proc/self/oom_score_adj",
            ),
            json!({"policy_overrides": wishes}),
        );
        let record = server.exec(&order).json();
        // A kernel of its own tells its own number.
        if column != Column::Runsc {
            assert_eq!(record["stdout"], "1000\n1000\n", "{column}: {record}");
        }
        assert_eq!(server.stop(), 0);
        column.assert_no_container(&trial);
        trial.end();
    }
}
