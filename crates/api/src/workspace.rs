//! Workspaces as a whole.

use glovebox_model::{ByteString, ExecId, ProjectId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"artifacts": true}))]
pub struct ResetRequest {
    /// The inputs of its execs go too.
    #[serde(default)]
    pub inputs: bool,
    /// The artifacts and the output of its execs go too.
    #[serde(default)]
    pub artifacts: bool,
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

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResetAnswer {
    pub seeded: SeedAnswer,
    /// Execs whose artifacts are gone.
    pub artifacts_removed: u64,
}
