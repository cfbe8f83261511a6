//! How much one caller, and all of them, may fetch at once and in a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::refusal::{Refusal, RefusalCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterRules {
    pub at_once: usize,
    pub at_once_of_a_caller: usize,
    /// Of a caller; as many may come in one burst.
    pub in_a_minute: u32,
}

impl Default for LimiterRules {
    fn default() -> Self {
        Self {
            at_once: 32,
            at_once_of_a_caller: 4,
            in_a_minute: 60,
        }
    }
}

/// Callers that are remembered. Whoever is idle and has all of its rate left is forgotten first.
const CALLERS_MOST: usize = 10_000;
/// A millisecond brings back as many parts as there are requests in a minute.
const REQUEST: u64 = 60_000;
/// When a place may be free again is not known; a short while is polite.
const PLACE_AGAIN_MS: u64 = 1000;

#[derive(Debug)]
pub struct Limiter {
    rules: LimiterRules,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    callers: HashMap<String, Caller>,
}

#[derive(Debug)]
struct Caller {
    running: usize,
    /// In parts of which a request takes [`REQUEST`], so that no time is lost to rounding.
    left: u64,
    at: Instant,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub struct RatePermit {
    state: Arc<Mutex<State>>,
    caller: String,
}

impl Drop for RatePermit {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running = state.running.saturating_sub(1);
        if let Some(caller) = state.callers.get_mut(&self.caller) {
            caller.running = caller.running.saturating_sub(1);
        }
    }
}

impl Limiter {
    pub fn new(rules: LimiterRules) -> Self {
        Self {
            rules,
            state: Arc::default(),
        }
    }

    pub fn enter(&self, caller: &str) -> Result<RatePermit, Refusal> {
        self.enter_at(caller, Instant::now())
    }

    fn enter_at(&self, name: &str, now: Instant) -> Result<RatePermit, Refusal> {
        let rate = u64::from(self.rules.in_a_minute);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.running >= self.rules.at_once {
            return Err(busy("all places are taken", PLACE_AGAIN_MS));
        }
        if state.callers.len() >= CALLERS_MOST && !state.callers.contains_key(name) {
            state.callers.retain(|_, it| {
                it.refill(rate, now);
                it.running > 0 || it.left < rate * REQUEST
            });
            if state.callers.len() >= CALLERS_MOST {
                return Err(busy("too many callers", PLACE_AGAIN_MS));
            }
        }
        let caller = state.callers.entry(name.to_owned()).or_insert(Caller {
            running: 0,
            left: rate * REQUEST,
            at: now,
        });
        caller.refill(rate, now);
        if caller.running >= self.rules.at_once_of_a_caller {
            let most = self.rules.at_once_of_a_caller;
            return Err(busy(&format!("{most} are under way"), PLACE_AGAIN_MS));
        }
        if caller.left < REQUEST {
            let after = (REQUEST - caller.left).div_ceil(rate.max(1));
            return Err(busy(&format!("{rate} in a minute are enough"), after));
        }
        caller.left -= REQUEST;
        caller.running += 1;
        state.running += 1;
        Ok(RatePermit {
            state: Arc::clone(&self.state),
            caller: name.to_owned(),
        })
    }
}

impl Caller {
    fn refill(&mut self, rate: u64, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let left = self.left.saturating_add(passed.saturating_mul(rate));
        self.left = left.min(rate * REQUEST);
        self.at += Duration::from_millis(passed);
    }
}

fn busy(why: &str, after: u64) -> Refusal {
    Refusal::new(RefusalCode::RateLimited, format!("not now: {why}"))
        .hint("wait, then try again")
        .retry_after_ms(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(at_once: usize, of_a_caller: usize, in_a_minute: u32) -> Limiter {
        Limiter::new(LimiterRules {
            at_once,
            at_once_of_a_caller: of_a_caller,
            in_a_minute,
        })
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let limiter = rules(3, 2, 1000);
        let first = limiter.enter("a").unwrap();
        let _second = limiter.enter("a").unwrap();
        assert_eq!(
            limiter.enter("a").unwrap_err().code,
            RefusalCode::RateLimited
        );
        let _third = limiter.enter("b").unwrap();
        assert!(limiter.enter("c").is_err(), "all places are taken");
        drop(first);
        limiter.enter("a").unwrap();
    }

    #[test]
    fn a_rate_comes_back_when_it_says_so() {
        let limiter = rules(100, 100, 6);
        let start = Instant::now();
        for _ in 0..6 {
            limiter.enter_at("a", start).unwrap();
        }
        let refusal = limiter.enter_at("a", start).unwrap_err();
        assert_eq!(refusal.retry_after_ms, Some(10_000));
        limiter.enter_at("b", start).unwrap();
        let early = start + Duration::from_millis(9_999);
        assert!(limiter.enter_at("a", early).is_err());
        limiter
            .enter_at("a", start + Duration::from_millis(10_000))
            .unwrap();
    }

    #[test]
    fn many_small_waits_add_up() {
        let limiter = rules(100, 100, 1);
        let start = Instant::now();
        limiter.enter_at("a", start).unwrap();
        let mut entered = 0;
        for step in 1..=120_500u64 {
            let now = start + Duration::from_millis(step);
            entered += usize::from(limiter.enter_at("a", now).is_ok());
        }
        assert_eq!(entered, 2);
    }

    #[test]
    fn callers_do_not_pile_up() {
        let limiter = rules(1, 1, 60);
        let start = Instant::now();
        for number in 0..CALLERS_MOST {
            limiter.enter_at(&number.to_string(), start).unwrap();
        }
        assert!(limiter.enter_at("one more", start).is_err());
        let later = start + Duration::from_secs(61);
        limiter.enter_at("one more", later).unwrap();
        assert!(limiter.state.lock().unwrap().callers.len() < 10);
    }
}
