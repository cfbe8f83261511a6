//! `anomaly`: a number is like those of earlier runs. The more of them there are, the more that is
//! worth.

use glovebox_model::{Confidence, FailureCode};

use super::{Found, Quantity};
use crate::evidence::Evidence;
use crate::finding::{Finding, share};
use crate::finite::Finite;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By the median: one wild run among the earlier ones changes little.
    #[default]
    Mad,
    /// By the mean and the standard deviation.
    ZScore,
}

impl Method {
    pub const ALL: [Self; 2] = [Self::Mad, Self::ZScore];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mad => "mad",
            Self::ZScore => "z_score",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    pub quantity: Quantity,
    pub method: Method,
    /// How many deviations are too far.
    pub limit: Finite,
    /// With fewer earlier runs nothing is an anomaly, and the confidence is low.
    pub min_samples: u64,
    /// The least deviation that is believed, for numbers that were always the same.
    pub min_spread: Finite,
}

impl Anomaly {
    pub const MIN_SAMPLES: u64 = 5;
    pub const LIMIT: Option<Finite> = Finite::new(3.5);

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let found = self.quantity.of(evidence)?;
        let samples = evidence.subject.history.samples();
        let earlier: Vec<f64> = samples
            .filter_map(|it| self.quantity.of_sample(it))
            .collect();
        let count = u64::try_from(earlier.len()).unwrap_or(u64::MAX);
        // A half with as many as are needed, and ever nearer to one.
        let confidence = match count {
            0 => Confidence::NONE,
            count => share(count, count.saturating_add(self.min_samples)),
        };
        if count < self.min_samples.max(1) {
            let needed = self.min_samples;
            let reason = format!("there are {count} earlier runs, and {needed} are needed");
            return Ok(Finding::unsure(confidence, reason));
        }
        let (centre, spread) = match self.method {
            Method::Mad => by_median(earlier),
            Method::ZScore => by_mean(&earlier),
        };
        let spread = spread.max(self.min_spread.get());
        let distance = (found - centre).abs();
        // Without any spread every difference is too far.
        if distance <= self.limit.get() * spread {
            return Ok(Finding::unsure(
                confidence,
                format!("{} is {found}, as in {count} earlier runs", self.quantity),
            ));
        }
        let finding = Finding::bad(
            FailureCode::OutOfScope,
            format!(
                "{} is {found}, while it was about {centre:.3} (± {spread:.3}) in {count} earlier runs",
                self.quantity
            ),
            "look at what is different this time",
        );
        Err(finding.with_confidence(confidence))
    }
}

fn by_mean(values: &[f64]) -> (f64, f64) {
    let mean = average(values);
    let squares: Vec<f64> = values.iter().map(|it| (it - mean).powi(2)).collect();
    (mean, average(&squares).sqrt())
}

fn by_median(values: Vec<f64>) -> (f64, f64) {
    // Makes the deviation comparable with the standard deviation of a normal distribution.
    const SCALE: f64 = 1.4826;
    const MEAN_SCALE: f64 = 1.2533;
    let centre = median(values.clone());
    let distances: Vec<f64> = values.iter().map(|it| (it - centre).abs()).collect();
    match median(distances.clone()) {
        // More than half are the same: the others still tell how far it goes.
        0.0 => (centre, average(&distances) * MEAN_SCALE),
        spread => (centre, spread * SCALE),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        Some(upper) if values.len().is_multiple_of(2) => {
            let lower = values.get(middle.saturating_sub(1)).unwrap_or(upper);
            f64::midpoint(*lower, *upper)
        }
        Some(upper) => *upper,
        None => 0.0,
    }
}

fn average(values: &[f64]) -> f64 {
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX).max(1);
    values.iter().sum::<f64>() / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_value_moves_the_mean_and_not_the_median() {
        let values = vec![10.0, 11.0, 9.0, 10.0, 1000.0];
        assert_eq!(by_median(values.clone()), (10.0, 1.4826));
        assert!(by_mean(&values).0 > 200.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(by_median(vec![5.0, 5.0, 5.0, 9.0]), (5.0, 1.2533));
        assert_eq!(by_median(vec![5.0; 4]), (5.0, 0.0));
    }
}
