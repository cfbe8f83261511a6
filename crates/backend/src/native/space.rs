//! The workspace's disk while a program writes. The file system's free space says cheaply that
//! *somebody* took a lot; only then the workspace itself is counted.

use std::time::Duration;

use glovebox_model::{LimitKind, Limits};
use glovebox_workspace::{Dir, DiskUsage, FileTime, UsageLimits};
use rustix::fs::fstatvfs;

use super::processes;

/// A count may take this long; the program is not held up by it.
const COUNT: UsageLimits = UsageLimits {
    entries: 5_000_000,
    time: Duration::from_secs(5),
};

#[derive(Debug)]
pub(super) struct Space<'run> {
    work: &'run Dir,
    since: FileTime,
    bytes: Budget,
    files: Budget,
}

/// What may be taken, and how low the free space may fall before the next count.
#[derive(Debug)]
struct Budget {
    most: u64,
    free_at_start: u64,
    count_below: u64,
}

impl Budget {
    fn new(most: u64, free: u64) -> Self {
        Self {
            most,
            free_at_start: free,
            count_below: free.saturating_sub(most),
        }
    }

    /// After a count: as much as is left of the budget may go before it can matter again.
    fn renew(&mut self, free: u64, used: u64) {
        self.count_below = free.saturating_sub(self.most.saturating_sub(used));
    }

    /// All but a sixteenth.
    fn nearly(&self) -> u64 {
        self.most - self.most / 16
    }

    /// Somebody took nearly as much as this budget since the start.
    fn may_be_gone(&self, free: u64) -> bool {
        self.free_at_start.saturating_sub(free) >= self.nearly()
    }
}

impl<'run> Space<'run> {
    pub(super) fn new(work: &'run Dir, limits: &Limits) -> Option<Self> {
        let (bytes, files) = free(work)?;
        Some(Self {
            work,
            since: FileTime::now(),
            bytes: Budget::new(limits.disk_bytes.get(), bytes),
            files: Budget::new(limits.disk_files.get(), files),
        })
    }

    pub(super) fn look(&mut self, init: Option<i32>) -> Option<LimitKind> {
        let (bytes, files) = free(self.work)?;
        if bytes >= self.bytes.count_below && files >= self.files.count_below {
            return None;
        }
        let mut used = self.count()?;
        if let (Some(init), Ok(facts)) = (init, rustix::fs::fstat(self.work)) {
            // A file without a name takes space as long as somebody has it open.
            let nameless = processes::nameless_files(init, facts.st_dev);
            used.bytes = used.bytes.saturating_add(nameless.bytes);
            used.inodes = used.inodes.saturating_add(nameless.files);
        }
        self.bytes.renew(bytes, used.bytes);
        self.files.renew(files, used.inodes);
        if used.bytes > self.bytes.most {
            Some(LimitKind::Disk)
        } else if used.inodes > self.files.most {
            Some(LimitKind::Inodes)
        } else {
            None
        }
    }

    /// Whether nearly all of it is taken now; counted only if the file system says that it may be.
    pub(super) fn used_up(&self) -> Option<LimitKind> {
        let (bytes, files) = free(self.work)?;
        if !self.bytes.may_be_gone(bytes) && !self.files.may_be_gone(files) {
            return None;
        }
        let used = self.count()?;
        if used.bytes >= self.bytes.nearly() {
            Some(LimitKind::Disk)
        } else {
            (used.inodes >= self.files.nearly()).then_some(LimitKind::Inodes)
        }
    }

    /// Files that were made or changed since the start, in full.
    fn count(&self) -> Option<DiskUsage> {
        self.work.usage_since(self.since, COUNT).ok()
    }
}

fn free(work: &Dir) -> Option<(u64, u64)> {
    let facts = fstatvfs(work).ok()?;
    Some((facts.f_bfree.saturating_mul(facts.f_frsize), facts.f_ffree))
}
