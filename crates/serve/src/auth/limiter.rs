//! Guessing tokens gets slow: after so many bad ones in a minute an address is told to wait. A good
//! token is never held up by it, so nobody can lock another out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::listen::Peer;

const WINDOW: Duration = Duration::from_secs(60);
/// More addresses than that are forgotten, the idle ones first.
const REMEMBERED: usize = 10_000;

#[derive(Debug)]
pub(super) struct Limiter {
    most: u32,
    failures: Mutex<HashMap<Peer, Window>>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    since: Instant,
    count: u32,
}

/// What an address that sent one more bad token has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateLimitState {
    Fine,
    /// This one was the first too many.
    Exceeded {
        wait: Duration,
    },
    Waiting {
        wait: Duration,
    },
}

impl Limiter {
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            failures: Mutex::default(),
        }
    }

    pub(super) fn failed(&self, peer: Peer, now: Instant) -> RateLimitState {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= REMEMBERED {
            failures.retain(|_, window| now.duration_since(window.since) < WINDOW);
            if failures.len() >= REMEMBERED {
                failures.clear();
            }
        }
        let window = failures.entry(peer).or_insert(Window {
            since: now,
            count: 0,
        });
        if now.duration_since(window.since) >= WINDOW {
            *window = Window {
                since: now,
                count: 0,
            };
        }
        window.count = window.count.saturating_add(1);
        let wait = WINDOW.saturating_sub(now.duration_since(window.since));
        match window.count.checked_sub(self.most) {
            None | Some(0) => RateLimitState::Fine,
            Some(1) => RateLimitState::Exceeded { wait },
            Some(_) => RateLimitState::Waiting { wait },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_starts_over() {
        let limiter = Limiter::new(2);
        let (peer, now) = (Peer::Owner, Instant::now());
        assert_eq!(limiter.failed(peer, now), RateLimitState::Fine);
        assert_eq!(limiter.failed(peer, now), RateLimitState::Fine);
        assert!(matches!(
            limiter.failed(peer, now),
            RateLimitState::Exceeded { .. }
        ));
        assert!(matches!(
            limiter.failed(peer, now),
            RateLimitState::Waiting { .. }
        ));
        let other = Peer::Address([10, 0, 0, 1].into());
        assert_eq!(limiter.failed(other, now), RateLimitState::Fine);
        assert_eq!(limiter.failed(peer, now + WINDOW), RateLimitState::Fine);
    }
}
