//! Bytes and files on disk, and open files.

use support::{Caller, Outcome, Trial, python};

use super::{UNDUMPABLE, beside_a_neighbour};

/// How a run that fills something ends: by the kernel's or our hand, or by its own after an error.
#[derive(Clone, Copy)]
enum End {
    Killed,
    SeesAnError,
}

fn filled(trial: &Trial, options: &[&str], code: &str) -> Outcome {
    let run = trial.run([python(), "-c", code]);
    run.with(["--timeout", "60s"]).with(options).json()
}

fn fills(trial: &Trial, options: &[&str], code: &str, end: End, limit: &str) {
    let outcome = filled(trial, options, code);
    match end {
        End::Killed => outcome.expect("killed", 137, Some(limit)),
        End::SeesAnError => outcome.expect("failed", 1, Some(limit)),
    }
}

const DISK: [&str; 2] = ["--disk", "32M"];

/// Each file alone is far below the limit. Who is ended from outside waits for it: on a loaded machine
/// nobody may look before all is written.
const MANY: &str = "
import time
block = b'1' * (1 << 20)
for number in range(400):
    with open(f'{PLACE}/{number}', 'wb') as file:
        file.write(block)
        file.flush()
time.sleep(20)
";

fn many(place: &str) -> String {
    format!("PLACE = {place:?}\n{MANY}")
}

pub fn one_file_in_the_workspace(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let run = trial.run(["/bin/sh", "-c", "exec head -c 256M /dev/zero > large"]);
        let outcome = run.with(DISK).json();
        outcome.expect("killed", 137, Some("disk"));
        let size = std::fs::metadata(trial.work().join("large")).unwrap().len();
        assert!(size <= 32 << 20, "{size} bytes");
    });
}

pub fn one_file_by_a_program_that_sees_the_error(caller: Caller) {
    let code = "
with open('large', 'wb') as file:
    for _ in range(256): file.write(b'1' * (1 << 20))
";
    beside_a_neighbour(caller, |trial| {
        fills(trial, &DISK, code, End::SeesAnError, "disk")
    });
}

pub fn many_files_in_the_workspace(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        fills(trial, &DISK, &many("."), End::Killed, "disk")
    });
}

/// A scratch workspace has a quota of its own; artifacts are on the host's disk all the same.
pub fn many_artifacts(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let options = ["--disk", "32M", "--scratch"];
        fills(
            trial,
            &options,
            &many("/workspace/artifacts"),
            End::Killed,
            "disk",
        )
    });
}

/// Nobody but root can count what lies there. For anybody else it is what the disk has less, so one
/// who frees as much at the same time hides it, and it is tried again.
pub fn files_in_a_directory_that_is_closed_to_us(caller: Caller) {
    const ATTEMPTS: usize = 4;
    let code = format!("import os\nos.mkdir('closed', 0o300)\n{}", many("closed"));
    beside_a_neighbour(caller, |trial| {
        let closed = trial.work().join("closed");
        let seen = (0..ATTEMPTS).any(|_| {
            let outcome = filled(trial, &DISK, &code);
            std::fs::remove_dir_all(&closed).unwrap();
            let is_seen = outcome.status() == "killed";
            if is_seen {
                outcome.expect("killed", 137, Some("disk"));
            }
            is_seen
        });
        assert!(seen, "nobody saw it");
    });
}

/// 128 and the numbers of the signals that the kernel sends for time and size.
pub fn an_exit_code_that_looks_like_a_limit_is_none(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        for code in [137, 152, 153] {
            let run = trial.run(["/bin/sh", "-c", &format!("exit {code}")]);
            let outcome = run.with(["--cpu-time", "1s"]).json();
            outcome.expect("failed", code, None);
        }
    });
}

/// They take space that no directory shows.
pub fn files_without_a_name_in_the_workspace(caller: Caller) {
    let code = "
import os, time
held = []
for number in range(100):
    held.append(open('nameless', 'wb'))
    os.unlink('nameless')
    held[-1].write(b'1' * (4 << 20))
    held[-1].flush()
time.sleep(20)
";
    beside_a_neighbour(caller, |trial| {
        for code in [code, &format!("{UNDUMPABLE}{code}")] {
            fills(trial, &DISK, code, End::Killed, "disk");
        }
    });
}

pub fn one_file_in_temporary_space(caller: Caller) {
    let code = "
with open('/tmp/large', 'wb') as file:
    for _ in range(256): file.write(b'1' * (1 << 20))
";
    beside_a_neighbour(caller, |trial| {
        fills(trial, &DISK, code, End::SeesAnError, "disk")
    });
}

pub fn many_files_in_temporary_space(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"] {
            fills(trial, &DISK, &many(place), End::SeesAnError, "disk");
        }
    });
}

pub fn a_scratch_workspace(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let options = ["--scratch", "--disk", "32M"];
        fills(trial, &options, &many("."), End::SeesAnError, "disk");
    });
}

const FILES: &str = "
import time
for number in range(20000): open(f'{number}', 'w').close()
time.sleep(20)
";

pub fn too_many_files_in_the_workspace(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        fills(trial, &["--files", "300"], FILES, End::Killed, "inodes");
    });
}

pub fn too_many_files_in_a_scratch_workspace(caller: Caller) {
    beside_a_neighbour(caller, |trial| {
        let options = ["--scratch", "--files", "300"];
        fills(trial, &options, FILES, End::SeesAnError, "inodes");
    });
}

pub fn too_many_open_files(caller: Caller) {
    let code = "
import os
held = 0
try:
    while True:
        os.open('/dev/null', os.O_RDONLY)
        held += 1
except OSError as error:
    print(held, error.errno)
";
    beside_a_neighbour(caller, |trial| {
        let run = trial.run([python(), "-c", code]);
        let outcome = run.with(["--open-files", "64"]).json();
        outcome.expect("succeeded", 0, None);
        let said = outcome.text("stdout").trim().to_owned();
        let (held, errno) = said.split_once(' ').unwrap();
        assert!(held.parse::<u32>().unwrap() < 64 && errno == "24", "{said}");
    });
}
