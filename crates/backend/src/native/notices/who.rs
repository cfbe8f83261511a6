//! Who made a call, by the numbers that the sandbox itself uses.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::notice::{Notice, Noticed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    /// As the host numbers it.
    pub(super) process: i32,
    pub(super) pid: u32,
    pub(super) parent: u32,
}

/// Threads that were seen lately. Asking the kernel who one is costs more than all else that is read
/// of its call.
#[derive(Debug, Default)]
pub(super) struct Acquaintances(HashMap<i32, (Instant, Who)>);

/// Nobody else has its number so soon: the kernel gives out all others first.
const REMEMBERED: Duration = Duration::from_secs(1);
const REMEMBERED_MAX: usize = 256;

impl Acquaintances {
    pub(super) fn who(&mut self, thread: i32) -> Option<Who> {
        let now = Instant::now();
        match self.0.get(&thread) {
            Some((seen, who)) if now.duration_since(*seen) < REMEMBERED => Some(*who),
            _ => self.meet(thread, now),
        }
    }

    fn meet(&mut self, thread: i32, now: Instant) -> Option<Who> {
        let who = Who::of(thread)?;
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        self.0.insert(thread, (now, who));
        Some(who)
    }
}

impl Who {
    /// None when it is gone.
    pub(super) fn of(thread: i32) -> Option<Self> {
        let text = status(thread)?;
        let process = field(&text, "Tgid:")?.parse().ok()?;
        let pid = innermost(&text)?;
        let parent = field(&text, "PPid:")?.parse().ok()?;
        let parent = status(parent).and_then(|text| innermost(&text));
        Some(Self {
            process,
            pid,
            parent: parent.unwrap_or(0),
        })
    }

    pub(super) fn notice(&self, what: Noticed) -> Notice {
        Notice {
            pid: self.pid,
            parent: self.parent,
            what,
        }
    }
}

/// Short, and given whole in one read. Its name is escaped to one line, but need not be text.
fn status(pid: i32) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("/proc/{pid}/status"), flags, Mode::empty()).ok()?;
    let mut buffer = [0; 4096];
    let length = rustix::io::read(file, &mut buffer[..]).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

/// One number for each namespace that it is in, ours first; only those inside have more than one.
fn innermost(text: &str) -> Option<u32> {
    let numbers = field(text, "NStgid:")?.split_whitespace();
    numbers.skip(1).last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_innermost_namespace() {
        let text = "Name:\tx\nTgid:\t77\nPid:\t78\nPPid:\t70\nNStgid:\t77\t5\nNSpid:\t78\t6\n";
        assert_eq!(field(text, "Tgid:"), Some("77"));
        assert_eq!(innermost(text), Some(5));
        assert_eq!(innermost("NStgid:\t77\n"), None);
        assert_eq!(innermost("Name:\tNStgid:\n"), None);
    }
}
