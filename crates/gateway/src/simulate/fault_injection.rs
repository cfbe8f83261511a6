//! How a simulated world fails: which try succeeds, which does not, and how long each takes. Pure:
//! the clock is the caller's, and one seed gives one sequence.

use std::time::{Duration, Instant};

use globset::{Glob, GlobMatcher};
use glovebox_model::{Code, Error, Failure, Fault, FaultPattern, RateLimit, Result, Stage};
use serde::Serialize;

use super::check::{at_most, numbered, refuse, shown};
use super::host::HostRule;

const FAULTS_MOST: usize = 256;
/// Longer than anybody waits for an answer.
const DELAY_MOST_MS: u64 = 60 * 60 * 1000;

/// Who tries something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try<'a> {
    /// A request to a host, or a connection to one.
    Host(&'a str),
    /// A tool that asks by itself, by its name.
    Tool(&'a str),
}

/// What becomes of one try. The delay comes before it, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub delay_ms: u64,
    /// None: it succeeds.
    pub fault: Option<Injected>,
    /// Of a rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// A fault that is made to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Injected {
    Error,
    Timeout,
    Crash,
    RateLimit,
}

impl From<Failure> for Injected {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error => Self::Error,
            Failure::Timeout => Self::Timeout,
            Failure::Crash => Self::Crash,
        }
    }
}

impl Outcome {
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }
}

/// A fault that can be held against tries.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    host: Option<HostRule>,
    tool: Option<GlobMatcher>,
    fault: Fault,
}

impl Front {
    pub(crate) fn new(fault: &Fault) -> Result<Self> {
        if fault.host.is_none() && fault.tool.is_none() {
            return Err(refuse("a fault has neither `host` nor `tool`")
                .hint("say whom it is for: `\"host\": \"*\"` is every host"));
        }
        if fault.success_percent > 100 {
            return Err(refuse(format!(
                "`success_percent` is {}, and of a hundred tries at most 100 succeed",
                fault.success_percent
            )));
        }
        if fault.latency_ms.saturating_add(fault.jitter_ms) > DELAY_MOST_MS {
            return Err(refuse(format!(
                "`latency_ms` and `jitter_ms` are together more than {DELAY_MOST_MS}"
            ))
            .hint("for answers that never come there is `\"failure\": \"timeout\"`"));
        }
        if let Some(RateLimit { requests, per_ms }) = fault.rate_limit
            && (requests == 0 || per_ms == 0)
        {
            return Err(refuse("a rate limit has a 0 in it")
                .hint("for a host that never answers there is `\"success_percent\": 0`"));
        }
        let tool = match &fault.tool {
            None => None,
            Some(text) => Some(tool_rule(text)?),
        };
        Ok(Self {
            host: fault.host.as_deref().map(HostRule::parse).transpose()?,
            tool,
            fault: fault.clone(),
        })
    }

    fn fits(&self, who: Try<'_>) -> bool {
        match who {
            Try::Host(host) => self.host.as_ref().is_some_and(|it| it.fits(host)),
            Try::Tool(tool) => self.tool.as_ref().is_some_and(|it| it.is_match(tool)),
        }
    }
}

/// With classes and alternatives, as simulations have always had them: `{mail,chat}_*`.
fn tool_rule(text: &str) -> Result<GlobMatcher> {
    match Glob::new(text) {
        Ok(glob) if !text.is_empty() => Ok(glob.compile_matcher()),
        Ok(_) => Err(refuse("a fault's `tool` is empty").hint("`*` is every tool")),
        Err(error) => Err(refuse(format!(
            "`{}` is not a glob for tools: {}",
            shown(text),
            error.kind()
        ))
        .hint("write for example `mail_*`")),
    }
}

/// The faults of one simulation and how far each has come.
#[derive(Debug, Clone)]
pub struct FaultInjection {
    seed: u64,
    fronts: Vec<(Front, Course)>,
}

/// What one fault has seen.
#[derive(Debug, Clone, Default)]
struct Course {
    tries: u64,
    drawn: u64,
    window: Option<(Instant, u32)>,
}

impl FaultInjection {
    /// Of a simulation's faults. Without a seed it is another one each time.
    ///
    /// # Errors
    /// `invalid_argument` for a fault that cannot be played.
    pub fn new(faults: &[Fault], seed: Option<u64>) -> Result<Self> {
        let fronts = fronts(faults)?;
        Ok(Self::of(seeded(seed)?, &fronts))
    }

    pub(crate) fn of(seed: u64, fronts: &[Front]) -> Self {
        let fronts = fronts.iter().map(|it| (it.clone(), Course::default()));
        Self {
            seed,
            fronts: fronts.collect(),
        }
    }

    /// What becomes of one call of a tool, now.
    pub fn of_tool(&mut self, tool: &str) -> Outcome {
        self.next(Try::Tool(tool), Instant::now())
    }

