//! The whole result, as JSON shows it; the text is made from it.

use serde::Serialize;

use super::bwrap::{TWINS, Twin};
use super::contender::{Contender, Role};
use super::host::Host;
use super::memory::Holding;
use super::peer::{Absent, Peer};
use super::rounds::Outcome;
use super::samples::Quantiles;
use super::stage::Payload;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) host: Host,
    pub(super) rows: Vec<Row>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) memory: Vec<Holding>,
    pub(super) absent: Vec<Absent>,
    /// Only where bubblewrap took part.
    pub(super) twins: Vec<Twin>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) payload: Payload,
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) argv: Vec<String>,
    #[serde(skip)]
    role: Role,
    #[serde(flatten)]
    pub(super) result: Measured,
    /// The middle sample, as a multiple of the baseline's.
    pub(super) of_baseline: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measured {
    Samples(Quantiles),
    Failure(String),
}

/// One ratio of middle samples with what the design aims at. Nothing is judged here: figures belong
/// to their host.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Comparison {
    pub(super) payload: Payload,
    pub(super) what: String,
    pub(super) ratio: f64,
    pub(super) aim: Option<&'static str>,
}

impl Row {
    fn p50(&self) -> Option<f64> {
        match &self.result {
            Measured::Samples(quantiles) => Some(quantiles.p50_us),
            Measured::Failure(_) => None,
        }
    }
}

impl Report {
    pub(super) fn new(
        contenders: &[Contender],
        outcomes: Vec<Outcome>,
        memory: Vec<Holding>,
        absent: Vec<Absent>,
    ) -> Self {
        let mut rows: Vec<Row> = contenders
            .iter()
            .zip(outcomes)
            .map(|(contender, outcome)| Row {
                payload: contender.payload,
                name: contender.name(),
                what: contender.what(),
                argv: contender.argv(),
                role: contender.role,
                result: match outcome {
                    Outcome::Measured(quantiles) => Measured::Samples(quantiles),
                    Outcome::Failed(why) => Measured::Failure(why),
                },
                of_baseline: None,
            })
            .collect();
        for payload in Payload::ALL {
            let baseline = find(&rows, payload, Role::Baseline);
            for row in rows.iter_mut().filter(|row| row.payload == payload) {
                row.of_baseline = ratio(row.p50(), baseline);
            }
        }
        let bwrap = rows.iter().any(|row| row.role == Role::Peer(Peer::Bwrap));
        Self {
            host: Host::look(),
            comparisons: comparisons(&rows),
            rows,
            memory,
            absent,
            twins: if bwrap { TWINS.to_vec() } else { Vec::new() },
        }
    }
}

fn find(rows: &[Row], payload: Payload, role: Role) -> Option<f64> {
    rows.iter()
        .find(|row| row.payload == payload && row.role == role)
        .and_then(Row::p50)
}

fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    Some(numerator? / denominator.filter(|it| *it > 0.0)?)
}

/// Ours against the baseline, then each peer against ours.
fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for payload in Payload::ALL {
        let mut compare = |what: String, over: Role, under: Role, aim| {
            let ratio = ratio(find(rows, payload, over), find(rows, payload, under));
            found.extend(ratio.map(|ratio| Comparison {
                payload,
                what,
                ratio,
                aim,
            }));
        };
        let cold = (payload == Payload::True).then_some("<= 3.5");
        compare(
            "native / vfork+exec".into(),
            Role::Native,
            Role::Baseline,
            cold,
        );
        compare(
            "glovebox run / vfork+exec".into(),
            Role::Run,
            Role::Baseline,
            None,
        );
        let forked = "native + fork / vfork+exec".into();
        compare(forked, Role::NativeFork, Role::Baseline, None);
        for row in rows.iter().filter(|row| row.payload == payload) {
            let Role::Peer(peer) = row.role else {
                continue;
            };
            let aim = aim(peer).filter(|_| payload == Payload::True);
            compare(
                format!("{} / native", row.name),
                row.role,
                Role::Native,
                aim,
            );
            compare(
                format!("{} / glovebox run", row.name),
                row.role,
                Role::Run,
                None,
            );
        }
    }
    found
}

/// How much faster than a peer the native sandbox is meant to be.
fn aim(peer: Peer) -> Option<&'static str> {
    match peer {
        Peer::Bwrap => Some(">= 2"),
        Peer::Crun => Some(">= 5"),
        Peer::Docker => Some(">= 80"),
        Peer::Runc | Peer::Podman => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(role: Role, millis: u64) -> Row {
        Row {
            payload: Payload::True,
            name: "name",
            what: "",
            argv: Vec::new(),
            role,
            result: Quantiles::of(&[Duration::from_millis(millis)])
                .map_or(Measured::Failure("none".into()), Measured::Samples),
            of_baseline: None,
        }
    }

    #[test]
    fn peers_are_compared_with_both_of_ours() {
        let rows = [
            row(Role::Baseline, 1),
            row(Role::Native, 2),
            row(Role::Run, 8),
            row(Role::Peer(Peer::Bwrap), 4),
        ];
        let found: Vec<(String, f64)> = comparisons(&rows)
            .into_iter()
            .map(|it| (it.what, it.ratio))
            .collect();
        let expected = [
            ("native / vfork+exec", 2.0),
            ("glovebox run / vfork+exec", 8.0),
            ("name / native", 2.0),
            ("name / glovebox run", 0.5),
        ];
        assert_eq!(
            found,
            expected.map(|(what, ratio)| (what.to_owned(), ratio))
        );
    }

    #[test]
    fn what_failed_is_compared_with_nothing() {
        let mut failed = row(Role::Baseline, 1);
        failed.result = Measured::Failure("gone".into());
        assert_eq!(comparisons(&[failed, row(Role::Native, 2)]), []);
    }
}
