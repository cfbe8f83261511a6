//! The disk while a program writes to directories that no kernel counts for it. The free space of
//! their file systems says cheaply, and at once, that *somebody* took a lot. It says nothing when
//! somebody else gives as much back, so the directories are counted now and then whatever it says.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_model::{Bytes, Count, LimitKind, Limits};
use glovebox_workspace::{Dir, DiskUsage, FileTime, UsageLimits};
use rustix::fs::fstatvfs;

use crate::native::processes::{Nameless, nameless_files, own_time};

/// A count may take this long; the program is not held up by it.
const LONGEST: Duration = Duration::from_secs(5);
/// At the end somebody waits for the record: a count that the free space does not ask for takes this
/// part of the run's own time at most, or this long.
const AT_THE_END: (u32, Duration) = (10, Duration::from_millis(20));
/// Programs shorter than this are counted only if the free space asks for it.
const FIRST: Duration = Duration::from_millis(500);
/// Counting takes about one part in so many of a processor's time.
const PACE: u32 = 20;
/// More than anybody writes in a second, bytes and files.
const FASTEST: (u64, u64) = (16 << 30, 2_000_000);

#[derive(Debug)]
pub(crate) struct Disk<'run> {
    trees: Vec<&'run Dir>,
    since: FileTime,
    started: Instant,
    bytes: Budget,
    files: Budget,
    /// When it is counted next whatever the free space says.
    recount: Instant,
}

/// How much of it is taken at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Filled {
    /// More than may be, by one who was gone before anybody looked.
    pub(crate) all: Option<LimitKind>,
    /// Nearly all or more: a failed program may have met the limit of one file, which ends nobody.
    pub(crate) nearly: Option<LimitKind>,
}

impl Filled {
    /// The limit that a program ran into which ended by itself, well or not.
    pub(crate) fn met_by(self, succeeded: bool) -> Option<LimitKind> {
        if succeeded { self.all } else { self.nearly }
    }
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

    /// Nobody can have taken nearly as much in this time.
    fn is_out_of_reach(&self, a_second: u64, time: Duration) -> bool {
        let most = u128::from(a_second) * time.as_millis() / 1000;
        most < u128::from(self.nearly())
    }
}

