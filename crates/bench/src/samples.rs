//! Many measurements of one contender, described by a few numbers.

use std::time::Duration;

use serde::Serialize;

/// In microseconds. A mean is left out on purpose: one interruption by the host would decide it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    pub count: usize,
    pub min_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Quantiles {
    /// `None` without samples.
    pub(crate) fn of(samples: &[Duration]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let at = |percent| sorted.get(rank(sorted.len(), percent)).copied().map(micros);
        Some(Self {
            count: sorted.len(),
            min_us: at(0)?,
            p50_us: at(50)?,
            p90_us: at(90)?,
            p99_us: at(99)?,
            max_us: at(100)?,
        })
    }
}

/// The nearest rank: always a value that was really measured.
fn rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).saturating_sub(1)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Option<Quantiles> {
        let samples: Vec<Duration> = values.iter().copied().map(Duration::from_micros).collect();
        Quantiles::of(&samples)
    }

    #[test]
    fn quantiles_are_measured_values_in_any_order() {
        let all: Vec<u64> = (1..=100).rev().collect();
        let found = of(&all).unwrap();
        let rounded = [
            found.min_us,
            found.p50_us,
            found.p90_us,
            found.p99_us,
            found.max_us,
        ]
        .map(f64::round);
        assert_eq!(rounded, [1.0, 50.0, 90.0, 99.0, 100.0]);
    }

    #[test]
    fn one_sample_is_every_quantile_and_none_has_no_quantiles() {
        let found = of(&[7]).unwrap();
        assert_eq!((found.count, found.min_us), (1, found.p99_us));
        assert_eq!(of(&[]), None);
    }
}
