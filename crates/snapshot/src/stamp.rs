//! A moment by a file system's clock, as it stands in a manifest.

use glovebox_workspace::FileTime;
use rustix::fs::{StatxTimestamp, Timespec};
use serde::{Deserialize, Serialize};

const NANOSECONDS: u32 = 1_000_000_000;
/// Files are stamped by ticks of up to 10 ms. Ten of them, for file systems that are coarser.
const RACY_NS: u32 = 100_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) sec: i64,
    pub(crate) nsec: u32,
}

impl Stamp {
    pub(crate) fn now() -> Self {
        let FileTime { sec, nsec } = FileTime::now();
        Self { sec, nsec }
    }

    pub(crate) fn is_sane(self) -> bool {
        self.nsec < NANOSECONDS
    }

    /// Whether a later change must have got another stamp than this one, for somebody who began to
    /// look at `started`.
    pub(crate) fn is_settled(self, started: Stamp) -> bool {
        let edge = match started.nsec.checked_sub(RACY_NS) {
            Some(nsec) => Self {
                sec: started.sec,
                nsec,
            },
            None => Self {
                sec: started.sec.saturating_sub(1),
                nsec: started.nsec + NANOSECONDS - RACY_NS,
            },
        };
        self < edge
    }

    pub(crate) fn timespec(self) -> Timespec {
        Timespec {
            tv_sec: self.sec,
            tv_nsec: i64::from(self.nsec),
        }
    }
}

impl From<StatxTimestamp> for Stamp {
    fn from(time: StatxTimestamp) -> Self {
        Self {
            sec: time.tv_sec,
            nsec: time.tv_nsec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changed_within_a_tenth_of_a_second_is_not_settled() {
        let at = |sec, nsec| Stamp { sec, nsec };
        let started = at(10, 50_000_000);
        assert!(at(9, 949_999_999).is_settled(started));
        assert!(!at(9, 950_000_000).is_settled(started));
        assert!(!at(10, 50_000_000).is_settled(started));
        assert!(!at(11, 0).is_settled(started));
        assert!(at(10, 399_999_999).is_settled(at(10, 500_000_000)));
        assert!(!at(10, 400_000_000).is_settled(at(10, 500_000_000)));
    }
}
