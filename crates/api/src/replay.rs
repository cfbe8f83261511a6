//! Another policy, tried on what was asked before.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Free;

/// A policy to try.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"config": "[approvals]\nmode = \"manual\"\n", "limit": 100}))]
pub struct ReplayRequest {
    /// The text of a configuration file.
    pub config: Free,
    /// At most so many records, the newest.
    #[schema(minimum = 1, maximum = 10000, default = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}
