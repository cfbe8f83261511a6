//! Round robin: everybody once, then everybody again, so that whatever the host does meanwhile
//! happens to all of them.

use std::time::{Duration, Instant};

use glovebox_model::{Code, Result};

use super::contender::Contender;
use super::interrupt::Interrupt;
use super::samples::Quantiles;
use super::stage::Stage;

/// Caches fill, directories are made, the ledger's key is written.
const WARM_UP: usize = 3;
/// Who takes longer has filled its caches the first time.
const SLOW: Duration = Duration::from_millis(200);
/// For everybody together; who is slow gets fewer turns, spread over all rounds.
const BUDGET: Duration = Duration::from_secs(30);
const FEWEST: usize = 5;

/// What became of one contender.
#[derive(Debug)]
pub(super) enum Outcome {
    Measured(Quantiles),
    Failed(String),
}

pub(super) fn measure(
    contenders: &[Contender],
    rounds: usize,
    stage: &Stage,
    interrupt: &Interrupt,
) -> Result<Vec<Outcome>> {
    let mut lanes: Vec<Lane> = contenders.iter().map(Lane::new).collect();
    for _ in 0..WARM_UP {
        for lane in lanes.iter_mut().filter(|lane| lane.cost < SLOW) {
            lane.warm_up(stage, interrupt)?;
        }
    }
    let share = BUDGET / u32::try_from(lanes.len().max(1)).unwrap_or(u32::MAX);
    for lane in &mut lanes {
        lane.turns = turns(lane.cost, share, rounds);
    }
    for round in 0..rounds {
        for step in 0..lanes.len() {
            // Another one begins each round: nobody always runs after the same neighbour's mess.
            let next = (round + step) % lanes.len();
            let lane = &mut lanes[next];
            if has_turn(round, lane.turns, rounds) {
                lane.sample(stage, interrupt)?;
            }
        }
    }
    Ok(lanes.into_iter().map(Lane::outcome).collect())
}

/// How often somebody of this cost may run within its share of the time.
fn turns(cost: Duration, share: Duration, rounds: usize) -> usize {
    let affordable = share.as_nanos() / cost.as_nanos().max(1);
    let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
    affordable.max(FEWEST).min(rounds)
}

/// Exactly `turns` of all rounds, as evenly as whole rounds go.
fn has_turn(round: usize, turns: usize, rounds: usize) -> bool {
    (round + 1) * turns / rounds > round * turns / rounds
}

struct Lane<'a> {
    contender: &'a Contender,
    cost: Duration,
    turns: usize,
    samples: Vec<Duration>,
    failure: Option<String>,
}

impl<'a> Lane<'a> {
    fn new(contender: &'a Contender) -> Self {
        Self {
            contender,
            cost: Duration::ZERO,
            turns: 0,
            samples: Vec::new(),
            failure: None,
        }
    }

    fn warm_up(&mut self, stage: &Stage, interrupt: &Interrupt) -> Result<()> {
        // Preparation costs time too, though it is not part of any figure.
        let started = Instant::now();
        self.once(stage, interrupt)?;
        self.cost = started.elapsed();
        Ok(())
    }

    fn sample(&mut self, stage: &Stage, interrupt: &Interrupt) -> Result<()> {
        if let Some(took) = self.once(stage, interrupt)? {
            self.samples.push(took);
        }
        Ok(())
    }

    /// One that failed is out, and says why; the others go on.
    fn once(&mut self, stage: &Stage, interrupt: &Interrupt) -> Result<Option<Duration>> {
        interrupt.check()?;
        if self.failure.is_some() {
            return Ok(None);
        }
        match self.contender.measure(stage, interrupt) {
            Ok(took) => Ok(Some(took)),
            Err(error) if error.code == Code::Canceled => Err(error),
            Err(error) => {
                // A canceled child fails in its own words.
                interrupt.check()?;
                let causes = error.causes.join(": ");
                self.failure = Some(format!("{}: {causes}", error.message));
                Ok(None)
            }
        }
    }

    fn outcome(self) -> Outcome {
        match (self.failure, Quantiles::of(&self.samples)) {
            (None, Some(quantiles)) => Outcome::Measured(quantiles),
            (Some(failure), _) => Outcome::Failed(failure),
            (None, None) => Outcome::Failed("it had no turn".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_exactly_its_turns() {
        for rounds in [1, 5, 7, 100] {
            for turns in 1..=rounds {
                let had = (0..rounds).filter(|round| has_turn(*round, turns, rounds));
                assert_eq!(had.count(), turns, "{turns} of {rounds}");
            }
        }
    }

    #[test]
    fn the_slow_have_fewer_turns_but_never_too_few() {
        let share = Duration::from_secs(2);
        assert_eq!(turns(Duration::from_millis(1), share, 100), 100);
        assert_eq!(turns(Duration::from_millis(100), share, 100), 20);
        assert_eq!(turns(Duration::from_secs(5), share, 100), FEWEST);
        assert_eq!(turns(Duration::from_secs(5), share, 3), 3);
    }
}
