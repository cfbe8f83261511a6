//! `statistical_bounds`: a number lies between two others.

use glovebox_model::FailureCode;

use super::{Found, Quantity};
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::finite::Finite;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    quantity: Quantity,
    min: Option<Finite>,
    max: Option<Finite>,
}

impl Bounds {
    pub(super) const fn asks(&self) -> crate::kinds::Kinds {
        self.quantity.asks()
    }

    pub fn new(
        quantity: Quantity,
        min: Option<Finite>,
        max: Option<Finite>,
    ) -> Result<Self, String> {
        match (min, max) {
            (None, None) => Err("needs `min`, `max` or both".to_owned()),
            (Some(min), Some(max)) if min > max => {
                Err(format!("has a `min` of {min} above its `max` of {max}"))
            }
            (Some(_) | None, Some(_) | None) => Ok(Self { quantity, min, max }),
        }
    }

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let found = self.quantity.of(evidence)?;
        let beyond = match (self.min, self.max) {
            (Some(min), _) if found < min.get() => format!("below {min}"),
            (_, Some(max)) if found > max.get() => format!("above {max}"),
            (Some(_) | None, Some(_) | None) => return Ok(Finding::good()),
        };
        Err(Finding::bad(
            FailureCode::OutOfScope,
            format!("{} is {found}, {beyond}", self.quantity),
            "look at why the number is so far off, or widen the gate's bounds",
        ))
    }
}