    /// What becomes of one request to a host, now.
    pub fn of_host(&mut self, host: &str) -> Outcome {
        self.next(Try::Host(host), Instant::now())
    }

    /// The first fault that fits decides; without one all is well.
    pub fn next(&mut self, who: Try<'_>, now: Instant) -> Outcome {
        let seed = self.seed;
        let mut all = self.fronts.iter_mut().enumerate();
        let Some((number, (front, course))) = all.find(|(_, (front, _))| front.fits(who)) else {
            return Outcome {
                delay_ms: 0,
                fault: None,
                retry_after_ms: None,
            };
        };
        let mut draw = || {
            course.drawn += 1;
            drawn(seed, number, course.drawn)
        };
        let fault = &front.fault;
        let jitter = match fault.jitter_ms {
            0 => 0,
            most => draw() % (most + 1),
        };
        let delay_ms = fault.latency_ms + jitter;
        // A try that comes too early does not count for the pattern: it was never made.
        let limit = fault.rate_limit;
        if let Some(retry_after) = limit.and_then(|it| too_early(&mut course.window, it, now)) {
            let left = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
            return Outcome {
                delay_ms,
                fault: Some(Injected::RateLimit),
                // What is left of a millisecond is one: earlier would be too early again.
                retry_after_ms: Some(left.max(1)),
            };
        }
        let number_of_try = course.tries;
        course.tries += 1;
        let succeeds = match fault.pattern {
            FaultPattern::Random => draw() % 100 < u64::from(fault.success_percent),
            FaultPattern::Alternating => number_of_try % 2 == 0,
            FaultPattern::Burst => in_burst(number_of_try, u64::from(fault.success_percent)),
        };
        Outcome {
            delay_ms,
            fault: (!succeeds).then(|| fault.failure.into()),
            retry_after_ms: None,
        }
    }
}

/// How each fault of a simulation is to be held against tries.
pub(crate) fn fronts(faults: &[Fault]) -> Result<Vec<Front>> {
    at_most("faults", faults.len(), FAULTS_MOST)?;
    numbered("faults", faults, Front::new)
}

pub(crate) fn seeded(seed: Option<u64>) -> Result<u64> {
    if let Some(seed) = seed {
        return Ok(seed);
    }
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        let why = "the system has no random numbers";
        Error::new(Code::Internal, Stage::Admit, why).caused_by(error)
    })?;
    Ok(u64::from_le_bytes(bytes))
}

/// The shortest row that has the percentage: 70 is seven that succeed and three that do not.
fn in_burst(number: u64, percent: u64) -> bool {
    let mut row: u64 = 100;
    for divisor in [2, 2, 5, 5] {
        let successes: u64 = percent * row / 100;
        if successes.is_multiple_of(divisor) && row.is_multiple_of(divisor) {
            row /= divisor;
        }
    }
    number % row < percent * row / 100
}

/// How long until the next try may be made, if this one may not.
fn too_early(
    window: &mut Option<(Instant, u32)>,
    limit: RateLimit,
    now: Instant,
) -> Option<Duration> {
    let length = Duration::from_millis(limit.per_ms);
    match window {
        Some((since, count)) if now.saturating_duration_since(*since) < length => {
            if *count >= limit.requests {
                return Some(length - now.saturating_duration_since(*since));
            }
            *count += 1;
        }
        _ => *window = Some((now, 1)),
    }
    None
}

