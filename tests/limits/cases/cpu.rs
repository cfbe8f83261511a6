//! Processor time.

use support::{Caller, python};

use super::beside_a_neighbour;

fn burns(caller: Caller, code: &str) {
    beside_a_neighbour(caller, |trial| {
        let run = trial.run([python(), "-c", code]);
        let outcome = run.with(["--cpu-time", "1s", "--timeout", "60s"]).json();
        outcome.expect("killed", 137, Some("cpu"));
        let used = outcome.record["usage"]["cpu_ms"].as_u64().unwrap();
        // Far less than it would have had in its time; looks are late on a loaded machine.
        assert!((900..10_000).contains(&used), "used {used} ms");
    });
}

pub fn one_process_that_burns(caller: Caller) {
    burns(caller, "while True: pass");
}

pub fn two_processes_that_burn_together(caller: Caller) {
    burns(caller, "import os\nos.fork()\nwhile True: pass");
}

/// None of them uses much by itself.
pub fn many_short_processes_that_burn(caller: Caller) {
    let code = "
import os, time
while True:
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
    os.wait()
";
    burns(caller, code);
}
