//! Settings in force.

use glovebox_model::Settings;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingsAnswer {
    /// Grows with every change; `If-Match: "VERSION"` changes only this one.
    pub version: u64,
    pub settings: Settings,
    /// What this server was started with; `max_concurrent_execs` never goes above it.
    pub ceiling: u32,
}
