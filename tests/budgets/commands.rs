//! How Glovebox is started here, traced or not, and what one `glovebox run` spends.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Caller, Trial};

use crate::calls::{self, Counted, PAYLOAD};
use crate::table::{Spent, Unit};

/// The least of so many is what the code needs: others can only add to it.
const TRIES: usize = 5;

/// Waits for the command as only a parent can, and says how much it used: of small and large page faults
/// the sum, of it and its children, and of memory the most that one of them had.
const RUSAGE: &str = "\
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
assert status == 0, status
print(used.ru_minflt + used.ru_majflt, used.ru_maxrss)
";

/// The program, in an environment that is the same for everybody. With a log strace writes it, from
/// beside: who is started is the program itself.
pub(crate) fn traced(program: &Path, log: Option<&Path>) -> Command {
    let mut command = match log {
        None => Command::new(program),
        Some(log) => {
            let mut command = Command::new("strace");
            // Nothing that is passed is needed but paths.
            command.args(["-D", "-f", "-q", "-s", "256", "-o"]);
            command.arg(log).arg(program);
            command
        }
    };
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null());
    command
}

pub(crate) fn glovebox(binary: &Path, trial: &Trial, log: Option<&Path>) -> Command {
    let mut command = traced(binary, log);
    command
        .env("HOME", trial.home())
        .current_dir(trial.work())
        .arg("--state-dir")
        .arg(trial.state());
    command
}

/// A place of its own, where no disk is waited for.
pub(crate) fn trial() -> Trial {
    Trial::in_memory(Caller::Root).expect("root")
}

pub(crate) fn spent(binary: &Path) -> Vec<Spent> {
    let counted: Vec<Counted> = (0..TRIES).map(|_| count(binary)).collect();
    let used: Vec<(u64, u64)> = (0..TRIES).map(|_| used(binary)).collect();
    let least = |of: &dyn Fn(&Counted) -> u64| counted.iter().map(of).min().unwrap_or(0);
    [
        (Unit::Calls, least(&|it| it.calls)),
        (Unit::Syncs, least(&|it| it.syncs)),
        (Unit::Made, least(&|it| it.made)),
        (Unit::Faults, used.iter().map(|it| it.0).min().unwrap_or(0)),
        (
            Unit::ResidentKb,
            used.iter().map(|it| it.1).min().unwrap_or(0),
        ),
    ]
    .map(|(unit, amount)| Spent::new("run", unit, amount))
    .to_vec()
}

/// In a state directory in which one has run: the database's later writes depend on how many have.
fn warm(binary: &Path) -> Trial {
    let trial = trial();
    let mut first = glovebox(binary, &trial, None);
    let status = first.args(["run", "--", PAYLOAD]).status();
    assert!(status.expect("start glovebox").success());
    trial
}

fn count(binary: &Path) -> Counted {
    let trial = warm(binary);
    let log = trial.home().join("log");
    let mut command = glovebox(binary, &trial, Some(&log));
    let mut child = command
        .args(["run", "--", PAYLOAD])
        .spawn()
        .expect("start strace");
    assert!(child.wait().expect("its end").success());
    let text = calls::whole(&log);
    fs::remove_file(log).expect("remove the log");
    trial.end();
    calls::count(&text, &[0, text.len()])[0]
}

fn used(binary: &Path) -> (u64, u64) {
    let trial = warm(binary);
    let given = glovebox(binary, &trial, None);
    let mut command = traced(Path::new(support::python()), None);
    let output = command
        .args(["-I", "-S", "-c", RUSAGE])
        .arg(given.get_program())
        .args(given.get_args())
        .args(["run", "--", PAYLOAD])
        .env("HOME", trial.home())
        .current_dir(trial.work())
        .output()
        .expect("start python");
    assert!(output.status.success(), "{output:?}");
    trial.end();
    let text = String::from_utf8(output.stdout).expect("two numbers");
    let (faults, resident) = text.trim().split_once(' ').expect("two numbers");
    let number = |text: &str| text.parse().expect("a number");
    (number(faults), number(resident))
}
