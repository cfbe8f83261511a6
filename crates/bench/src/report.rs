//! The whole result, as its JSON.

use std::fmt;

use serde::Serialize;

use crate::bwrap::{EQUIVALENTS, Equivalent};
use crate::contender::{Contender, Role};
use crate::host::Host;
use crate::memory::MemoryUse;
use crate::payload::Payload;
use crate::peer::{Absent, Peer};
use crate::rounds::Outcome;
use crate::samples::Quantiles;

#[derive(Debug, Serialize)]
pub struct Report {
    pub host: Host,
    pub rows: Vec<Row>,
    pub comparisons: Vec<Comparison>,
    pub memory: Vec<MemoryUse>,
    pub absent: Vec<Absent>,
    /// Only where bubblewrap took part.
    #[serde(rename = "twins")]
    pub equivalents: Vec<Equivalent>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub payload: Payload,
    pub name: &'static str,
    pub what: &'static str,
    pub argv: Vec<String>,
    #[serde(skip)]
    role: Role,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The middle sample, as a multiple of the baseline's.
    pub of_baseline: Option<f64>,
}

/// One ratio, with the aim of the design. Missing an aim fails nothing: figures belong to their host.
#[derive(Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub payload: Payload,
    pub what: String,
    /// Of the middle samples.
    pub ratio: f64,
    /// Of the fastest samples: what other work on the host disturbs least.
    pub ratio_of_min: f64,
    pub aim: Option<Aim>,
    /// By the middle samples.
    pub is_met: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

impl Serialize for Aim {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Row {
    fn quantiles(&self) -> Option<&Quantiles> {
        match &self.outcome {
            Outcome::Samples(quantiles) => Some(quantiles),
            Outcome::Failure(_) => None,
        }
    }
}

impl Report {
    pub(crate) fn new(
        contenders: &[Contender],
        outcomes: Vec<Outcome>,
        memory: Vec<MemoryUse>,
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
                outcome,
                of_baseline: None,
            })
            .collect();
        for payload in Payload::ALL {
            let baseline = find(&rows, payload, Role::Baseline).map(|it| it.p50_us);
            for row in rows.iter_mut().filter(|row| row.payload == payload) {
                row.of_baseline = ratio(row.quantiles().map(|it| it.p50_us), baseline);
            }
        }
        let bwrap = rows.iter().any(|row| row.role == Role::Peer(Peer::Bwrap));
        Self {
            host: Host::read(),
            comparisons: comparisons(&rows),
            rows,
            memory,
            absent,
            equivalents: if bwrap {
                EQUIVALENTS.to_vec()
            } else {
                Vec::new()
            },
        }
    }
}

fn find(rows: &[Row], payload: Payload, role: Role) -> Option<&Quantiles> {
    rows.iter()
        .find(|row| row.payload == payload && row.role == role)
        .and_then(Row::quantiles)
}

fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    Some(numerator? / denominator.filter(|it| *it > 0.0)?)
}

/// Ours against the baseline, then each peer against ours.
fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for payload in Payload::ALL {
        let of = |role| find(rows, payload, role);
        let name = |role| {
            let row = rows
                .iter()
                .find(|row| row.payload == payload && row.role == role);
            row.map_or("", |row| row.name)
        };
        let mut compare = |over: Role, under: Role| {
            let (Some(above), Some(below)) = (of(over), of(under)) else {
                return;
            };
            let middle = ratio(Some(above.p50_us), Some(below.p50_us));
            let fastest = ratio(Some(above.min_us), Some(below.min_us));
            let (Some(ratio), Some(ratio_of_min)) = (middle, fastest) else {
                return;
            };
            let aim = aim(payload, over, under);
            found.push(Comparison {
                payload,
                what: format!("{} / {}", name(over), name(under)),
                ratio,
                ratio_of_min,
                aim,
                is_met: aim.map(|aim| aim.is_met(ratio)),
            });
        };
        for own in [
            Role::Native,
            Role::NativeFork,
            Role::Warm,
            Role::Interpreter,
            Role::Kept,
            Role::Run,
        ] {
            compare(own, Role::Baseline);
        }
        let warm = match payload.language() {
            Some(_) => Role::Interpreter,
            None => Role::Warm,
        };
        for row in rows.iter().filter(|row| row.payload == payload) {
            let Role::Peer(peer) = row.role else {
                continue;
            };
            compare(row.role, Role::Native);
            compare(row.role, warm);
            if peer == Peer::DockerExec {
                compare(row.role, Role::Kept);
            }
            compare(row.role, Role::Run);
        }
    }
    found
}

/// The aim of the design for a ratio.
fn aim(payload: Payload, over: Role, under: Role) -> Option<Aim> {
    match (payload, over, under) {
        (Payload::True, Role::Native, Role::Baseline) => Some(Aim::AtMost(3.5)),
        (Payload::True, Role::Warm, Role::Baseline) => Some(Aim::AtMost(1.5)),
        (Payload::True, Role::Peer(Peer::Bwrap), Role::Native) => Some(Aim::AtLeast(2.0)),
        (Payload::True, Role::Peer(Peer::Crun), Role::Native) => Some(Aim::AtLeast(5.0)),
        (Payload::True, Role::Peer(Peer::Docker), Role::Native) => Some(Aim::AtLeast(80.0)),
        (Payload::Python, Role::Peer(Peer::Bwrap), Role::Interpreter) => Some(Aim::AtLeast(15.0)),
        (Payload::Python, Role::Peer(Peer::DockerExec), Role::Interpreter) => {
            Some(Aim::AtLeast(50.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(role: Role, millis: u64) -> Row {
        Row {
            payload: Payload::True,
            name: match role {
                Role::Baseline => "vfork+exec",
                Role::Native => "native",
                Role::Warm => "warm native",
                Role::Run => "glovebox run",
                _ => "name",
            },
            what: "",
            argv: Vec::new(),
            role,
            outcome: Quantiles::of(&[Duration::from_millis(millis)])
                .map_or(Outcome::Failure("none".into()), Outcome::Samples),
            of_baseline: None,
        }
    }

    #[test]
    fn peers_are_compared_with_all_of_ours() {
        let rows = [
            row(Role::Baseline, 1),
            row(Role::Native, 2),
            row(Role::Warm, 2),
            row(Role::Run, 8),
            row(Role::Peer(Peer::Bwrap), 4),
        ];
        let found: Vec<(String, f64, Option<bool>)> = comparisons(&rows)
            .into_iter()
            .map(|it| (it.what, it.ratio, it.is_met))
            .collect();
        let expected = [
            ("native / vfork+exec", 2.0, Some(true)),
            ("warm native / vfork+exec", 2.0, Some(false)),
            ("glovebox run / vfork+exec", 8.0, None),
            ("name / native", 2.0, Some(true)),
            ("name / warm native", 2.0, None),
            ("name / glovebox run", 0.5, None),
        ];
        assert_eq!(
            found,
            expected.map(|(what, ratio, is_met)| (what.to_owned(), ratio, is_met))
        );
    }

    #[test]
    fn what_failed_is_compared_with_nothing() {
        let mut failed = row(Role::Baseline, 1);
        failed.outcome = Outcome::Failure("gone".into());
        assert_eq!(comparisons(&[failed, row(Role::Native, 2)]), []);
    }
}
