//! A moment that every process of this machine reads the same way, also after the machine slept.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds of `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment(u64);

impl Moment {
    /// Before all others: what cannot be read is over.
    pub(crate) const PAST: Self = Self(0);
    pub const NEVER: Self = Self(u64::MAX);

    pub fn now() -> Self {
        let now = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        Self::from(now)
    }

    pub fn after(self, long: Duration) -> Self {
        Self(self.0.saturating_add(Self::from(long).0))
    }

    /// Until then; nothing when it is over.
    pub fn left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(Self::now().0))
    }

    /// Since then; nothing when it is still to come.
    pub fn elapsed(self) -> Duration {
        Duration::from_nanos(Self::now().0.saturating_sub(self.0))
    }

    pub fn is_over(self) -> bool {
        self <= Self::now()
    }

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }
}

impl From<Duration> for Moment {
    fn from(since_boot: Duration) -> Self {
        Self(u64::try_from(since_boot.as_nanos()).unwrap_or(u64::MAX))
    }
}
