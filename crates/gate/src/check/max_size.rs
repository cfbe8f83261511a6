//! `max_size`: how much there may be of what would be kept.

use glovebox_model::{Bytes, FailureCode};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::kinds::Kinds;
use crate::metric::Metric;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaxSize {
    pub stdout: Option<Bytes>,
    pub changed_bytes: Option<Bytes>,
    pub changed_files: Option<u64>,
    pub artifacts: Option<u64>,
    pub artifact_bytes: Option<Bytes>,
}

impl MaxSize {
    pub(super) const fn asks(&self) -> Kinds {
        match self.changed_bytes.is_some() || self.changed_files.is_some() {
            true => Kinds::WRITES,
            false => Kinds::NONE,
        }
    }

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let sizes = [
            (Metric::StdoutBytes, self.stdout),
            (Metric::ChangedBytes, self.changed_bytes),
            (Metric::ArtifactBytes, self.artifact_bytes),
        ];
        let counts = [
            (Metric::ChangedFiles, self.changed_files),
            (Metric::Artifacts, self.artifacts),
        ];
        for (metric, most) in sizes {
            if let Some(most) = most {
                within(evidence, metric, most.get(), &most.to_string())?;
            }
        }
        for (metric, most) in counts {
            if let Some(most) = most {
                within(evidence, metric, most, &most.to_string())?;
            }
        }
        Ok(Finding::good())
    }
}

fn within(evidence: &Evidence<'_>, metric: Metric, most: u64, shown: &str) -> Result<(), Finding> {
    let name = metric.as_str();
    let too_much = |found: String| {
        Finding::bad(
            FailureCode::OutOfScope,
            format!("`{name}` is {found}, above {shown}"),
            "do less in one run, or raise the gate's limit",
        )
    };
    match metric.of(evidence.subject) {
        Some(found) if found <= i128::from(most) => Ok(()),
        Some(found) => Err(too_much(found.to_string())),
        None => Err(too_much("more than was counted".to_owned())),
    }
}