/// The `count`th number of one fault: those of other faults do not change it.
fn drawn(seed: u64, fault: usize, count: u64) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(fault as u64).to_le_bytes());
    hasher.update(&count.to_le_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault {
            host: Some("*".to_owned()),
            tool: None,
            success_percent: 100,
            pattern: FaultPattern::Random,
            failure: Failure::Error,
            latency_ms: 0,
            jitter_ms: 0,
            rate_limit: None,
        }
    }

    fn weather(seed: u64, faults: &[Fault]) -> FaultInjection {
        FaultInjection::new(faults, Some(seed)).unwrap()
    }

    fn failures(weather: &mut FaultInjection, host: &str, tries: usize) -> Vec<bool> {
        let now = Instant::now();
        let failed = |_| weather.next(Try::Host(host), now).fault.is_some();
        (0..tries).map(failed).collect()
    }

    #[test]
    fn one_seed_gives_one_sequence_and_another_seed_another() {
        let half = Fault {
            success_percent: 50,
            ..fault()
        };
        let run = |seed| {
            failures(
                &mut weather(seed, std::slice::from_ref(&half)),
                "a.test",
                200,
            )
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let failed = run(1).iter().filter(|it| **it).count();
        assert!((60..140).contains(&failed), "{failed}");
    }

    #[test]
    fn what_happens_to_one_host_does_not_change_another() {
        let of = |host: &str| Fault {
            host: Some(host.to_owned()),
            success_percent: 50,
            ..fault()
        };
        let both = [of("a.test"), of("b.test")];
        let alone = failures(&mut weather(7, &both), "b.test", 50);
        let mut mixed = weather(7, &both);
        failures(&mut mixed, "a.test", 13);
        assert_eq!(failures(&mut mixed, "b.test", 50), alone);
    }

    #[test]
    fn percentages_at_the_ends_are_always_and_never() {
        for pattern in [FaultPattern::Random, FaultPattern::Burst] {
            for (success_percent, fails) in [(100, false), (0, true)] {
                let one = Fault {
                    success_percent,
                    pattern,
                    ..fault()
                };
                let failed = failures(&mut weather(3, &[one]), "a.test", 300);
                assert!(failed.iter().all(|it| *it == fails), "{success_percent}");
            }
        }
    }

    #[test]
    fn alternating_is_every_second_one() {
        let one = Fault {
            pattern: FaultPattern::Alternating,
            ..fault()
        };
        let failed = failures(&mut weather(1, &[one]), "a.test", 4);
        assert_eq!(failed, [false, true, false, true]);
    }

    #[test]
    fn a_burst_has_its_percentage_and_comes_together() {
        for percent in 0..=100 {
            let one = Fault {
                pattern: FaultPattern::Burst,
                success_percent: percent,
                ..fault()
            };
            let failed = failures(&mut weather(1, &[one]), "a.test", 100);
            let count = failed.iter().filter(|it| **it).count();
            assert_eq!(count, usize::from(100 - percent), "{percent}");
        }
        let one = Fault {
            pattern: FaultPattern::Burst,
            success_percent: 70,
            ..fault()
        };
        let failed = failures(&mut weather(1, &[one]), "a.test", 20);
        let row = [[false; 7].as_slice(), &[true; 3]].concat();
        assert_eq!(failed, [row.clone(), row].concat());
    }

    #[test]
    fn delays_stay_between_their_ends() {
        let one = Fault {
            latency_ms: 10,
            jitter_ms: 5,
            ..fault()
        };
        let mut weather = weather(1, &[one]);
        let now = Instant::now();
        let delays: Vec<_> = (0..200)
            .map(|_| weather.next(Try::Host("a.test"), now).delay_ms)
            .collect();
        assert_eq!(delays.iter().min(), Some(&10));
        assert_eq!(delays.iter().max(), Some(&15));
    }

    #[test]
    fn a_rate_limit_says_when_to_come_back() {
        let one = Fault {
            rate_limit: Some(RateLimit {
                requests: 2,
                per_ms: 1000,
            }),
            ..fault()
        };
        let mut weather = weather(1, &[one]);
        let start = Instant::now();
        let mut at = |ms| {
            let now = start + Duration::from_millis(ms);
            let outcome = weather.next(Try::Host("a.test"), now);
            outcome.fault.map(|it| (it, outcome.retry_after_ms))
        };
        assert_eq!(at(0), None);
        assert_eq!(at(300), None);
        assert_eq!(at(400), Some((Injected::RateLimit, Some(600))));
        assert_eq!(at(1000), None);
    }

    #[test]
    fn the_first_fault_that_fits_decides_for_hosts_and_tools() {
        let tool = Fault {
            host: None,
            tool: Some("mail_*".to_owned()),
            success_percent: 0,
            failure: Failure::Crash,
            ..fault()
        };
        let crash = Some(Injected::Crash);
        let mut weather = weather(1, &[tool, fault()]);
        let now = Instant::now();
        assert_eq!(weather.next(Try::Tool("mail_send"), now).fault, crash);
        assert_eq!(weather.next(Try::Tool("other"), now).fault, None);
        assert_eq!(weather.next(Try::Host("mail_send"), now).fault, None);
    }

    #[test]
    fn faults_that_say_nothing_or_too_much_are_refused() {
        let limited = |requests, per_ms| Some(RateLimit { requests, per_ms });
        let wrong = [
            Fault {
                host: None,
                ..fault()
            },
            Fault {
                success_percent: 101,
                ..fault()
            },
            Fault {
                host: Some("a b".to_owned()),
                ..fault()
            },
            Fault {
                tool: Some("[".to_owned()),
                ..fault()
            },
            Fault {
                tool: Some(String::new()),
                ..fault()
            },
            Fault {
                latency_ms: u64::MAX,
                jitter_ms: 1,
                ..fault()
            },
            Fault {
                rate_limit: limited(0, 1),
                ..fault()
            },
            Fault {
                rate_limit: limited(1, 0),
                ..fault()
            },
        ];
        for fault in wrong {
            let error = Front::new(&fault).unwrap_err();
            assert_eq!(
                error.code,
                glovebox_model::Code::InvalidArgument,
                "{fault:?}"
            );
        }
    }
}
