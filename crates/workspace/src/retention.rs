//! What the execs of a workspace have left, and for how long it stays. An exec's artifacts go as a
//! whole: first they lose their name, at once, then they are removed; whoever is killed between the
//! two leaves something that nobody lists and that the next removal takes along.

use std::time::{Duration, Instant};

use glovebox_model::{Error, ExecId, ProjectId, Result, Stage, Stream};
use rustix::fs::renameat;

use crate::artifacts::spool_name;
use crate::dir::{Dir, DiskUsage, UsageLimits};
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Layout, Project};
use crate::relpath::RelPath;
use crate::stat::{FileTime, Kind};
use crate::{lines, sealed};

/// In one workspace; an exec has up to four entries on the shelf.
const MOST_ENTRIES: usize = 1_000_000;
/// Collection lets no more than 100,000 entries of a guest through, but one that was cut off did
/// not come to it.
const MEASURE: UsageLimits = UsageLimits {
    entries: 1_000_000,
    time: Duration::from_secs(10),
};
/// Of all of them together, so that ten thousand slow ones do not take a day.
const MEASURE_ALL: Duration = Duration::from_secs(60);
/// Not an exec's name, so it is on no list.
const GONE: &str = ".gone-";
const MANIFEST: &str = "manifest.json";
/// An exec makes its directory before there is a record of it, and has a manifest at its end. One
/// without a manifest that is younger than this may be about to start.
const STARTING: Duration = Duration::from_secs(3600);

/// What becomes of one that has no manifest and is young.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starting {
    Spare,
    Remove,
}

/// What stays: all three must hold. None asks for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Not older than this.
    pub within: Option<Duration>,
    /// Among so many that are the newest.
    pub last: Option<u64>,
    /// The newest ones that take so many bytes together.
    pub bytes: Option<u64>,
}

/// One exec's artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelved {
    pub exec: ExecId,
    /// When its directory was made. A guest can set other times of a directory, not this one; where
    /// the file system does not remember it, when it was last changed.
    pub since: FileTime,
    pub usage: DiskUsage,
    /// Whether there is a manifest: what is still running, or was lost, has none of ours.
    pub sealed: bool,
}

/// By age, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shelf {
    pub execs: Vec<Shelved>,
    /// Of all that are listed.
    pub bytes: u64,
    /// There were more than asked for; the oldest were left out.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// The oldest first.
    pub removed: Vec<ExecId>,
    pub bytes: u64,
    /// Would have gone, and are not over yet.
    pub running: Vec<ExecId>,
}

impl Layout {
    /// The artifacts of a workspace; at most so many, the newest.
    pub fn shelved(&self, project: &ProjectId, most: usize) -> Result<Shelf> {
        match self.shelf(project) {
            Ok(shelf) => look(&shelf, most).map_err(sweeping),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(Shelf::default()),
            Err(error) => Err(sweeping(error)),
        }
    }

    /// Removes what the retention does not keep, the oldest first, and never an exec of which
    /// `running` says that it is not over.
    pub fn retain(
        &self,
        project: &ProjectId,
        retention: Retention,
        now: FileTime,
        running: &dyn Fn(&ExecId) -> bool,
    ) -> Result<Swept> {
        match self.shelf(project) {
            Ok(shelf) => sweep(&shelf, retention, now, Starting::Spare, running).map_err(sweeping),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(Swept::default()),
            Err(error) => Err(sweeping(error)),
        }
    }
}

impl Project {
    /// All of it, whatever has been cut off before its start as well.
    pub(crate) fn forget_artifacts(&self, running: &dyn Fn(&ExecId) -> bool) -> Result<Swept> {
        let nothing = Retention {
            last: Some(0),
            ..Retention::default()
        };
        let (now, starting) = (FileTime::now(), Starting::Remove);
        sweep(&self.shelf()?, nothing, now, starting, running).map_err(sweeping)
    }

