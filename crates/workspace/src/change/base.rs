//! What the workspace was when an exec began, for telling whether it moved since.
//!
//! A moment, not a list: whatever was changed, made or moved here since then has a later change
//! time, which the kernel sets and nobody can choose. A list of every file would cost a walk over the
//! whole workspace before each exec, where only the few paths that were written matter afterwards.
//! What a moment cannot tell is that a path which the exec wrote anew was removed meanwhile; the
//! outcome is then as if it had been removed just before.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use super::intent;
use crate::dir::Dir;
use crate::fault::FsResult;
use crate::stat::{FileTime, Stat};

const FILE: &str = "base";
/// Small: a few numbers.
const MOST: u64 = 4096;
/// Below the tick of the clock that stamps files.
const PAUSE: Duration = Duration::from_micros(500);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    since: (i64, u32),
    /// How far the wall clock is ahead of the machine's age, in nanoseconds. It changes only when
    /// somebody sets the clock.
    ahead_ns: i64,
    boot: String,
}

impl Base {
    /// From here on changes count. Call it after everything that belongs to the base is there and
    /// before the program starts.
    ///
    /// Waits for the clock that stamps files to go on, a few milliseconds at most: what was done
    /// before this call then has an earlier time than what is done after it.
    pub fn take() -> Self {
        let asked = time(clock_gettime(ClockId::Realtime));
        let since = loop {
            let now = FileTime::now();
            if now > asked {
                break now;
            }
            std::thread::sleep(PAUSE);
        };
        Self {
            since: (since.sec, since.nsec),
            ahead_ns: ahead_ns(),
            boot: boot(),
        }
    }

    /// Into the directory of a held exec.
    pub fn save(&self, home: &Dir) -> FsResult<()> {
        intent::write_file(home, FILE, self)
    }

    pub fn load(home: &Dir) -> FsResult<Self> {
        intent::read_file(home, FILE, MOST)
    }

    /// Whether this was changed since. With a clock that was set back nobody can tell, so all was.
    pub(super) fn moved(&self, stat: &Stat) -> bool {
        let (sec, nsec) = self.since;
        stat.changed >= FileTime { sec, nsec } || self.set_back()
    }

    fn set_back(&self) -> bool {
        const TOLERATED_NS: i64 = 1_000_000;
        self.boot == boot() && ahead_ns() < self.ahead_ns - TOLERATED_NS
    }
}

fn time(now: Timespec) -> FileTime {
    FileTime {
        sec: now.tv_sec,
        nsec: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

fn ahead_ns() -> i64 {
    let ns = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    ns(ClockId::Realtime) - ns(ClockId::Boottime)
}

fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}
