//! What an end means: the program's own, a limit's, a cancellation's, or a refusal of the engine's,
//! which must never pass for the program's.

use std::time::Duration;

use glovebox_model::{Code, Error, LimitKind, Limits, Stage, Usage};

use super::attend::{Attended, Reason};
use super::cli::shorten;
use crate::ended::{Ended, Ending};

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// The end of a program that did run. `oom`: the kernel ended something of it for memory.
pub(super) fn ended(
    attended: &Attended,
    code: i32,
    oom: bool,
    limits: &Limits,
    lasted: Duration,
) -> Ended {
    let used = &attended.used;
    // An engine tells a signal as a shell does, and so does a program that says so itself: it is
    // only certain when it was ours.
    let shell_signal = Some(code - 128).filter(|signal| (1..=64).contains(signal));
    let oom = oom || used.oom_kills > 0;
    let burnt = used.cpu_us / 1000 >= limits.cpu_ms.get();
    // What was ended for memory had all that it may have, even if its account was gone too soon to be
    // read.
    let full = if oom { limits.memory_bytes.get() } else { 0 };
    let ran_into = match shell_signal {
        Some(SIGXCPU | SIGKILL) if burnt => Some(LimitKind::Cpu),
        Some(SIGXCPU) => Some(LimitKind::Cpu),
        Some(SIGXFSZ) => Some(LimitKind::Disk),
        _ if oom => Some(LimitKind::Memory),
        _ if used.pids_refused > 0 => Some(LimitKind::Pids),
        _ => attended.disk.met_by(code == 0),
    };
    let (ending, limit_hit) = match attended.reason {
        Some(Reason::Canceled) => (Ending::Canceled, None),
        Some(Reason::Limit(LimitKind::Wall)) => {
            (Ending::TimedOut, Some(ran_into.unwrap_or(LimitKind::Wall)))
        }
        Some(Reason::Limit(LimitKind::Idle)) => (Ending::TimedOut, Some(LimitKind::Idle)),
        Some(Reason::Limit(limit)) => (Ending::LimitKilled, Some(limit)),
        None if shell_signal == Some(SIGKILL) && (oom || burnt) => (Ending::LimitKilled, ran_into),
        None if matches!(shell_signal, Some(SIGXCPU | SIGXFSZ)) => (Ending::LimitKilled, ran_into),
        None => (Ending::Exited { code }, ran_into),
    };
    let ours = !matches!(ending, Ending::Exited { .. });
    Ended {
        ending,
        signal: shell_signal.filter(|_| ours),
        limit_hit,
        duration: lasted,
        usage: Usage {
            cpu_ms: used.cpu_us / 1000,
            max_memory_bytes: used.max_memory.max(full),
            max_pids: used.max_pids,
        },
        notices_dropped: 0,
    }
}

/// Whether the engine, its runtime or its init said that there is no such program; by what it said.
pub(super) fn refusal(said: &str) -> Option<Error> {
    let engines = said.starts_with("[FATAL tini (")
        || said.starts_with("ERROR (catatonit")
        || said.contains("OCI runtime")
        || said.starts_with("Error: crun:")
        || said.starts_with("Error: runc:");
    if !engines {
        return None;
    }
    let lower = said.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    let shortage = has(&[
        "setrlimit",
        "cgroup",
        "resource temporarily unavailable",
        "fork/exec",
    ]);
    let error = if shortage {
        setup_failed()
    } else if has(&["chdir", "working directory", "mkdir /"]) {
        Error::new(
            Code::CwdNotFound,
            Stage::Run,
            "the working directory cannot be entered",
        )
    } else if has(&[
        "permission denied",
        "exec format",
        "not executable",
        "is a directory",
    ]) {
        Error::new(
            Code::CommandNotExecutable,
            Stage::Run,
            "the command cannot be executed",
        )
        .hint("is it executable (`chmod +x`) and made for this machine?")
    } else if has(&["not found", "no such file"]) {
        Error::new(
            Code::CommandNotFound,
            Stage::Run,
            "the command was not found",
        )
        .hint("programs come from the image; `docker run IMAGE ls /usr/bin` shows them")
    } else {
        setup_failed()
    };
    Some(error.caused_by(shorten(said)))
}

fn setup_failed() -> Error {
    Error::new(
        Code::SetupFailed,
        Stage::Run,
        "the container engine could not start the program",
    )
}

/// The container went away while the program ran.
pub(super) fn lost(why: &str) -> Error {
    Error::new(
        Code::Lost,
        Stage::Run,
        "the container was taken away while the program ran",
    )
    .caused_by(why)
    .hint("somebody removed or stopped it with the engine's own commands")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        for (said, code) in [
            (
                "[FATAL tini (7)] exec nosuch failed: No such file or directory",
                Code::CommandNotFound,
            ),
            (
                "[FATAL tini (7)] exec /etc/passwd failed: Permission denied",
                Code::CommandNotExecutable,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"nosuch\": executable file not found in $PATH: unknown",
                Code::CommandNotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd (\"/nope\") set in config.json failed: no such file or directory: unknown",
                Code::CwdNotFound,
            ),
            (
                "OCI runtime exec failed: executing processes for container: executing command \"ls\" in sandbox: failed to find initial working directory \"/nope\": no such file or directory: unknown",
                Code::CwdNotFound,
            ),
            (
                "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
                Code::SetupFailed,
            ),
            (
                "Error response from daemon: failed to create shim task: OCI runtime create failed: container_linux.go: fork/exec: resource temporarily unavailable",
                Code::SetupFailed,
            ),
        ] {
            assert_eq!(refusal(said).map(|it| it.code), Some(code), "{said}");
        }
        for said in ["", "bash: nosuch: command not found", "Error: no such file"] {
            assert_eq!(refusal(said), None, "{said}");
        }
    }
}
