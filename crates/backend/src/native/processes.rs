//! What all processes of a sandbox use together, read from /proc.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Clock ticks per second of the numbers in /proc, fixed by the kernel's interface.
const TICKS: u64 = 100;
const PAGE: u64 = 4096;
/// More than any pids limit allows: a tree that grows while it is read still ends.
const MOST: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    /// Of their own.
    anon_bytes: u64,
    /// Shared memory that is mapped.
    shmem_bytes: u64,
    /// All together, with memory files that nobody has mapped.
    pub(super) memory_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) pids: u64,
    largest: Largest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Largest {
    pid: i32,
    pages: u64,
}

impl Sum {
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            anon_bytes: self.anon_bytes.max(other.anon_bytes),
            shmem_bytes: self.shmem_bytes.max(other.shmem_bytes),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            cpu_ms: self.cpu_ms.max(other.cpu_ms),
            pids: self.pids.max(other.pids),
            largest: other.largest,
        }
    }

    /// Ends the largest process, as the kernel's own OOM killer would. False if there was none.
    pub(super) fn end_largest(&self, init: i32) -> bool {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.largest.pid) else {
            return false;
        };
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        // The number may have a new owner by now; whoever is held must descend from pid 1.
        descends(self.largest.pid, init) && pidfd_send_signal(held, Signal::KILL).is_ok()
    }
}

fn descends(mut pid: i32, init: i32) -> bool {
    for _ in 0..MOST {
        if pid == init {
            return true;
        }
        match parent(pid) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Field 4 of proc_pid_stat(5).
fn parent(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// How memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Cheap, and never too low: pages that forked processes still share count for each.
    Upper,
    /// Dear: shared pages count in parts.
    Exact,
}

/// Every process from pid 1 of a sandbox downward, with each of its threads' children.
fn tree(init: i32, mut visit: impl FnMut(i32, u64)) {
    let mut waiting = vec![init];
    let mut seen = 0;
    while let Some(pid) = waiting.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        let mut threads = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            threads += 1;
            let children = fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            waiting.extend(
                children
                    .split_whitespace()
                    .filter_map(|it| it.parse::<i32>().ok()),
            );
        }
        visit(pid, threads);
    }
}

/// Everything below pid 1 of a sandbox, itself not counted among the pids.
pub(super) fn below(init: i32, count: Count) -> Sum {
    let mut sum = Sum::default();
    tree(init, |pid, threads| {
        sum.cpu_ms += ticks(pid).unwrap_or(0) * 1000 / TICKS;
        if pid == init {
            return;
        }
        sum.pids += threads;
        // Memory of its own: without pages of files, which the host can drop at any time.
        let pages = match count {
            Count::Upper => own_pages(pid),
            Count::Exact => exact_pages(pid).or_else(|| own_pages(pid)),
        };
        let (anon, shmem) = pages.unwrap_or_default();
        sum.anon_bytes += anon * PAGE;
        sum.shmem_bytes += shmem * PAGE;
        if anon + shmem > sum.largest.pages {
            sum.largest = Largest {
                pid,
                pages: anon + shmem,
            };
        }
    });
    // A memory file that is written and not mapped is in nobody's account.
    let files = nameless_files(init, |_, file| is_memory(file)).bytes;
    sum.memory_bytes = sum.anon_bytes + sum.shmem_bytes.max(files);
    sum
}

fn is_memory(file: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(file).is_ok_and(|facts| facts.f_type == TMPFS_MAGIC)
}

/// What unlinked files take that processes of a sandbox still have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Nameless {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Of the file systems that count, each file once.
pub(super) fn nameless_files(init: i32, counts: impl Fn(u64, &Path) -> bool) -> Nameless {
    use std::os::unix::fs::MetadataExt;
    let mut seen = HashSet::new();
    let mut sum = Nameless::default();
    tree(init, |pid, _| {
        for held in fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            // Through the descriptor itself: the file has no other way to it.
            let Ok(facts) = fs::metadata(held.path()) else {
                continue;
            };
            let nameless = facts.is_file() && facts.nlink() == 0;
            if nameless
                && counts(facts.dev(), &held.path())
                && seen.insert((facts.dev(), facts.ino()))
            {
                sum.bytes = sum.bytes.saturating_add(facts.blocks() * 512);
                sum.files += 1;
            }
        }
    });
    sum
}

/// `RssAnon` and `RssShmem` of proc_pid_status(5), in kilobytes there.
fn own_pages(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let pages = |key: &str| kilobytes(&text, key).map(|it| it * 1024 / PAGE);
    Some((pages("RssAnon:")?, pages("RssShmem:")?))
}

/// `Pss_Anon` and `Pss_Shmem` of proc_pid_smaps_rollup, in kilobytes there.
fn exact_pages(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let pages = |key: &str| kilobytes(&text, key).map(|it| it * 1024 / PAGE);
    Some((pages("Pss_Anon:")?, pages("Pss_Shmem:")?))
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Its own time and that of the children it has buried: fields 14 to 17 of proc_pid_stat(5).
fn ticks(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(
        rest.split_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|it| it.parse::<u64>().ok())
            .sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_summed_with_its_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let sum = below(own, Count::Upper);
        let exact = below(own, Count::Exact);
        assert!(exact.memory_bytes <= sum.memory_bytes + (1 << 20));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(sum.pids >= 1);
        assert!(sum.memory_bytes > 0);
    }

    #[test]
    fn a_process_that_is_gone_counts_nothing() {
        assert_eq!(below(i32::MAX, Count::Exact), Sum::default());
    }
}
