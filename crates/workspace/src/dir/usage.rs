//! How much disk a tree takes, for limits that no quota enforces.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Dir, Order, Visit, WalkEnd, WalkLimits, walk};
use crate::fault::{FsError, FsResult};
use crate::stat::{FileId, FileTime, Kind, Stat};

#[derive(Debug, Clone, Copy)]
pub struct UsageLimits {
    pub entries: u64,
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskUsage {
    pub bytes: u64,
    pub inodes: u64,
    /// False when a limit, an unreadable directory or a moved one kept part of it out of the sum.
    pub complete: bool,
}

impl Dir {
    /// Everything below, the directory itself not counted. Other file systems are not entered, and
    /// a file with several names counts once.
    pub fn usage(&self, limits: UsageLimits) -> FsResult<DiskUsage> {
        self.sum(limits, |_| true)
    }

    /// Only what was made or changed from `since` on. A directory counts when it was made since:
    /// an old one changes with every file put into it.
    pub fn usage_since(&self, since: FileTime, limits: UsageLimits) -> FsResult<DiskUsage> {
        self.sum(limits, |stat| match (stat.kind, stat.born) {
            (Kind::Directory, Some(born)) => born >= since,
            _ => stat.changed >= since,
        })
    }

    fn sum(&self, limits: UsageLimits, counts: impl Fn(&Stat) -> bool) -> FsResult<DiskUsage> {
        let mut usage = DiskUsage::default();
        let mut everything = true;
        let mut linked: HashSet<FileId> = HashSet::new();
        let walk_limits = WalkLimits {
            // Depth would be a hiding place.
            depth: usize::MAX,
            path_bytes: usize::MAX,
            entries: limits.entries,
            deadline: Some(Instant::now() + limits.time),
        };
        let end = walk(self, walk_limits, Order::AsRead, &mut |visit| {
            match visit {
                Visit::Entry(entry) => {
                    let stat = entry.stat;
                    let again =
                        stat.kind != Kind::Directory && stat.links > 1 && !linked.insert(stat.id);
                    if !again && counts(&stat) {
                        usage.bytes = usage.bytes.saturating_add(stat.allocated);
                        usage.inodes += 1;
                    }
                }
                Visit::Skipped { why, .. } => match why {
                    super::Skip::OtherFileSystem => {}
                    super::Skip::TooDeep
                    | super::Skip::TooManyEntries
                    | super::Skip::Unreadable => everything = false,
                },
            }
            ControlFlow::Continue(())
        });
        let end = end.map_err(|kind| FsError::new("measure", b"", kind))?;
        usage.complete = everything && end == WalkEnd::Complete;
        Ok(usage)
    }
}
