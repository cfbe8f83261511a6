//! Processes: too many, and those that try to stay.

use std::fs;
use std::time::Duration;

use support::{Caller, python};

use super::beside_a_neighbour;

/// What an exec that is over may take to return on a disk that is busy elsewhere: far less than those
/// sleep who are left.
const PROMPTLY: Duration = Duration::from_secs(60);

pub fn a_fork_bomb_that_gives_up(caller: Caller) {
    let code = "
import os, signal, sys, time
made = 0
try:
    while True:
        if os.fork() == 0:
            signal.pause()
        made += 1
except OSError:
    time.sleep(2)
    print(made, flush=True)
    os._exit(3)
";
    beside_a_neighbour(caller, |trial| {
        let run = trial.run([python(), "-c", code]);
        let outcome = run.with(["--pids", "32", "--timeout", "60s"]).json();
        outcome.expect("failed", 3, Some("pids"));
        let made: u32 = outcome.text("stdout").trim().parse().unwrap();
        assert!((28..=32).contains(&made), "{made} processes");
    });
}

pub fn a_fork_bomb_that_goes_on(caller: Caller) {
    let code = "
import os
while True:
    try: os.fork()
    except OSError: pass
";
    beside_a_neighbour(caller, |trial| {
        let run = trial.run([python(), "-c", code]);
        let outcome = run.with(["--pids", "64", "--timeout", "1500ms"]).json();
        outcome.expect("timed_out", 124, Some("pids"));
        assert!(
            outcome.took < Duration::from_millis(1500) + PROMPTLY,
            "{:?}",
            outcome.took
        );
    });
}

pub fn a_daemon_stops_with_its_exec(caller: Caller) {
    let code = "
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in (0, 1, 2): os.close(descriptor)
        beat = 0
        while True:
            beat += 1
            with open('heartbeat', 'w') as file: file.write(str(beat))
            time.sleep(0.005)
    os._exit(0)
while not os.path.exists('heartbeat'): time.sleep(0.005)
";
    beside_a_neighbour(caller, |trial| {
        let outcome = trial.run([python(), "-c", code]).json();
        outcome.expect("succeeded", 0, None);
        let heartbeat = trial.work().join("heartbeat");
        let last = fs::read_to_string(&heartbeat).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(
            fs::read_to_string(&heartbeat).unwrap(),
            last,
            "the daemon still beats"
        );
    });
}

pub fn a_sleeping_orphan_holds_nobody_up(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let command = ["/bin/sh", "-c", "setsid sleep 900 >/dev/null 2>&1 & exit 0"];
        let outcome = trial.run(command).json();
        outcome.expect("succeeded", 0, None);
        assert!(outcome.took < PROMPTLY, "{:?}", outcome.took);
    });
}

pub fn a_background_child_that_keeps_stdout_open(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let outcome = trial
            .run(["/bin/sh", "-c", "sleep 900 & echo done; exit 4"])
            .json();
        outcome.expect("failed", 4, None);
        assert_eq!(outcome.text("stdout"), "done\n");
        assert!(outcome.took < PROMPTLY, "{:?}", outcome.took);
    });
}

/// Children of the payload's own stay zombies until it ends; orphans are buried by pid 1 at once,
/// or the limit would be reached.
pub fn children_that_nobody_waits_for(caller: Caller) {
    let code = "
import os, time
for _ in range(100):
    if os.fork() == 0:
        os._exit(0)
def alive():
    return len([it for it in os.listdir('/proc') if it.isdigit()])
for _ in range(300):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
deadline = time.monotonic() + 30
while alive() > 110 and time.monotonic() < deadline: time.sleep(0.01)
print(alive() <= 110)
";
    beside_a_neighbour(caller, |trial| {
        let run = trial.run([python(), "-c", code]);
        let outcome = run.with(["--pids", "150", "--timeout", "60s"]).json();
        outcome.expect("succeeded", 0, None);
        assert_eq!(outcome.text("stdout").trim(), "True");
    });
}
