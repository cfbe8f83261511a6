//! The disk while a program writes to the workspace and to its artifacts. The free space of the file
//! systems says cheaply that *somebody* took a lot; only then the directories are counted.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use glovebox_model::{LimitKind, Limits};
use glovebox_workspace::{Dir, DiskUsage, FileTime, UsageLimits};
use rustix::fs::fstatvfs;

use super::processes::{self, Nameless};

/// A count may take this long; the program is not held up by it.
const COUNT: UsageLimits = UsageLimits {
    entries: 5_000_000,
    time: Duration::from_secs(5),
};

#[derive(Debug)]
pub(crate) struct Space<'run> {
    trees: Vec<&'run Dir>,
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

    /// All but a sixteenth. Of nothing nobody has taken nearly all.
    fn nearly(&self) -> u64 {
        (self.most - self.most / 16).max(1)
    }

    /// Somebody took nearly as much as this budget since the start.
    fn may_be_gone(&self, free: u64) -> bool {
        self.free_at_start.saturating_sub(free) >= self.nearly()
    }
}

impl<'run> Space<'run> {
    pub(crate) fn new(trees: &[&'run Dir], limits: &Limits) -> Option<Self> {
        let trees = trees.to_vec();
        let (bytes, files) = free(&trees)?;
        Some(Self {
            trees,
            since: FileTime::now(),
            bytes: Budget::new(limits.disk_bytes.get(), bytes),
            files: Budget::new(limits.disk_files.get(), files),
        })
    }

    pub(crate) fn look(&mut self, init: Option<i32>) -> Option<LimitKind> {
        let (bytes, files) = free(&self.trees)?;
        if bytes >= self.bytes.count_below && files >= self.files.count_below {
            return None;
        }
        let mut used = self.count(bytes, files);
        if let Some(init) = init {
            // A file without a name takes space as long as somebody has it open.
            let nameless = self.nameless(init);
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

    /// Whether more was taken than may be, by one who was gone before anybody looked; counted only if
    /// the file system says that it may be.
    pub(crate) fn passed(&self) -> Option<LimitKind> {
        let (bytes, files) = free(&self.trees)?;
        if !self.bytes.may_be_gone(bytes) && !self.files.may_be_gone(files) {
            return None;
        }
        let used = self.count(bytes, files);
        if used.bytes > self.bytes.most {
            Some(LimitKind::Disk)
        } else {
            (used.inodes > self.files.most).then_some(LimitKind::Inodes)
        }
    }

    /// Whether nearly all of it is taken now; counted only if the file system says that it may be.
    pub(crate) fn used_up(&self) -> Option<LimitKind> {
        let (bytes, files) = free(&self.trees)?;
        if !self.bytes.may_be_gone(bytes) && !self.files.may_be_gone(files) {
            return None;
        }
        let used = self.count(bytes, files);
        if used.bytes >= self.bytes.nearly() {
            Some(LimitKind::Disk)
        } else {
            (used.inodes >= self.files.nearly()).then_some(LimitKind::Inodes)
        }
    }

    /// Files that were made or changed since the start, in full. What cannot be counted, in a
    /// directory that is closed to us or for lack of time, is taken to be all that is missing.
    fn count(&self, bytes_free: u64, files_free: u64) -> DiskUsage {
        let mut sum = DiskUsage {
            complete: true,
            ..DiskUsage::default()
        };
        for tree in &self.trees {
            match tree.usage_since(self.since, COUNT) {
                Ok(used) => {
                    sum.bytes = sum.bytes.saturating_add(used.bytes);
                    sum.inodes = sum.inodes.saturating_add(used.inodes);
                    sum.complete &= used.complete;
                }
                Err(_) => sum.complete = false,
            }
        }
        if !sum.complete {
            sum.bytes = sum
                .bytes
                .max(self.bytes.free_at_start.saturating_sub(bytes_free));
            sum.inodes = sum
                .inodes
                .max(self.files.free_at_start.saturating_sub(files_free));
        }
        sum
    }

    fn nameless(&self, init: i32) -> Nameless {
        let devices = self
            .trees
            .iter()
            .filter_map(|tree| rustix::fs::fstat(*tree).ok());
        let devices: BTreeSet<u64> = devices.map(|facts| facts.st_dev).collect();
        // On a layer a file has the number of a device that only the sandbox knows; what it takes,
        // it takes from the directory below, which is one of these.
        processes::nameless_files(init, |device, file| {
            devices.contains(&device) || is_layered(file)
        })
    }
}

fn is_layered(file: &Path) -> bool {
    const OVERLAYFS_MAGIC: i64 = 0x794c_7630;
    rustix::fs::statfs(file).is_ok_and(|facts| facts.f_type == OVERLAYFS_MAGIC)
}

/// Of the file systems that the directories lie on, each once.
fn free(trees: &[&Dir]) -> Option<(u64, u64)> {
    let mut seen = BTreeSet::new();
    let (mut bytes, mut files) = (0u64, 0u64);
    for tree in trees {
        if seen.insert(rustix::fs::fstat(*tree).ok()?.st_dev) {
            let facts = fstatvfs(*tree).ok()?;
            bytes = bytes.saturating_add(facts.f_bfree.saturating_mul(facts.f_frsize));
            files = files.saturating_add(facts.f_ffree);
        }
    }
    Some((bytes, files))
}
