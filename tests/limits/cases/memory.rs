//! Memory.

use support::{Caller, python};

use super::{UNDUMPABLE, beside_a_neighbour};

const LIMIT: [&str; 4] = ["--memory", "64M", "--timeout", "60s"];

/// In small steps with a breath in between: a watched limit needs a moment to be noticed. What is held
/// is held long enough for a loaded machine.
const GROW: &str = "
import os, time
def grow(mebibytes):
    held = []
    for _ in range(mebibytes):
        held.append(b'1' * (1 << 20))
        time.sleep(0.002)
    return held
";

pub fn one_process_that_grows(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let code = format!("{GROW}\nheld = grow(400)\ntime.sleep(20)");
        let outcome = trial.run([python(), "-c", &code]).with(LIMIT).json();
        outcome.expect("killed", 137, Some("memory"));
    });
}

/// It is in no process's own account, and the process may close its account.
pub fn a_memory_file_that_nobody_maps(caller: Caller) {
    let code = "
import os, time
held = os.memfd_create('held')
for _ in range(400):
    os.write(held, b'1' * (1 << 20))
    time.sleep(0.002)
time.sleep(20)
";
    beside_a_neighbour(caller, |trial| {
        for code in [code, &format!("{UNDUMPABLE}{code}")] {
            let outcome = trial.run([python(), "-c", code]).with(LIMIT).json();
            outcome.expect("killed", 137, Some("memory"));
        }
    });
}

/// Each stays far below the limit; together they do not.
pub fn many_processes_that_grow(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let code = format!(
            "{GROW}
for _ in range(12):
    if os.fork() == 0:
        held = grow(20)
        time.sleep(20)
        os._exit(0)
for _ in range(12):
    if os.wait()[1]: os._exit(5)
os._exit(0)"
        );
        let outcome = trial.run([python(), "-c", &code]).with(LIMIT).json();
        assert_eq!(outcome.limit_hit(), Some("memory"), "{}", outcome.record);
        // One that is too much is ended, and the program may go on or be that one.
        assert!(
            ["failed", "killed"].contains(&outcome.status()),
            "{}",
            outcome.record
        );
    });
}

/// A full memory file system is an error that a program can see, not its death.
pub fn memory_files_fill_up_before_memory_does(caller: Caller) {
    let code = "
import errno
try:
    with open('/dev/shm/large', 'wb') as file:
        while True: file.write(b'1' * (1 << 20))
except OSError as error:
    print(errno.errorcode[error.errno])
";
    beside_a_neighbour(caller, |trial| {
        let outcome = trial.run([python(), "-c", code]).with(LIMIT).json();
        outcome.expect("succeeded", 0, None);
        assert_eq!(outcome.text("stdout").trim(), "ENOSPC");
    });
}
