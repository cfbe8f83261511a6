//! How many sandboxes stand ready before anybody asks, and how long one that was made waits.

use serde::{Deserialize, Serialize};

use crate::units::Millis;

/// Sandboxes that are built and locked before any exec is known. Each is used once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    pub enabled: bool,
    /// Plain ones that always stand ready.
    pub min: u32,
    /// All that stand ready together, those with an interpreter among them.
    pub max: u32,
    /// Those with a Python interpreter that already runs.
    pub python: u32,
    /// Those with a Node interpreter that already runs.
    pub node: u32,
    /// One above `min` that nobody took for so long is ended.
    pub idle_timeout: Millis,
    /// One that has stood for so long is replaced, whoever it waits for.
    pub max_age: Millis,
    /// How long an exec waits for one that is nearly ready before it makes its own.
    pub acquire_timeout: Millis,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            min: 2,
            max: 16,
            python: 2,
            node: 0,
            idle_timeout: Millis::secs(5 * 60),
            max_age: Millis::secs(60 * 60),
            acquire_timeout: Millis(5),
        }
    }
}
