//! How much work one body may make, in all the forms within forms that it is read as: counted from its
//! own bytes, so that no form lends bytes to the next.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// As retrieval has it: what people wrote does not get larger than this many times.
const GROWTH_MOST: u64 = 200;
/// Small things may.
const GROWTH_FREE: u64 = 1 << 20;
/// Streams that begin where another ended, beside one for so many bytes: each costs a decoder.
const STARTS_FREE: u64 = 1000;
const STARTS_EVERY: u64 = 256;
/// And in what comes at once, which nothing else gets a turn in.
const STARTS_AT_ONCE: u64 = 1000;
/// Decoders at a time.
const FOLLOWED_MOST: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Budget {
    came: AtomicU64,
    made: AtomicU64,
    starts: AtomicU64,
    at_once: AtomicU64,
    followed: AtomicUsize,
}

impl Budget {
    /// More of the body itself.
    pub(crate) fn comes(&self, count: usize) {
        self.came.fetch_add(count as u64, Relaxed);
        self.at_once.store(0, Relaxed);
    }

    /// Whether so many decoded bytes more are not too many.
    pub(crate) fn grows(&self, count: usize) -> bool {
        let made = self.made.fetch_add(count as u64, Relaxed) + count as u64;
        made <= GROWTH_FREE.max(self.came.load(Relaxed).saturating_mul(GROWTH_MOST))
    }

    /// Whether another stream may begin where one ended.
    pub(crate) fn starts(&self) -> bool {
        let starts = self.starts.fetch_add(1, Relaxed) + 1;
        let at_once = self.at_once.fetch_add(1, Relaxed) + 1;
        at_once <= STARTS_AT_ONCE && starts <= STARTS_FREE + self.came.load(Relaxed) / STARTS_EVERY
    }

    pub(crate) fn enter(&self) {
        self.followed.fetch_add(1, Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.followed.fetch_sub(1, Relaxed);
    }

    /// Whether a decoder that is counted may stay.
    pub(crate) fn has_place(&self) -> bool {
        self.followed.load(Relaxed) <= FOLLOWED_MOST
    }
}
