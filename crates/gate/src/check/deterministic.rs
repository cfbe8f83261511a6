//! `deterministic`: it does what it did before.

use glovebox_model::{Confidence, FailureCode};

use super::Found;
use crate::digest::digest;
use crate::evidence::Evidence;
use crate::finding::Finding;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deterministic;

impl Deterministic {
    pub(super) fn try_on(self, evidence: &Evidence<'_>) -> Found {
        let now = digest(evidence.effects()?);
        match evidence.subject.history.digest {
            Some(before) if before == now => Ok(Finding::good()),
            Some(_) => Err(Finding::bad(
                FailureCode::NonDeterminism,
                "its effects differ from those of an earlier run of the same program",
                "take out what differs each time, such as times and random names, and try again",
            )),
            None => Ok(Finding::unsure(
                Confidence::NONE,
                "there is no earlier run to compare it with",
            )),
        }
    }
}
