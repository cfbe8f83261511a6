//! Records as system 0 named things.

use glovebox_model::Exec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A record with the names that system 0 had beside.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LegacyExec {
    #[serde(flatten)]
    pub exec: Exec,
    /// The message of `error`.
    pub error_reason: Option<String>,
    /// The same as `artifacts_dir`.
    pub artifacts_path: Option<String>,
}

impl From<Exec> for LegacyExec {
    fn from(exec: Exec) -> Self {
        Self {
            error_reason: exec.error.as_ref().map(ToString::to_string),
            artifacts_path: exec.artifacts_dir.clone(),
            exec,
        }
    }
}
