//! What all processes of a sandbox use together, read from /proc.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal,
};
use rustix::time::{ClockId, clock_gettime};

/// Clock ticks per second of the numbers in /proc, fixed by the kernel's interface.
const TICKS: u64 = 100;
const PAGE: u64 = 4096;
/// More than any pids limit allows: a tree that grows while it is read still ends.
const MOST: usize = 100_000;
/// Descriptors that are asked for one by one in one look: a program chooses how many numbers there are,
/// and limits must not wait for it.
const ASKS: u32 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// Of their own.
    anon_bytes: u64,
    /// Shared memory that is mapped.
    shmem_bytes: u64,
    /// All together, with memory files that nobody has mapped.
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_ms: u64,
    pub(crate) pids: u64,
    largest: Largest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Largest {
    pid: i32,
    pages: u64,
}

impl Sum {
    pub(crate) fn max(self, other: Self) -> Self {
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
    pub(crate) fn end_largest(&self, init: i32) -> bool {
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
    let mut buffer = [0; 1024];
    let parent = Fields::of(stat(pid, &mut buffer)?)?.number(4)?;
    parent.try_into().ok()
}

/// The one child of a process that has no other.
pub(crate) fn only_child(pid: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let mut children = children.split_whitespace();
    let child = children.next()?.parse().ok()?;
    children.next().is_none().then_some(child)
}

/// How far a process is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Not,
    /// With status 0 and for good: it runs no instruction of its own any more, only the kernel is still
    /// busy giving its memory back. Its parent hears of it after that.
    Well,
    /// Its parent has heard, or hears sooner than we.
    Gone,
}

impl Leaving {
    /// Only for one that [`tells_all`].
    pub(crate) fn of(pid: i32) -> Self {
        let mut buffer = [0; 1024];
        let text = stat(pid, &mut buffer);
        text.and_then(Self::read).unwrap_or(Self::Gone)
    }

    fn read(text: &str) -> Option<Self> {
        const EXITING: u64 = 4;
        let fields = Fields::of(text)?;
        if matches!(fields.state()?, "Z" | "X") {
            return Some(Self::Gone);
        }
        let exiting = fields.number(9)? & EXITING != 0;
        let alone = fields.number(20)? == 1;
        // Its memory is taken from it after its status was set.
        let memory_taken = fields.number(23)? == 0;
        let well = fields.number(52)? == 0;
        let left = exiting && alone && memory_taken && well;
        Some(if left { Self::Well } else { Self::Not })
    }
}

/// Whether a process has ended, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    /// It was still the program that made it.
    EndedAsMade,
    /// It was another, or nobody can say any more.
    Ended,
}

impl Fate {
    pub(crate) fn of(pid: i32) -> Self {
        let mut buffer = [0; 1024];
        let text = stat(pid, &mut buffer);
        text.and_then(Self::read).unwrap_or(Self::Ended)
    }

    fn read(text: &str) -> Option<Self> {
        const EXITING: u64 = 0x4;
        const NEVER_EXECUTED: u64 = 0x40;
        let fields = Fields::of(text)?;
        let flags = fields.number(9)?;
        let is_over = flags & EXITING != 0 || matches!(fields.state()?, "Z" | "X");
        Some(match (is_over, flags & NEVER_EXECUTED != 0) {
            (false, _) => Self::Lives,
            (true, true) => Self::EndedAsMade,
            (true, false) => Self::Ended,
        })
    }
}

/// Whether the kernel tells us everything of a process: its status only to those who may trace it, and
/// the others read 0 there. They read 1 for where its code begins as well, which is never true.
pub(crate) fn tells_all(pid: i32) -> bool {
    let mut buffer = [0; 1024];
    let code_begins = stat(pid, &mut buffer).and_then(|text| Fields::of(text)?.number(26));
    code_begins.is_some_and(|at| at > 1)
}

fn stat(pid: i32, buffer: &mut [u8; 1024]) -> Option<&str> {
    // Short, and given whole in one read.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("/proc/{pid}/stat"), flags, Mode::empty()).ok()?;
    let length = rustix::io::read(file, &mut buffer[..]).ok()?;
    // The name is the process's own choice and need not be text; nothing after it is.
    let name_ends = buffer[..length].iter().rposition(|byte| *byte == b')')?;
    str::from_utf8(&buffer[name_ends..length]).ok()
}

/// Of proc_pid_stat(5), counted from 1 there. The second, a name, may hold anything.
struct Fields<'text>(Vec<&'text str>);

impl<'text> Fields<'text> {
    fn of(text: &'text str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        Some(Self(rest.split_whitespace().collect()))
    }

    fn state(&self) -> Option<&'text str> {
        self.0.first().copied()
    }

    fn number(&self, field: usize) -> Option<u64> {
        self.0.get(field - 3)?.parse().ok()
    }
}

/// How memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Cheap, and never too low: pages that forked processes still share count for each.
    Upper,
    /// Dear: shared pages count in parts.
    Exact,
}

/// One process among the others of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// In ticks since the host started: with its number the one and only name of a process.
    pub(crate) started: u64,
    /// It has ended, and its parent has not looked yet.
    pub(crate) is_over: bool,
}

impl Kin {
    /// None when there is no such process.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let mut buffer = [0; 1024];
        let fields = Fields::of(stat(pid, &mut buffer)?)?;
        Some(Self {
            parent: fields.number(4)?.try_into().ok()?,
            session: fields.number(6)?.try_into().ok()?,
            started: fields.number(22)?,
            is_over: matches!(fields.state()?, "Z" | "X"),
        })
    }
}