    /// Those that have a directory for artifacts, running ones too.
    pub fn execs(&self) -> Result<Vec<ExecId>> {
        let found = names(&self.shelf()?).map_err(sweeping)?;
        Ok(found.execs.into_iter().map(|(exec, _)| exec).collect())
    }
}

struct Names {
    execs: Vec<(ExecId, FileTime)>,
    gone: Vec<String>,
}

fn names(shelf: &Dir) -> Result<Names, FsError> {
    let listing = shelf.list(MOST_ENTRIES)?;
    if listing.truncated {
        // Which are the oldest cannot be told from a part.
        let cap = MOST_ENTRIES as u64;
        return Err(FsError::new(
            "list",
            b"artifacts",
            FsErrorKind::TooManyEntries { cap },
        ));
    }
    let mut names = Names {
        execs: Vec::new(),
        gone: Vec::new(),
    };
    for entry in listing.entries {
        let name = entry.name.display();
        if name.starts_with(GONE) {
            names.gone.push(name);
        } else if entry.stat.kind == Kind::Directory
            && let Ok(exec) = name.parse::<ExecId>()
        {
            let since = entry.stat.born.unwrap_or(entry.stat.changed);
            names.execs.push((exec, since));
        }
    }
    // Two of the same moment are told apart by name, so that every look gives the same order.
    names
        .execs
        .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(names)
}

fn look(shelf: &Dir, most: usize) -> Result<Shelf, FsError> {
    let mut found = names(shelf)?.execs;
    let truncated = found.len() > most;
    found.truncate(most);
    let execs = measured(shelf, found)?;
    let bytes = execs.iter().map(|it| it.usage.bytes).sum();
    Ok(Shelf {
        execs,
        bytes,
        truncated,
    })
}

fn measured(shelf: &Dir, found: Vec<(ExecId, FileTime)>) -> Result<Vec<Shelved>, FsError> {
    let end = Instant::now() + MEASURE_ALL;
    let mut execs = Vec::with_capacity(found.len());
    for (exec, since) in found {
        let dir = match shelf.open_name(exec.as_str()) {
            // Removed since it was listed.
            Err(error) if error.kind() == FsErrorKind::NotFound => continue,
            dir => dir?,
        };
        let time = MEASURE
            .time
            .min(end.saturating_duration_since(Instant::now()));
        execs.push(Shelved {
            exec,
            since,
            usage: dir.usage(UsageLimits { time, ..MEASURE })?,
            sealed: is_sealed(&dir)?,
        });
    }
    Ok(execs)
}

