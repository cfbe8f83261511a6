//! The loop: an input from those that were worth keeping, mutated, mended half of the time, given to
//! its target. What brings an answer that nobody gave before is worth keeping.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::mutate::{Dice, mutate};
use crate::targets::Target;

/// New answers that are kept beside the seeds.
const KEPT: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Inputs(u64),
    Time(Duration),
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pursued {
    pub inputs: u64,
    /// By the reader, as sound.
    pub taken: u64,
    /// Different ones.
    pub answers: usize,
}

/// `before` sees each input before its target does, so that one which ends the process is known.
pub fn pursue(target: &Target, seed: u64, until: Until, before: &mut dyn FnMut(&[u8])) -> Pursued {
    let mut dice = Dice::new(seed);
    let mut pool = (target.seeds)();
    let mut answers: HashSet<String> = HashSet::new();
    let mut pursued = Pursued::default();
    let started = Instant::now();
    let seeds = pool.clone();
    let mut waiting = seeds.into_iter();
    loop {
        let over = match until {
            Until::Inputs(most) => pursued.inputs >= most,
            Until::Time(most) => started.elapsed() >= most,
        };
        if over {
            break;
        }
        let input = waiting.next().unwrap_or_else(|| {
            let mut input = mutate(&mut dice, &pool, target.words);
            if dice.below(2) == 0 {
                (target.mend)(&mut input);
            }
            input
        });
        before(&input);
        let answer = target.answer(&input);
        pursued.inputs += 1;
        pursued.taken += u64::from(answer.is_taken());
        let mut is_new = false;
        for line in answer.0.lines() {
            if answers.len() < KEPT && !answers.contains(line) {
                is_new |= answers.insert(line.to_owned());
            }
        }
        if is_new {
            pool.push(input);
        }
    }
    pursued.answers = answers.len();
    pursued
}
