//! Round robin: every contender once, then all of them again, so that other work of the host disturbs
//! all of them alike.

use std::time::{Duration, Instant};

use glovebox_model::{Code, Result};
use serde::Serialize;

use crate::contender::Contender;
use crate::interrupt::Interrupt;
use crate::samples::Quantiles;
use crate::setup::Setup;

/// Caches fill, directories are made, the ledger's key is written.
const WARM_UP: usize = 3;
/// A contender that takes longer has filled its caches the first time.
const SLOW: Duration = Duration::from_millis(200);
/// For all contenders together; slow ones get fewer turns, spread over all rounds.
const BUDGET: Duration = Duration::from_secs(30);
const FEWEST: usize = 5;

/// What came of measuring one contender.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Samples(Quantiles),
    /// Why there are none.
    Failure(String),
}

pub(crate) fn measure(
    contenders: &[Contender],
    rounds: usize,
    setup: &Setup,
    interrupt: &Interrupt,
) -> Result<Vec<Outcome>> {
    let mut all: Vec<Series> = contenders.iter().map(Series::new).collect();
    for _ in 0..WARM_UP {
        for series in all.iter_mut().filter(|series| series.cost < SLOW) {
            series.warm_up(setup, interrupt)?;
        }
    }
    let share = BUDGET / u32::try_from(all.len().max(1)).unwrap_or(u32::MAX);
    for series in &mut all {
        series.turns = turns(series.cost, share, rounds);
    }
    for round in 0..rounds {
        for step in 0..all.len() {
            // Another one begins each round, so that none always runs after the same one.
            let next = (round + step) % all.len();
            let series = &mut all[next];
            if has_turn(round, series.turns, rounds) {
                series.sample(setup, interrupt)?;
            }
        }
    }
    Ok(all.into_iter().map(Series::outcome).collect())
}

/// How often a contender of this cost may run within its share of the time.
fn turns(cost: Duration, share: Duration, rounds: usize) -> usize {
    let affordable = share.as_nanos() / cost.as_nanos().max(1);
    let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
    affordable.max(FEWEST).min(rounds)
}

/// True in exactly `turns` of all rounds, as evenly spread as whole rounds allow.
fn has_turn(round: usize, turns: usize, rounds: usize) -> bool {
    (round + 1) * turns / rounds > round * turns / rounds
}

struct Series<'a> {
    contender: &'a Contender,
    cost: Duration,
    turns: usize,
    samples: Vec<Duration>,
    failure: Option<String>,
}

impl<'a> Series<'a> {
    fn new(contender: &'a Contender) -> Self {
        Self {
            contender,
            cost: Duration::ZERO,
            turns: 0,
            samples: Vec::new(),
            failure: None,
        }
    }

    fn warm_up(&mut self, setup: &Setup, interrupt: &Interrupt) -> Result<()> {
        // Preparation costs time too, though it is not part of any figure.
        let started = Instant::now();
        self.once(setup, interrupt)?;
        self.cost = started.elapsed();
        Ok(())
    }

    fn sample(&mut self, setup: &Setup, interrupt: &Interrupt) -> Result<()> {
        if let Some(took) = self.once(setup, interrupt)? {
            self.samples.push(took);
        }
        Ok(())
    }

    /// A contender that failed is not run again; the others go on.
    fn once(&mut self, setup: &Setup, interrupt: &Interrupt) -> Result<Option<Duration>> {
        interrupt.check()?;
        if self.failure.is_some() {
            return Ok(None);
        }
        match self.contender.measure(setup, interrupt) {
            Ok(took) => Ok(Some(took)),
            Err(error) if error.code == Code::Canceled => Err(error),
            Err(error) => {
                // A child that was canceled may have failed with an error of its own.
                interrupt.check()?;
                let causes = error.causes.join(": ");
                self.failure = Some(format!("{}: {causes}", error.message));
                Ok(None)
            }
        }
    }

    fn outcome(self) -> Outcome {
        match (self.failure, Quantiles::of(&self.samples)) {
            (None, Some(quantiles)) => Outcome::Samples(quantiles),
            (Some(failure), _) => Outcome::Failure(failure),
            (None, None) => Outcome::Failure("it had no turn".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_has_exactly_its_turns() {
        for rounds in [1, 5, 7, 100] {
            for turns in 1..=rounds {
                let had = (0..rounds).filter(|round| has_turn(*round, turns, rounds));
                assert_eq!(had.count(), turns, "{turns} of {rounds}");
            }
        }
    }

    #[test]
    fn slow_contenders_have_fewer_turns_but_never_too_few() {
        let share = Duration::from_secs(2);
        assert_eq!(turns(Duration::from_millis(1), share, 100), 100);
        assert_eq!(turns(Duration::from_millis(100), share, 100), 20);
        assert_eq!(turns(Duration::from_secs(5), share, 100), FEWEST);
        assert_eq!(turns(Duration::from_secs(5), share, 3), 3);
    }
}
