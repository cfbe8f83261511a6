//! Signals, closed streams and dead parents: a run that nobody wants any more ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_model::Status;
use rustix::process::Signal;

use crate::bench::{Bench, Running, binary};
use crate::traces;
use crate::wait::{PATIENCE, Watched, until};

const DEAF: &str = "trap '' TERM HUP INT QUIT; : > running\nwhile :; do sleep 1000; done";

/// The grace is 5 s; anything near it was waited out.
const NO_GRACE: Duration = Duration::from_secs(4);
/// A disk that is busy elsewhere takes as long as a grace now and then, and not each time.
const ATTEMPTS: usize = 4;

fn only_status(bench: &Bench) -> Status {
    let execs = bench.execs();
    assert_eq!(execs.len(), 1);
    execs[0].status
}

fn canceled_by(signal: Signal) {
    let bench = Bench::new();
    let running = bench.start(&[], ": > running; sleep 1000");
    running.signal(signal);
    let ended = running.wait();
    ended.assert_code(130);
    bench.assert_nothing_left();
    assert_eq!(only_status(&bench), Status::Canceled);
    bench.assert_sound(&[]);
}

#[test]
fn an_interrupt_cancels_the_run() {
    canceled_by(Signal::INT);
}

#[test]
fn a_termination_cancels_the_run() {
    canceled_by(Signal::TERM);
}

#[test]
fn a_hangup_cancels_the_run() {
    canceled_by(Signal::HUP);
}

#[test]
fn the_payload_is_asked_to_stop_and_may_tidy_up() {
    let bench = Bench::new();
    let script = "trap 'echo tidied; exit 0' TERM; : > running\nwhile :; do sleep 0.01; done";
    let running = bench.start(&[], script);
    running.signal(Signal::INT);
    let ended = running.wait();
    ended.assert_code(130);
    assert_eq!(ended.stdout(), "tidied\n");
}

#[test]
fn a_second_signal_ends_a_payload_that_is_deaf_to_the_first_at_once() {
    let at_once = (0..ATTEMPTS).any(|_| {
        let bench = Bench::new();
        let script = "trap ': > asked' TERM; : > running\nwhile :; do sleep 0.01; done";
        let running = bench.start(&[], script);
        running.signal(Signal::INT);
        // Two signals that are pending together are one.
        until("the payload was asked to stop", || {
            bench.mark("asked").exists()
        });
        let since = Instant::now();
        running.signal(Signal::INT);
        running.wait().assert_code(130);
        let took = since.elapsed();
        bench.assert_nothing_left();
        assert_eq!(only_status(&bench), Status::Canceled);
        took < NO_GRACE
    });
    assert!(at_once, "it waits for the grace");
}

#[test]
fn a_deaf_payload_is_killed_after_the_grace_of_one_signal() {
    let bench = Bench::new();
    let running = bench.start(&[], DEAF);
    running.signal(Signal::TERM);
    running.wait().assert_code(130);
    bench.assert_nothing_left();
}

#[test]
fn a_stopped_payload_can_be_canceled() {
    let bench = Bench::new();
    let running = bench.start(&[], ": > running; kill -STOP $$");
    running.signal(Signal::INT);
    running.wait().assert_code(130);
    bench.assert_nothing_left();
}

/// At any moment before the payload: during start-up a signal must not be lost or leave anything.
#[test]
fn a_signal_during_the_start_leaves_nothing() {
    let bench = Bench::new();
    bench.run(&[], &["true"]).assert_code(0);
    for delay_us in (0..60_000).step_by(2_500) {
        let at_once = (0..ATTEMPTS).any(|_| {
            let child = bench
                .command(&[], &["sleep", "1000"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let running = Running::new(child);
            let since = Instant::now();
            while since.elapsed() < Duration::from_micros(delay_us) {
                std::hint::spin_loop();
            }
            let since = Instant::now();
            running.signal(Signal::INT);
            let status = running.wait().output.status;
            let took = since.elapsed();
            let by_signal = status.signal() == Some(Signal::INT.as_raw());
            assert!(
                by_signal || status.code() == Some(130),
                "after {delay_us} µs: {status:?}"
            );
            took < NO_GRACE
        });
        assert!(at_once, "after {delay_us} µs it waits for the grace");
    }
    // A process that was ended by the signal itself could not tidy up; its keeper or this start does.
    bench.run(&[], &["true"]).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
    assert!(bench.execs().iter().all(|exec| exec.status.is_final()));
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let bench = Bench::new();
    let mut child = bench
        .command(&[], &["yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    drop(reader);
    Running::new(child).wait().assert_code(130);
    bench.assert_nothing_left();
    assert_eq!(only_status(&bench), Status::Canceled);
}

#[test]
fn a_run_outlives_its_parent_and_is_recorded() {
    let bench = Bench::new();
    let script = format!(
        "'{}' --state-dir '{}' run -- sh -c ': > running; until [ -e go ]; do :; done' & \
         echo $!; exec sleep 1000",
        binary().display(),
        bench.state().display()
    );
    let mut parent = Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let orphan = Watched::new(line.trim().parse().unwrap()).unwrap();
    until("the payload runs", || bench.mark("running").exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    std::fs::write(bench.mark("go"), "").unwrap();
    assert!(orphan.has_ended_within(PATIENCE));
    bench.assert_nothing_left();
    assert_eq!(only_status(&bench), Status::Succeeded);
}

/// A terminal that is closed hangs up its whole session.
#[test]
fn a_closed_terminal_ends_the_run() {
    let bench = Bench::new();
    let script = format!(
        "'{}' --state-dir '{}' run -- sh -c ': > running; sleep 1000'",
        binary().display(),
        bench.state().display()
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &script, "/dev/null"])
        .current_dir(bench.work())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the payload runs", || bench.mark("running").exists());
    let family = traces::family(i32::try_from(terminal.id()).unwrap());
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    for one in &family {
        assert!(one.has_ended_within(PATIENCE), "{one:?} lives on");
    }
    bench.assert_nothing_left();
    assert_eq!(only_status(&bench), Status::Canceled);
}
