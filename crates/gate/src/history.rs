//! What earlier runs of the same tool or program were like.

use serde_json::Value;

/// One earlier run. What nobody knows any more is left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    pub duration_ms: Option<u64>,
    pub stdout_bytes: Option<u64>,
    pub changed_files: Option<u64>,
    pub changed_bytes: Option<u64>,
    pub effects: Option<u64>,
    pub violations: Option<u64>,
    pub requests: Option<u64>,
    pub processes: Option<u64>,
    pub artifacts: Option<u64>,
    pub artifact_bytes: Option<u64>,
    pub exit_code: Option<i32>,
    /// The JSON that it put out, for checks that look at a number in it.
    pub output: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct History<'s> {
    /// The first 1000 are looked at, so the latest should come first.
    pub samples: &'s [Sample],
    /// What was put out by the last run that was kept.
    pub previous: Option<&'s Value>,
    /// `digest` of the effects of an earlier run of the same program.
    pub digest: Option<&'s str>,
}

impl<'s> History<'s> {
    const SAMPLES_MAX: usize = 1000;

    pub(crate) fn samples(&self) -> impl Iterator<Item = &'s Sample> + use<'s> {
        self.samples.iter().take(Self::SAMPLES_MAX)
    }
}
