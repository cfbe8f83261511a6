//! How old an entry is, in four words. Nothing of the ledger is ever deleted: a chain with a hole
//! would verify no more. Of what is archived only the files beside it may be pruned.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ledger::Entry;

/// From the newest to the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionTier {
    /// Of the last 24 hours.
    Hot,
    /// Of the last 7 days.
    Warm,
    /// Of the last 30 days.
    Cold,
    Archived,
}

const HOT: SignedDuration = SignedDuration::from_hours(24);
const WARM: SignedDuration = SignedDuration::from_hours(7 * 24);
const COLD: SignedDuration = SignedDuration::from_hours(30 * 24);

impl RetentionTier {
    pub const ALL: [Self; 4] = [Self::Hot, Self::Warm, Self::Cold, Self::Archived];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Archived => "archived",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text)
    }

    /// Something from the future is hot: a clock was set back.
    pub fn of(age: SignedDuration) -> Self {
        match age {
            age if age < HOT => Self::Hot,
            age if age < WARM => Self::Warm,
            age if age < COLD => Self::Cold,
            _ => Self::Archived,
        }
    }

    pub fn at(written: Timestamp, now: Timestamp) -> Self {
        Self::of(now.duration_since(written))
    }

    /// The times of it: from the first on, before the second. None is without end.
    pub fn span(self, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        // What is exactly so old belongs to the older one, and times are counted in whole
        // nanoseconds.
        let after = |age: SignedDuration| {
            now.checked_sub(age)
                .and_then(|time| time.checked_add(SignedDuration::from_nanos(1)))
                .ok()
        };
        match self {
            Self::Hot => (after(HOT), None),
            Self::Warm => (after(WARM), after(HOT)),
            Self::Cold => (after(COLD), after(WARM)),
            Self::Archived => (None, after(COLD)),
        }
    }
}

/// An entry, and how old it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgedEntry {
    #[serde(flatten)]
    pub entry: Entry,
    pub retention_tier: RetentionTier,
}

impl AgedEntry {
    pub fn new(entry: Entry, now: Timestamp) -> Self {
        let retention_tier = RetentionTier::at(entry.at, now);
        Self {
            entry,
            retention_tier,
        }
    }
}

impl fmt::Display for RetentionTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tiers_end_after_a_day_a_week_and_thirty_days() {
        let hours = SignedDuration::from_hours;
        for (age, tier) in [
            (hours(-5), RetentionTier::Hot),
            (hours(0), RetentionTier::Hot),
            (
                hours(24) - SignedDuration::from_nanos(1),
                RetentionTier::Hot,
            ),
            (hours(24), RetentionTier::Warm),
            (hours(7 * 24 - 1), RetentionTier::Warm),
            (hours(7 * 24), RetentionTier::Cold),
            (hours(30 * 24 - 1), RetentionTier::Cold),
            (hours(30 * 24), RetentionTier::Archived),
            (SignedDuration::MAX, RetentionTier::Archived),
        ] {
            assert_eq!(RetentionTier::of(age), tier, "{age}");
        }
    }

    #[test]
    fn the_name_is_the_wire_form() {
        for tier in RetentionTier::ALL {
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.as_str());
            assert_eq!(RetentionTier::parse(tier.as_str()), Some(tier));
        }
    }

    proptest! {
        /// What a search by tier finds is what the tier says of each.
        #[test]
        fn a_time_is_in_the_span_of_its_tier_alone(age_ns in -1_000_i64..40 * 24 * 3_600_000_000_000, edge in 0_usize..4) {
            let now: Timestamp = "2026-08-01T10:00:00.123456789Z".parse().unwrap();
            let age = match edge {
                0 => HOT,
                1 => WARM,
                2 => COLD,
                _ => SignedDuration::from_nanos(age_ns),
            };
            let written = now.checked_sub(age).unwrap();
            for tier in RetentionTier::ALL {
                let (since, until) = tier.span(now);
                let inside = since.is_none_or(|at| written >= at) && until.is_none_or(|at| written < at);
                prop_assert_eq!(inside, RetentionTier::at(written, now) == tier, "{}", tier);
            }
        }
    }
}