impl<'run> Disk<'run> {
    /// None when there is nothing to watch.
    pub(crate) fn new(trees: &[&'run Dir], limits: &Limits) -> Option<Self> {
        Self::of(trees, (limits.disk_bytes, limits.disk_files))
    }

    fn of(trees: &[&'run Dir], most: (Bytes, Count)) -> Option<Self> {
        let (bytes, files) = free(trees)?;
        let started = Instant::now();
        Some(Self {
            trees: trees.to_vec(),
            since: FileTime::now(),
            started,
            bytes: Budget::new(most.0.get(), bytes),
            files: Budget::new(most.1.get(), files),
            recount: started + FIRST,
        })
    }

    /// The limit that is passed now. `processes` are those of the program: a file without a name takes
    /// space as long as one of them has it open.
    pub(crate) fn look(&mut self, processes: impl FnOnce() -> Vec<i32>) -> Option<LimitKind> {
        let (bytes, files) = free(&self.trees)?;
        let roomy = bytes >= self.bytes.count_below && files >= self.files.count_below;
        if roomy && Instant::now() < self.recount {
            return None;
        }
        let spent = own_time();
        let nameless = self.nameless(processes());
        let used = self.count((bytes, files), LONGEST, nameless);
        self.bytes.renew(bytes, used.bytes);
        self.files.renew(files, used.inodes);
        // Not the time that it took: a disk that others keep waiting must not buy a program time.
        let spent = own_time().saturating_sub(spent);
        self.recount = Instant::now() + (spent * PACE).max(FIRST);
        self.passed_by(&used)
    }

    /// When the program is gone.
    pub(crate) fn at_the_end(&self) -> Filled {
        let Some(used) = self.count_at_the_end() else {
            return Filled::default();
        };
        let nearly = if used.bytes >= self.bytes.nearly() {
            Some(LimitKind::Disk)
        } else {
            (used.inodes >= self.files.nearly()).then_some(LimitKind::Inodes)
        };
        Filled {
            all: self.passed_by(&used),
            nearly,
        }
    }

    fn passed_by(&self, used: &DiskUsage) -> Option<LimitKind> {
        if used.bytes > self.bytes.most {
            Some(LimitKind::Disk)
        } else {
            (used.inodes > self.files.most).then_some(LimitKind::Inodes)
        }
    }

    /// None where a count would be for nothing.
    fn count_at_the_end(&self) -> Option<DiskUsage> {
        let (bytes, files) = free(&self.trees)?;
        let ran = self.started.elapsed();
        let told = self.bytes.may_be_gone(bytes) || self.files.may_be_gone(files);
        let out_of_reach = self.bytes.is_out_of_reach(FASTEST.0, ran)
            && self.files.is_out_of_reach(FASTEST.1, ran);
        match (told, out_of_reach) {
            (true, _) => Some(self.count((bytes, files), LONGEST, Nameless::default())),
            (false, true) => None,
            (false, false) => {
                let (part, least) = AT_THE_END;
                let longest = (ran / part).clamp(least, LONGEST);
                Some(self.count((bytes, files), longest, Nameless::default()))
            }
        }
    }

    /// Files that were made or changed since the start, in full, and `nameless` ones. What cannot be
    /// counted, in a directory or a process that is closed to us or for lack of time, is taken to be
    /// all that is missing.
    fn count(&self, free: (u64, u64), time: Duration, nameless: Nameless) -> DiskUsage {
        let limits = UsageLimits {
            entries: 5_000_000,
            time,
        };
        let mut sum = DiskUsage {
            bytes: nameless.bytes,
            inodes: nameless.files,
            complete: !nameless.unseen,
        };
        for tree in &self.trees {
            match tree.usage_since(self.since, limits) {
                Ok(used) => {
                    sum.bytes = sum.bytes.saturating_add(used.bytes);
                    sum.inodes = sum.inodes.saturating_add(used.inodes);
                    sum.complete &= used.complete;
                }
                Err(_) => sum.complete = false,
            }
        }
        if !sum.complete {
            let missing = |at_start: u64, now: u64| at_start.saturating_sub(now);
            sum.bytes = sum.bytes.max(missing(self.bytes.free_at_start, free.0));
            sum.inodes = sum.inodes.max(missing(self.files.free_at_start, free.1));
        }
        sum
    }

    fn nameless(&self, processes: Vec<i32>) -> Nameless {
        let devices = self
            .trees
            .iter()
            .filter_map(|tree| rustix::fs::fstat(*tree).ok());
        let devices: BTreeSet<u64> = devices.map(|facts| facts.st_dev).collect();
        // On a layer a file has the number of a device that only the sandbox knows; what it takes,
        // it takes from the directory below, which is one of these.
        nameless_files(processes, |device, file| {
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
    (!seen.is_empty()).then_some((bytes, files))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MIB: usize = 1 << 20;

    const MOST: (Bytes, Count) = (Bytes::mib(8), Count(50));

    /// As if others had given back far more than is taken: the free space never asks for a count.
    fn others_give(disk: &mut Disk<'_>) {
        disk.bytes.count_below = 0;
        disk.files.count_below = 0;
        disk.bytes.free_at_start = 0;
        disk.files.free_at_start = 0;
    }

    fn nobody() -> Vec<i32> {
        Vec::new()
    }

    #[test]
    fn what_others_give_back_hides_nothing() {
        let place = tempfile::tempdir().unwrap();
        let tree = Dir::open_trusted(place.path()).unwrap();
        let trees = [&tree];
        let mut disk = Disk::of(&trees, MOST).unwrap();
        others_give(&mut disk);
        for number in 0..9 {
            fs::write(place.path().join(number.to_string()), vec![1; MIB]).unwrap();
        }
        // The short ones are spared.
        assert_eq!(disk.look(nobody), None);
        disk.recount = Instant::now();
        assert_eq!(disk.look(nobody), Some(LimitKind::Disk));
        disk.started -= Duration::from_secs(1);
        let taken = disk.at_the_end();
        assert_eq!(taken.all, Some(LimitKind::Disk));
        assert_eq!(taken.nearly, Some(LimitKind::Disk));
    }

    #[test]
    fn so_many_files_are_seen_as_well() {
        let place = tempfile::tempdir().unwrap();
        let tree = Dir::open_trusted(place.path()).unwrap();
        let trees = [&tree];
        let mut disk = Disk::of(&trees, MOST).unwrap();
        others_give(&mut disk);
        for number in 0..51 {
            fs::write(place.path().join(number.to_string()), "").unwrap();
        }
        disk.recount = Instant::now();
        assert_eq!(disk.look(nobody), Some(LimitKind::Inodes));
    }

    #[test]
    fn what_has_no_name_counts_for_who_has_it_open() {
        let place = tempfile::tempdir().unwrap();
        let tree = Dir::open_trusted(place.path()).unwrap();
        let trees = [&tree];
        let mut disk = Disk::of(&trees, MOST).unwrap();
        let held: Vec<_> = (0..9)
            .map(|_| {
                use std::io::Write;
                let mut file = tempfile::tempfile_in(place.path()).unwrap();
                file.write_all(&vec![1; MIB]).unwrap();
                file
            })
            .collect();
        let own = i32::try_from(std::process::id()).unwrap();
        disk.recount = Instant::now();
        assert_eq!(disk.look(|| vec![own]), Some(LimitKind::Disk));
        drop(held);
        disk.recount = Instant::now();
        assert_eq!(disk.look(|| vec![own]), None);
    }

    #[test]
    fn the_end_of_a_short_run_is_counted_only_if_it_can_matter() {
        let budget = Budget::new(Bytes::mib(1024).get(), u64::MAX);
        assert!(budget.is_out_of_reach(FASTEST.0, Duration::from_millis(20)));
        assert!(!budget.is_out_of_reach(FASTEST.0, Duration::from_millis(200)));
        let tiny = Budget::new(4096, u64::MAX);
        assert!(!tiny.is_out_of_reach(FASTEST.0, Duration::from_millis(1)));
    }

    #[test]
    fn nothing_to_watch_is_not_watched() {
        assert!(Disk::of(&[], MOST).is_none());
    }
}