fn is_sealed(dir: &Dir) -> Result<bool, FsError> {
    let path = RelPath::new(MANIFEST)
        .map_err(|error| FsError::new("look at", MANIFEST.as_bytes(), FsErrorKind::Path(error)))?;
    match dir.lstat(&path) {
        Ok(stat) => Ok(stat.kind == Kind::File),
        Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn sweep(
    shelf: &Dir,
    retention: Retention,
    now: FileTime,
    starting: Starting,
    running: &dyn Fn(&ExecId) -> bool,
) -> Result<Swept, FsError> {
    let found = names(shelf)?;
    for name in &found.gone {
        remove(shelf, name)?;
    }
    let execs = measured(shelf, found.execs)?;
    let mut swept = Swept::default();
    for old in surplus(&execs, retention, now).rev() {
        let spared = starting == Starting::Spare && !old.sealed && !older(old.since, STARTING, now);
        // Asked right before, since it may have started or ended meanwhile.
        if spared || running(&old.exec) {
            swept.running.push(old.exec.clone());
            continue;
        }
        take_away(shelf, &old.exec)?;
        swept.bytes = swept.bytes.saturating_add(old.usage.bytes);
        swept.removed.push(old.exec.clone());
    }
    Ok(swept)
}

/// What does not stay of these, the newest first.
fn surplus(
    execs: &[Shelved],
    retention: Retention,
    now: FileTime,
) -> impl DoubleEndedIterator<Item = &Shelved> {
    let mut total = 0u64;
    let kept = execs
        .iter()
        .enumerate()
        .take_while(|(index, exec)| {
            total = total.saturating_add(exec.usage.bytes);
            let young = retention
                .within
                .is_none_or(|age| !older(exec.since, age, now));
            young
                && retention.last.is_none_or(|last| (*index as u64) < last)
                && retention.bytes.is_none_or(|bytes| total <= bytes)
        })
        .count();
    execs[kept..].iter()
}

fn older(since: FileTime, age: Duration, now: FileTime) -> bool {
    let nanos = |time: FileTime| i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec);
    nanos(now) - nanos(since) > i128::try_from(age.as_nanos()).unwrap_or(i128::MAX)
}

fn take_away(shelf: &Dir, exec: &ExecId) -> Result<(), FsError> {
    let gone = format!("{GONE}{exec}");
    // Of a removal that was cut off, by whoever removes beside us.
    remove(shelf, &gone)?;
    match renameat(shelf, exec.as_str(), shelf, gone.as_str()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(errno) => return Err(FsError::os("remove", exec.as_str().as_bytes(), errno)),
    }
    for stream in [Stream::Stdout, Stream::Stderr] {
        remove(shelf, &spool_name(stream, exec))?;
    }
    for log in lines::names(exec) {
        remove(shelf, &log)?;
    }
    remove(shelf, &sealed::name(exec))?;
    remove(shelf, &gone)
}

fn remove(shelf: &Dir, name: &str) -> Result<(), FsError> {
    match shelf.remove_entry(name) {
        Err(error) if error.kind() == FsErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn sweeping(error: FsError) -> Error {
    error.at(Stage::Collect)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newest first: one a second, of ten bytes each.
    fn execs(count: u8) -> Vec<Shelved> {
        let exec = |n: u8| Shelved {
            exec: ExecId::from_random([n; 16]),
            since: FileTime {
                sec: 100 - i64::from(n),
                nsec: 0,
            },
            usage: DiskUsage {
                bytes: 10,
                inodes: 1,
                complete: true,
            },
            sealed: true,
        };
        (0..count).map(exec).collect()
    }

    fn stays(retention: Retention) -> usize {
        let all = execs(10);
        let now = FileTime { sec: 100, nsec: 0 };
        10 - surplus(&all, retention, now).count()
    }

    #[test]
    fn each_rule_keeps_the_newest_and_the_strictest_decides() {
        let none = Retention::default();
        let within = |secs| Some(Duration::from_secs(secs));
        assert_eq!(stays(none), 10);
        for (retention, count) in [
            (
                Retention {
                    last: Some(3),
                    ..none
                },
                3,
            ),
            (
                Retention {
                    last: Some(30),
                    ..none
                },
                10,
            ),
            (
                Retention {
                    bytes: Some(29),
                    ..none
                },
                2,
            ),
            (
                Retention {
                    bytes: Some(30),
                    ..none
                },
                3,
            ),
            (
                Retention {
                    bytes: Some(9),
                    ..none
                },
                0,
            ),
            (
                Retention {
                    within: within(4),
                    ..none
                },
                5,
            ),
            (
                Retention {
                    within: within(0),
                    ..none
                },
                1,
            ),
            (
                Retention {
                    within: within(4),
                    last: Some(7),
                    bytes: Some(20),
                },
                2,
            ),
        ] {
            assert_eq!(stays(retention), count, "{retention:?}");
        }
    }

    #[test]
    fn an_age_is_no_older_than_the_clock_goes_back() {
        let at = |sec| FileTime { sec, nsec: 0 };
        assert!(older(at(0), Duration::from_secs(9), at(10)));
        assert!(!older(at(0), Duration::from_secs(10), at(10)));
        assert!(
            !older(at(10), Duration::ZERO, at(0)),
            "the clock was set back"
        );
        assert!(!older(at(0), Duration::MAX, at(i64::MAX)));
    }
}
