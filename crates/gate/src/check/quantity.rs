//! A number that a check compares: one that has a name, or one in the output.

use std::fmt;

use glovebox_model::FailureCode;

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::history::Sample;
use crate::kinds::Kinds;
use crate::metric::Metric;
use crate::pointer::Pointer;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    Metric(Metric),
    At(Pointer),
}

impl Quantity {
    pub(super) const fn asks(&self) -> Kinds {
        match self {
            Self::Metric(metric) => metric.asks(),
            Self::At(_) => Kinds::NONE,
        }
    }

    pub(super) fn of(&self, evidence: &Evidence<'_>) -> Result<f64, Finding> {
        let found = match self {
            Self::Metric(metric) => metric.of(evidence.subject).map(decimal),
            Self::At(at) => evidence.output_at(at)?.and_then(serde_json::Value::as_f64),
        };
        found.ok_or_else(|| {
            let way_out = match self {
                Self::Metric(_) => "do less in one run, so that all of it can be counted",
                Self::At(_) => "print the number with the output",
            };
            Finding::bad(
                FailureCode::MissingData,
                format!("{self} is not known, or is not a number"),
                way_out,
            )
        })
    }

    pub(super) fn of_sample(&self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Metric(metric) => metric.of_sample(sample).map(decimal),
            Self::At(at) => at.find(sample.output.as_ref()?)?.as_f64(),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(metric) => write!(f, "`{}`", metric.as_str()),
            Self::At(at) => write!(f, "{at}"),
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "bounds need no more digits than that"
)]
fn decimal(number: i128) -> f64 {
    number as f64
}
