//! Numbers about an exec that have a name.

use glovebox_model::{Deed, EffectKind, FileOp};

use crate::history::Sample;
use crate::kinds::Kinds;
use crate::subject::Subject;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    DurationMs,
    StdoutBytes,
    ChangedFiles,
    ChangedBytes,
    Effects,
    Violations,
    Requests,
    Processes,
    Artifacts,
    ArtifactBytes,
    ExitCode,
}

impl Metric {
    pub const ALL: [Self; 11] = [
        Self::DurationMs,
        Self::StdoutBytes,
        Self::ChangedFiles,
        Self::ChangedBytes,
        Self::Effects,
        Self::Violations,
        Self::Requests,
        Self::Processes,
        Self::Artifacts,
        Self::ArtifactBytes,
        Self::ExitCode,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DurationMs => "duration_ms",
            Self::StdoutBytes => "stdout_bytes",
            Self::ChangedFiles => "changed_files",
            Self::ChangedBytes => "changed_bytes",
            Self::Effects => "effects",
            Self::Violations => "violations",
            Self::Requests => "requests",
            Self::Processes => "processes",
            Self::Artifacts => "artifacts",
            Self::ArtifactBytes => "artifact_bytes",
            Self::ExitCode => "exit_code",
        }
    }

    /// The effects that it is counted from.
    pub(crate) const fn asks(self) -> Kinds {
        match self {
            Self::ChangedFiles | Self::ChangedBytes => Kinds::WRITES,
            Self::Effects => Kinds::ACCOUNT,
            Self::Violations => Kinds::ACCOUNT.with(Kinds::ATTEMPTS),
            Self::Requests => Kinds::of(EffectKind::NetworkRequest),
            Self::Processes => Kinds::of(EffectKind::ProcessSpawn),
            Self::DurationMs
            | Self::StdoutBytes
            | Self::Artifacts
            | Self::ArtifactBytes
            | Self::ExitCode => Kinds::NONE,
        }
    }

    /// None when nobody knows it.
    pub(crate) fn of(self, subject: &Subject<'_>) -> Option<i128> {
        let of_kind = |kind: EffectKind| {
            let count = subject.effects.iter().filter(|it| it.kind() == kind);
            subject.effects_are_whole().then(|| count.count() as i128)
        };
        match self {
            Self::DurationMs => subject.duration_ms.map(i128::from),
            Self::StdoutBytes => Some(i128::from(subject.stdout_bytes)),
            Self::ChangedFiles => changed_files(subject),
            Self::ChangedBytes => changed_bytes(subject),
            Self::Effects => Some(i128::from(subject.effect_count.total)),
            Self::Violations => Some(i128::from(subject.effect_count.violations)),
            Self::Requests => of_kind(EffectKind::NetworkRequest),
            Self::Processes => of_kind(EffectKind::ProcessSpawn),
            Self::Artifacts => Some(subject.artifacts.len() as i128),
            Self::ArtifactBytes => {
                Some(subject.artifacts.iter().map(|it| i128::from(it.size)).sum())
            }
            Self::ExitCode => subject.exit_code.map(i128::from),
        }
    }

    pub(crate) fn of_sample(self, sample: &Sample) -> Option<i128> {
        let count = match self {
            Self::DurationMs => sample.duration_ms,
            Self::StdoutBytes => sample.stdout_bytes,
            Self::ChangedFiles => sample.changed_files,
            Self::ChangedBytes => sample.changed_bytes,
            Self::Effects => sample.effects,
            Self::Violations => sample.violations,
            Self::Requests => sample.requests,
            Self::Processes => sample.processes,
            Self::Artifacts => sample.artifacts,
            Self::ArtifactBytes => sample.artifact_bytes,
            Self::ExitCode => return sample.exit_code.map(i128::from),
        };
        count.map(i128::from)
    }
}

fn changed_files(subject: &Subject<'_>) -> Option<i128> {
    match subject.changes {
        // There were more than anybody counted.
        Some(it) if it.truncated => None,
        Some(it) => Some(
            [it.created, it.modified, it.removed]
                .map(i128::from)
                .iter()
                .sum(),
        ),
        None => Some(written(subject)?.count() as i128),
    }
}

fn changed_bytes(subject: &Subject<'_>) -> Option<i128> {
    match subject.changes {
        Some(it) if it.truncated => None,
        Some(it) => Some(i128::from(it.bytes)),
        None => Some(written(subject)?.sum()),
    }
}

/// The new size of each path that was written.
fn written<'s>(subject: &'s Subject<'_>) -> Option<impl Iterator<Item = i128> + use<'s>> {
    let size = |deed: &'s Deed| match deed {
        Deed::FilesystemWrite(it) if it.operation != FileOp::Attempted => {
            Some(it.after.as_ref().map_or(0, |after| i128::from(after.size)))
        }
        Deed::FilesystemWrite(_)
        | Deed::FilesystemRead(_)
        | Deed::NetworkRequest(_)
        | Deed::StateMutation(_)
        | Deed::ExternalApiCall(_)
        | Deed::ProcessSpawn(_) => None,
    };
    let sizes = subject.effects.iter().filter_map(move |it| size(&it.deed));
    subject.effects_are_whole().then_some(sizes)
}
