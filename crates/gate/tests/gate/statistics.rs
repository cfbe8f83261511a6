//! Checks of numbers.

use glovebox_gate::{
    Anomaly, Bounds, Check, Finite, Gate, History, Method, Metric, Pointer, Quantity, Sample,
    Subject, judge,
};
use glovebox_model::{Confidence, FailureCode, GateResult};
use serde_json::json;

use crate::fixture::{Runner, gate, said, with_subject};

fn finite(value: f64) -> Finite {
    Finite::new(value).unwrap()
}

#[test]
fn a_number_lies_within_its_bounds() {
    let at = || Quantity::At(Pointer::new("/n").unwrap());
    let metric = || Quantity::Metric(Metric::DurationMs);
    let out = Some(FailureCode::OutOfScope);
    let missing = Some(FailureCode::MissingData);
    for (stdout, quantity, min, max, expected) in [
        ("{\"n\": 0}", at(), Some(0.0), Some(1.0), None),
        ("{\"n\": -0.5}", at(), Some(0.0), None, out),
        ("{\"n\": 1.5}", at(), None, Some(1.0), out),
        ("{\"n\": \"1\"}", at(), Some(0.0), None, missing),
        ("{}", at(), Some(0.0), None, missing),
        ("", metric(), None, Some(100.0), None),
        ("", metric(), None, Some(99.0), out),
    ] {
        let bounds = Bounds::new(quantity, min.map(finite), max.map(finite)).unwrap();
        let found = with_subject(stdout, &[], |it| {
            said(Check::StatisticalBounds(bounds), &it)
        });
        assert_eq!(found, expected, "{stdout}");
    }
    assert!(Bounds::new(metric(), None, None).is_err());
    assert!(Bounds::new(metric(), Some(finite(2.0)), Some(finite(1.0))).is_err());
}

fn anomaly(method: Method, min_spread: f64) -> Anomaly {
    Anomaly {
        quantity: Quantity::Metric(Metric::DurationMs),
        method,
        limit: finite(3.5),
        min_samples: 5,
        min_spread: finite(min_spread),
    }
}

fn compare(anomaly: Anomaly, now: u64, before: &[u64], required: f64) -> GateResult {
    let samples: Vec<Sample> = before
        .iter()
        .map(|it| Sample {
            duration_ms: Some(*it),
            ..Sample::default()
        })
        .collect();
    let gate = gate(Check::Anomaly(anomaly)).requiring(Confidence::new(required).unwrap());
    with_subject("", &[], |subject| {
        let history = History {
            samples: &samples,
            ..History::default()
        };
        let subject = Subject {
            duration_ms: Some(now),
            history,
            ..subject
        };
        judge(&[gate], &subject, &Runner::ending(0)).remove(0)
    })
}

#[test]
fn a_number_unlike_all_earlier_ones_is_an_anomaly() {
    let before = [100, 110, 90, 105, 95, 5000];
    let mad = |now| compare(anomaly(Method::Mad, 0.0), now, &before, 0.0);
    assert!(mad(104).passed());
    assert_eq!(mad(900).failure_code, Some(FailureCode::OutOfScope));
    // The wild run hides it from the mean.
    assert!(compare(anomaly(Method::ZScore, 0.0), 900, &before, 0.0).passed());
    assert!(!compare(anomaly(Method::ZScore, 0.0), 900, &before[..5], 0.0).passed());
    // What was always the same may differ by as much as is said, and by nothing otherwise.
    assert!(compare(anomaly(Method::Mad, 0.0), 5, &[5; 9], 0.0).passed());
    assert!(!compare(anomaly(Method::Mad, 0.0), 6, &[5; 9], 0.0).passed());
    assert!(compare(anomaly(Method::Mad, 1.0), 6, &[5; 9], 0.0).passed());
}

#[test]
fn confidence_grows_with_the_samples_and_none_is_compared_too() {
    let with = |count: usize, required| {
        compare(anomaly(Method::Mad, 0.0), 100, &vec![100; count], required)
    };
    let mut last = None;
    for count in 0..40 {
        let result = with(count, 0.0);
        assert!(result.passed(), "{count}");
        let confidence = result.validations[0].confidence;
        assert!(last < Some(confidence), "{count}");
        last = Some(confidence);
    }
    assert_eq!(with(0, 0.0).validations[0].confidence, Confidence::NONE);
    assert_eq!(
        with(5, 0.0).validations[0].confidence,
        Confidence::new(0.5).unwrap()
    );
    for (count, required, passes) in [(0, 0.1, false), (5, 0.5, true), (5, 0.6, false)] {
        let result = with(count, required);
        assert_eq!(result.passed(), passes, "{count}");
        let code = (!passes).then_some(FailureCode::LowConfidence);
        assert_eq!(result.failure_code, code);
    }
    // Few samples prove nothing against a number either.
    assert!(compare(anomaly(Method::Mad, 0.0), 9999, &[1, 1], 0.0).passed());
}

#[test]
fn a_number_in_the_output_is_compared_with_earlier_outputs() {
    let samples: Vec<Sample> = (0..10)
        .map(|at| Sample {
            output: Some(json!({"rows": 100 + at % 3})),
            ..Sample::default()
        })
        .collect();
    let check = Anomaly {
        quantity: Quantity::At(Pointer::new("/rows").unwrap()),
        ..anomaly(Method::Mad, 0.0)
    };
    for (stdout, expected) in [
        ("{\"rows\": 101}", None),
        ("{\"rows\": 0}", Some(FailureCode::OutOfScope)),
        ("{}", Some(FailureCode::MissingData)),
    ] {
        let found = with_subject(stdout, &[], |subject| {
            let history = History {
                samples: &samples,
                ..History::default()
            };
            said(
                Check::Anomaly(check.clone()),
                &Subject { history, ..subject },
            )
        });
        assert_eq!(found, expected, "{stdout}");
    }
    assert!(Gate::new("empty", Vec::new()).is_none());
}
