//! The disk that a container's programs fill: no engine counts a bind. Free space says cheaply that
//! somebody took a lot; only then the directories are counted.

use std::time::Duration;

use glovebox_model::{LimitKind, Limits};
use glovebox_workspace::{Dir, FileTime, UsageLimits};

const COUNT: UsageLimits = UsageLimits {
    entries: 5_000_000,
    time: Duration::from_secs(5),
};

#[derive(Debug)]
pub(super) struct Disk<'run> {
    trees: &'run [&'run Dir],
    since: FileTime,
    most: (u64, u64),
    free_at_start: (u64, u64),
    /// Counted again when less than this is free.
    next: (u64, u64),
}

impl<'run> Disk<'run> {
    pub(super) fn new(trees: &'run [&'run Dir], limits: &Limits) -> Self {
        let most = (limits.disk_bytes.get(), limits.disk_files.get());
        let (bytes, files) = free(trees);
        Self {
            trees,
            since: FileTime::now(),
            most,
            free_at_start: (bytes, files),
            next: (bytes.saturating_sub(most.0), files.saturating_sub(most.1)),
        }
    }

    /// The limit that is passed now.
    pub(super) fn look(&mut self) -> Option<LimitKind> {
        let (bytes, files) = free(self.trees);
        if self.trees.is_empty() || (bytes >= self.next.0 && files >= self.next.1) {
            return None;
        }
        // What cannot be counted is all that is missing.
        let used = self.used().unwrap_or((
            self.free_at_start.0.saturating_sub(bytes),
            self.free_at_start.1.saturating_sub(files),
        ));
        if used.0 > self.most.0 {
            return Some(LimitKind::Disk);
        }
        if used.1 > self.most.1 {
            return Some(LimitKind::Inodes);
        }
        self.next = (
            bytes.saturating_sub(self.most.0 - used.0),
            files.saturating_sub(self.most.1 - used.1),
        );
        None
    }

    /// Whether nearly all of it is taken: a failed program may have met the limit of one file.
    pub(super) fn used_up(&self) -> Option<LimitKind> {
        let nearly = |most: u64| most - most / 16;
        let (bytes, files) = free(self.trees);
        let taken =
            |at_start: u64, now: u64, most: u64| at_start.saturating_sub(now) >= nearly(most);
        if !taken(self.free_at_start.0, bytes, self.most.0)
            && !taken(self.free_at_start.1, files, self.most.1)
        {
            return None;
        }
        let used = self.used()?;
        if used.0 >= nearly(self.most.0) {
            Some(LimitKind::Disk)
        } else {
            (used.1 >= nearly(self.most.1)).then_some(LimitKind::Inodes)
        }
    }

    fn used(&self) -> Option<(u64, u64)> {
        let mut sum = (0u64, 0u64);
        for tree in self.trees {
            let used = tree.usage_since(self.since, COUNT).ok();
            let used = used.filter(|used| used.complete)?;
            sum.0 = sum.0.saturating_add(used.bytes);
            sum.1 = sum.1.saturating_add(used.inodes);
        }
        Some(sum)
    }
}

fn free(trees: &[&Dir]) -> (u64, u64) {
    let mut devices = std::collections::BTreeSet::new();
    let mut sum = (0u64, 0u64);
    for tree in trees {
        let Ok(facts) = rustix::fs::fstat(*tree) else {
            continue;
        };
        if devices.insert(facts.st_dev)
            && let Ok(space) = rustix::fs::fstatvfs(*tree)
        {
            sum.0 = sum
                .0
                .saturating_add(space.f_bfree.saturating_mul(space.f_frsize));
            sum.1 = sum.1.saturating_add(space.f_ffree);
        }
    }
    sum
}
