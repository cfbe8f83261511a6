//! Workspaces as a whole.

use std::time::Duration;

use glovebox_engine::Quota;
use glovebox_model::{ByteString, ExecId, ProjectId, Result, Stage};
use glovebox_workspace::{Reset, ResetDone, Seeded, UsageLimits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{Limit, Sent};

const MEASURED: UsageLimits = UsageLimits {
    entries: 1_000_000,
    time: Duration::from_secs(2),
};

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"artifacts": true}))]
pub(crate) struct ResetRequest {
    /// The inputs of its execs go too.
    #[serde(default)]
    inputs: bool,
    /// The artifacts and the output of its execs go too.
    #[serde(default)]
    artifacts: bool,
}

impl Sent for ResetRequest {
    const LIMIT: Limit = Limit::Plain;
}

impl From<ResetRequest> for Reset {
    fn from(it: ResetRequest) -> Self {
        Self {
            inputs: it.inputs,
            artifacts: it.artifacts,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Workspaces {
    /// By name.
    pub items: Vec<WorkspaceName>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceName {
    pub project_id: ProjectId,
}

impl FromIterator<ProjectId> for Workspaces {
    fn from_iter<I: IntoIterator<Item = ProjectId>>(all: I) -> Self {
        let items = all.into_iter();
        Self {
            items: items
                .map(|project_id| WorkspaceName { project_id })
                .collect(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    pub project_id: ProjectId,
    /// On disk.
    pub bytes: u64,
    pub files: u64,
    /// False when it was too large to be measured in time.
    pub complete: bool,
    /// What it may hold.
    pub max_bytes: Option<u64>,
    pub max_files: Option<u64>,
    /// Execs whose changes wait to be kept or discarded.
    pub waiting: Vec<ExecId>,
    pub snapshots: u64,
}

impl Workspace {
    /// As it is now.
    pub fn measure(workspace: &glovebox_engine::Workspace<'_>, quota: Quota) -> Result<Self> {
        let usage = workspace.work()?.usage(MEASURED);
        let usage = usage.map_err(|error| error.at(Stage::Collect))?;
        Ok(Self {
            project_id: workspace.project().id().clone(),
            bytes: usage.bytes,
            files: usage.inodes,
            complete: usage.complete,
            max_bytes: quota.bytes,
            max_files: quota.files,
            waiting: workspace.waiting()?,
            snapshots: workspace.snapshots()?.len() as u64,
        })
    }
}

/// What came from the operator's template.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SeedAnswer {
    pub made: u64,
    /// Something of that name was there, and was not touched.
    pub kept: u64,
    pub skipped: Vec<SkippedSeed>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SkippedSeed {
    pub path: ByteString,
    pub why: String,
}

impl From<Seeded> for SeedAnswer {
    fn from(it: Seeded) -> Self {
        let skipped = it.skipped.into_iter().map(|it| SkippedSeed {
            path: it.path,
            why: it.why.why().to_owned(),
        });
        Self {
            made: it.made.len() as u64,
            kept: it.kept.len() as u64,
            skipped: skipped.collect(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResetAnswer {
    pub seeded: SeedAnswer,
    /// Execs whose artifacts are gone.
    pub artifacts_removed: u64,
}

impl From<ResetDone> for ResetAnswer {
    fn from(it: ResetDone) -> Self {
        Self {
            artifacts_removed: it.artifacts.removed.len() as u64,
            seeded: it.seeded.into(),
        }
    }
}
