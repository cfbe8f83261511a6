//! System calls, as `strace -f` writes them down.
//!
//! Counted are all processes that Glovebox is and starts, each up to the moment in which it becomes the
//! payload. Not counted is what depends on the scheduler and not on the code:
//! - waiting, and waking those who wait ([`WAITING`]);
//! - what is interrupted, or answered that there is nothing yet, and comes again;
//! - reading a sandbox's control groups and how full its disk is: supervision looks at them for as long as
//!   a payload runs, and a payload that waits for a processor runs longer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// What each exec of these tests runs.
pub(crate) const PAYLOAD: &str = "/bin/true";

const WAITING: &[&str] = &[
    "clock_nanosleep",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "futex",
    "nanosleep",
    "poll",
    "ppoll",
    "pselect6",
    "restart_syscall",
    "rt_sigreturn",
    "sched_yield",
    "select",
];

const SYNCING: &[&str] = &[
    "fdatasync",
    "fsync",
    "msync",
    "sync",
    "sync_file_range",
    "syncfs",
];

/// What gives a directory one entry more. A rename does not: what it moves was counted when it was made.
const MAKING: &[&str] = &[
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "symlink",
    "symlinkat",
];

/// Where opening never makes anything, whatever it asks for.
const KERNELS: [&str; 2] = ["\"/sys/", "\"/proc/"];

/// How a thread of the server is woken out of its `epoll_wait`.
const WAKING: &str = r#", "\1\0\0\0\0\0\0\0", 8"#;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) calls: u64,
    pub(crate) syncs: u64,
    /// Directories, links, nodes and files. An open that makes what is not there counts as if it was
    /// not: strace does not tell.
    pub(crate) made: u64,
}

/// The log once all processes in it have ended.
pub(crate) fn whole(log: &Path) -> String {
    let mut text = String::new();
    let ended = support::wait_until(Duration::from_secs(60), || {
        let bytes = std::fs::read(log).unwrap_or_default();
        // Only what has stopped growing is worth reading.
        let is_still = bytes.len() == text.len();
        text = String::from_utf8(bytes).expect("strace writes no other characters");
        is_still && is_over(&text)
    });
    assert!(ended, "strace has not seen the end of everything");
    text
}

fn is_over(text: &str) -> bool {
    let mut running = BTreeSet::new();
    for (pid, said) in text.lines().filter_map(|line| line.split_once(' ')) {
        match said.trim_start().starts_with("+++") {
            true => running.remove(pid),
            false => running.insert(pid),
        };
    }
    running.is_empty() && !text.is_empty()
}

/// What was called between each two cuts of the log, which are in bytes. What took longer counts where
/// it ended.
pub(crate) fn count(text: &str, cuts: &[usize]) -> Vec<Counted> {
    let mut reader = Reader::default();
    let mut counted = vec![Counted::default(); cuts.len() - 1];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begun = cuts.iter().take_while(|cut| **cut <= at).count();
        at += line.len();
        let Some(call) = reader.read(line.trim_end()) else {
            continue;
        };
        let Some(it) = begun.checked_sub(1).and_then(|it| counted.get_mut(it)) else {
            continue;
        };
        it.calls += 1;
        it.syncs += u64::from(call.is_sync());
        it.made += u64::from(call.has_made());
    }
    counted
}

struct Call {
    name: String,
    arguments: String,
    result: String,
}

impl Call {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        Some(Self {
            name: name.to_owned(),
            arguments: arguments.trim_end().to_owned(),
            result: result.to_owned(),
        })
    }

    fn has_failed(&self) -> bool {
        self.result.starts_with("-1")
    }

    fn is_about_time(&self) -> bool {
        WAITING.contains(&self.name.as_str())
            || self.result.contains("ERESTART")
            || ["EAGAIN", "EINTR"]
                .iter()
                .any(|it| self.result.contains(it))
            || (self.name == "write" && self.arguments.contains(WAKING))
    }

    fn is_sync(&self) -> bool {
        SYNCING.contains(&self.name.as_str())
    }

    fn has_made(&self) -> bool {
        let opens = self.name.starts_with("open") && self.arguments.contains("O_CREAT");
        let is_real = !KERNELS.iter().any(|it| self.arguments.contains(it));
        !self.has_failed() && (MAKING.contains(&self.name.as_str()) || (opens && is_real))
    }

    fn reads_group(&self) -> bool {
        let group = self.arguments.contains("\"/sys/fs/cgroup/");
        let ours = self.arguments.contains("/glovebox-");
        group && ours && !self.arguments.contains("O_WRONLY")
    }

    /// The descriptor that it is about.
    fn descriptor(&self) -> &str {
        self.arguments.split([',', ')']).next().unwrap_or_default()
    }
}

#[derive(Default)]
struct Reader {
    /// By the process that is in it.
    unfinished: BTreeMap<String, String>,
    payloads: BTreeSet<String>,
    /// Descriptors of control groups that are read, and whose they are.
    looks: BTreeSet<(String, String)>,
}

impl Reader {
    /// The call that ended with this line, if it counts.
    fn read(&mut self, line: &str) -> Option<Call> {
        let (pid, said) = line.split_once(' ')?;
        let said = said.trim_start();
        if said.starts_with("+++") {
            self.payloads.remove(pid);
            self.unfinished.remove(pid);
            return None;
        }
        if let Some(begun) = said.strip_suffix("<unfinished ...>") {
            self.unfinished.insert(pid.to_owned(), begun.to_owned());
            return None;
        }
        let text = match said.strip_prefix("<... ") {
            Some(rest) => {
                let (_, rest) = rest.split_once("resumed>")?;
                self.unfinished.remove(pid)? + rest
            }
            None => said.to_owned(),
        };
        let call = Call::parse(&text)?;
        if self.payloads.contains(pid) || call.is_about_time() || self.is_look(pid, &call) {
            return None;
        }
        let is_payload = call.arguments.starts_with(&format!("{PAYLOAD:?}"));
        if call.name == "execve" && is_payload && !call.has_failed() {
            self.payloads.insert(pid.to_owned());
        }
        Some(call)
    }

    /// Opening, reading or closing what tells how much a sandbox uses.
    fn is_look(&mut self, pid: &str, call: &Call) -> bool {
        if call.name == "openat" && call.reads_group() {
            self.looks.insert((pid.to_owned(), call.result.clone()));
            return true;
        }
        let about = (pid.to_owned(), call.descriptor().to_owned());
        match call.name.as_str() {
            "close" => self.looks.remove(&about),
            "read" | "pread64" | "fstat" | "lseek" | "statx" => self.looks.contains(&about),
            "fstatfs" => true,
            _ => false,
        }
    }
}
