//! The sandboxes of one shape.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Warm;

#[derive(Debug)]
pub(super) struct Resting {
    pub(super) warm: Box<dyn Warm>,
    pub(super) since: Instant,
}

#[derive(Debug)]
pub(super) struct Shelf {
    /// Oldest first.
    pub(super) idle: VecDeque<Resting>,
    pub(super) building: usize,
    /// How many are to be there.
    pub(super) wanted: usize,
    /// How many are there even when nobody asks.
    pub(super) fewest: usize,
    pub(super) asked_at: Instant,
    pub(super) missed_at: Instant,
    /// After a failure nothing is tried before, and after each one more the pause is longer.
    pub(super) not_before: Instant,
    failures: u32,
}

/// After one that could not be made: this host cannot do it now, and trying harder helps nobody.
const SETBACK: Duration = Duration::from_secs(1);

impl Shelf {
    pub(super) fn standing(count: usize, now: Instant) -> Self {
        Self {
            idle: VecDeque::new(),
            building: 0,
            wanted: count,
            fewest: count,
            asked_at: now,
            missed_at: now,
            not_before: now,
            failures: 0,
        }
    }

    /// Of a shape that somebody has asked for once.
    pub(super) fn tried(now: Instant) -> Self {
        Self {
            wanted: 1,
            ..Self::standing(0, now)
        }
    }

    /// The newest: it was the last to be seen alive, and the old ones can go when it is calm.
    pub(super) fn take(&mut self) -> Option<Box<dyn Warm>> {
        self.idle.pop_back().map(|resting| resting.warm)
    }

    /// Somebody found none.
    pub(super) fn grow(&mut self, most: usize) {
        self.missed_at = Instant::now();
        self.wanted = (self.wanted * 2).clamp(1, most);
    }

    /// One more could not be made. True the first time.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let pause = SETBACK.saturating_mul(1 << self.failures.min(8));
        self.not_before = now + pause;
        self.failures += 1;
        self.failures == 1
    }

    pub(super) fn stocked(&mut self, resting: Resting) {
        self.failures = 0;
        self.idle.push_back(resting);
    }

    pub(super) fn is_short(&self, now: Instant) -> bool {
        self.idle.len() + self.building < self.wanted && now >= self.not_before
    }

    /// Takes out what has stood too long, and what a calmer time does not need.
    pub(super) fn tidy(&mut self, now: Instant, idle: Duration, age: Duration) -> Vec<Resting> {
        let is_calm = now.duration_since(self.missed_at) >= idle;
        let is_unasked = now.duration_since(self.asked_at) >= idle;
        if is_unasked {
            self.wanted = self.fewest;
        } else if is_calm && self.wanted > self.fewest.max(1) {
            self.wanted = (self.wanted / 2).max(self.fewest).max(1);
            self.missed_at = now;
        }
        let mut out = Vec::new();
        while self.idle.len() > self.wanted
            || self
                .idle
                .front()
                .is_some_and(|it| now.duration_since(it.since) >= age)
        {
            out.extend(self.idle.pop_front());
        }
        out
    }

    /// Not all are there that always stand ready.
    pub(super) fn is_owed(&self) -> bool {
        self.idle.len() + self.building < self.fewest
    }

    /// Not one of those that always stand ready.
    pub(super) fn may_give_one(&self) -> bool {
        !self.idle.is_empty() && self.idle.len() + self.building > self.fewest
    }

    /// Nothing is here and nothing is to come.
    pub(super) fn is_over(&self) -> bool {
        self.wanted == 0 && self.idle.is_empty() && self.building == 0
    }
}
