//! The clock on the wall.

use std::ffi::OsStr;
use std::io::Read;
use std::time::{Duration, Instant};

use support::{Caller, processes_with, python, wait_until};

use super::beside_a_neighbour;

/// From the limit to the end of the program, its grace included.
const LATE: Duration = Duration::from_secs(15);
/// What anything here may need on a disk that is busy elsewhere.
const PATIENCE: Duration = Duration::from_secs(60);

fn times_out(caller: Caller, command: &[&str]) {
    beside_a_neighbour(caller, |trial| {
        let outcome = trial.run(command).with(["--timeout", "1s"]).json();
        outcome.expect("timed_out", 124, Some("wall"));
        assert_eq!(outcome.record["timed_out"], true);
        let took = Duration::from_millis(outcome.record["duration_ms"].as_u64().unwrap());
        let limit = Duration::from_secs(1);
        assert!((limit..limit + LATE).contains(&took), "{took:?}");
        assert!(outcome.took < limit + PATIENCE, "{:?}", outcome.took);
    });
}

pub fn a_timeout_is_kept(caller: Caller) {
    times_out(caller, &["/bin/sleep", "30"]);
}

/// Whoever does not read holds up the program, and neither the clock nor the record.
pub fn a_reader_that_does_not_read(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let script = ": > begun; yes | head -c 3000000; sleep 1000";
        let report = trial.work().join("report.json");
        let run = trial
            .run(["/bin/sh", "-c", script])
            .with(["--timeout", "3s"]);
        let mut child = run
            .with([OsStr::new("--report"), report.as_os_str()])
            .spawn();
        let mut output = child.stdout.take().unwrap();
        let begun = trial.work().join("begun");
        assert!(wait_until(PATIENCE, || begun.exists()), "it never began");
        // Nothing is read until it is over, and that is the case under test.
        let over = wait_until(PATIENCE, || {
            let alive = processes_with(trial.tag());
            alive.iter().all(|pid| *pid == child.id())
        });
        assert!(over, "the clock stood still");
        output.read_to_end(&mut Vec::new()).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(124));
        let record = std::fs::read_to_string(&report).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let took = record["duration_ms"].as_u64().unwrap();
        assert!(took >= 3000, "{took} ms");
    });
}

pub fn a_program_that_ignores_the_signal(caller: Caller) {
    let code = "
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: time.sleep(1)
";
    times_out(caller, &[python(), "-c", code]);
}

pub fn a_program_that_stopped_itself(caller: Caller) {
    times_out(
        caller,
        &[
            python(),
            "-c",
            "import os, signal\nos.kill(0, signal.SIGSTOP)",
        ],
    );
}

/// More on request: `GLOVEBOX_TEST_TIMER_RACES=1000`. Every moment around the limit has its turn.
pub fn an_end_at_the_very_moment_of_the_timeout(caller: Caller) {
    let asked = std::env::var("GLOVEBOX_TEST_TIMER_RACES").ok();
    let is_asked = asked.is_some();
    let usual = if support::is_full() { 60 } else { 12 };
    let rounds = asked.and_then(|text| text.parse().ok()).unwrap_or(usual);
    beside_a_neighbour(caller, |trial| {
        let since = Instant::now();
        let (mut succeeded, mut timed_out) = (0, 0);
        for round in 0..rounds {
            // A disk that is busy elsewhere makes each of them long.
            if since.elapsed() > PATIENCE && !is_asked {
                break;
            }
            // Around the limit, from just before to just after.
            let seconds = format!("0.{:03}", 92 + round % 12);
            let outcome = trial
                .run(["/bin/sleep", &seconds])
                .with(["--timeout", "100ms"])
                .json();
            match outcome.status() {
                "succeeded" => {
                    outcome.expect("succeeded", 0, None);
                    assert_eq!(outcome.record["timed_out"], false);
                    assert_eq!(outcome.record["exit_code"], 0);
                    succeeded += 1;
                }
                "timed_out" => {
                    outcome.expect("timed_out", 124, Some("wall"));
                    assert_eq!(outcome.record["timed_out"], true);
                    timed_out += 1;
                }
                other => panic!("`{other}` is no end of a sleep: {}", outcome.record),
            }
            assert!(
                outcome.record["receipt"]["seq"].is_u64(),
                "{}",
                outcome.record
            );
        }
        println!("{succeeded} succeeded, {timed_out} timed out");
    });
}