/// What one process uses itself: memory, processor time in milliseconds with that of the children
/// it has buried, threads. One that is gone uses nothing.
pub(crate) fn used_by(pid: i32, count: Count) -> (u64, u64, u64) {
    let pages = match count {
        Count::Upper => own_pages(pid),
        Count::Exact => exact_pages(pid).or_else(|| own_pages(pid)),
    };
    let (anon, shmem) = pages.unwrap_or_default();
    let mut buffer = [0; 1024];
    let fields = stat(pid, &mut buffer).and_then(Fields::of);
    let threads = fields.and_then(|it| it.number(20)).unwrap_or(0);
    let cpu_ms = ticks(pid).unwrap_or(0) * 1000 / TICKS;
    ((anon + shmem) * PAGE, cpu_ms, threads)
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

/// Everything below pid 1 of a sandbox, which is ours and holds nothing of the program's.
pub(crate) fn of(init: i32) -> Vec<i32> {
    let mut all = Vec::new();
    tree(init, |pid, _| all.push(pid));
    all.retain(|pid| *pid != init);
    all
}

/// Everything below pid 1 of a sandbox, itself not counted among the pids.
pub(crate) fn below(init: i32, count: Count) -> Sum {
    let mut sum = Sum::default();
    let mut all = Vec::new();
    tree(init, |pid, threads| {
        sum.cpu_ms += ticks(pid).unwrap_or(0) * 1000 / TICKS;
        if pid == init {
            return;
        }
        all.push(pid);
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
    let files = nameless_files(all, |_, file| is_memory(file)).bytes;
    sum.memory_bytes = sum.anon_bytes + sum.shmem_bytes.max(files);
    sum
}

fn is_memory(file: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(file).is_ok_and(|facts| facts.f_type == TMPFS_MAGIC)
}

/// What unlinked files take that processes of a sandbox still have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Nameless {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    /// What one of the processes has open could not be looked at.
    pub(crate) unseen: bool,
}

/// Of the file systems that count, each file once.
pub(crate) fn nameless_files(processes: Vec<i32>, counts: impl Fn(u64, &Path) -> bool) -> Nameless {
    use std::os::unix::fs::MetadataExt;
    let mut seen = HashSet::new();
    let mut sum = Nameless::default();
    let mut asks = ASKS;
    for pid in processes {
        let all_seen = each_descriptor(pid, &mut asks, |held| {
            // Through the descriptor itself: the file has no other way to it.
            let Ok(facts) = fs::metadata(held) else {
                return;
            };
            let nameless = facts.is_file() && facts.nlink() == 0;
            if nameless && counts(facts.dev(), held) && seen.insert((facts.dev(), facts.ino())) {
                sum.bytes = sum.bytes.saturating_add(facts.blocks() * 512);
                sum.files += 1;
            }
        });
        sum.unseen |= !all_seen;
    }
    sum
}

/// Calls `visit` with a path to each descriptor of a process. False if the process refuses to be
/// looked at.
fn each_descriptor(pid: i32, asks: &mut u32, mut visit: impl FnMut(&Path)) -> bool {
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(held) => {
            held.flatten().for_each(|it| visit(&it.path()));
            true
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            each_borrowed(pid, asks, visit)
        }
        // It is gone.
        Err(_) => true,
    }
}

/// A process that is not dumpable closes its list of descriptors to an ordinary user. The descriptors
/// themselves stay open to whoever made its user namespace, which is who watches it.
fn each_borrowed(pid: i32, asks: &mut u32, mut visit: impl FnMut(&Path)) -> bool {
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let (Some(process), Some(slots)) = (process, descriptor_slots(pid)) else {
        return true;
    };
    for number in 0..slots {
        if *asks == 0 {
            return false;
        }
        *asks -= 1;
        match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            Ok(fd) => visit(Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd()))),
            Err(Errno::BADF) => {}
            Err(Errno::SRCH) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// `FDSize` of proc_pid_status(5): no descriptor has this number or a higher one.
fn descriptor_slots(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|it| it.strip_prefix("FDSize:"))?;
    line.trim().parse().ok()
}

/// The processor's time that this thread has used: what looking costs, however long others make it
/// take.
pub(crate) fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
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
    let mut buffer = [0; 1024];
    let fields = Fields::of(stat(pid, &mut buffer)?)?;
    Some((14..=17).filter_map(|field| fields.number(field)).sum())
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
    fn who_runs_or_failed_has_not_left_well() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(tells_all(own));
        assert!(!tells_all(i32::MAX));
        assert_eq!(Leaving::of(own), Leaving::Not);
        assert_eq!(Leaving::of(i32::MAX), Leaving::Gone);
        let stat = |state: &str, flags: u64, threads: u64, memory: u64, status: u64| {
            let mut fields = vec!["0".to_owned(); 50];
            fields[0] = state.to_owned();
            for (number, value) in [(9, flags), (20, threads), (23, memory), (52, status)] {
                fields[number - 3] = value.to_string();
            }
            Leaving::read(&format!("7 (a) b) {}\n", fields.join(" ")))
        };
        assert_eq!(stat("R", 4, 1, 0, 0), Some(Leaving::Well));
        assert_eq!(stat("R", 0, 1, 0, 0), Some(Leaving::Not));
        assert_eq!(stat("R", 4, 2, 0, 0), Some(Leaving::Not));
        assert_eq!(stat("R", 4, 1, 4096, 0), Some(Leaving::Not));
        assert_eq!(stat("R", 4, 1, 0, 256), Some(Leaving::Not));
        assert_eq!(stat("Z", 4, 1, 0, 0), Some(Leaving::Gone));
        assert_eq!(Leaving::read("7 (cut"), None);
    }

    #[test]
    fn a_process_that_is_gone_counts_nothing() {
        assert_eq!(below(i32::MAX, Count::Exact), Sum::default());
    }
}
