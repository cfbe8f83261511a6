//! What an operator may change while a server runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much one agent may use in any hour. What is not set is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    pub execs_per_hour: Option<u32>,
    pub cpu_seconds_per_hour: Option<u32>,
    /// Standard output, standard error and artifacts together.
    pub bytes_out_per_hour: Option<u32>,
}

/// The settings of one server, or of all servers that share a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Execs that run at once in one server; never above the ceiling it was started with.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_concurrent_execs: u32,
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_concurrent_per_space: Option<u32>,
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_concurrent_per_user: Option<u32>,
    /// Execs that wait for their turn in one server; one more is refused with 429.
    pub max_queued: u32,
    pub max_queued_per_space: Option<u32>,
    /// Sessions of one server that run or wait; one more is refused with 429.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_sessions: u32,
    /// Half of `max_sessions` if nothing is set; an agent has half of its space's.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_sessions_per_space: Option<u32>,
    /// For every agent that has no budget of its own.
    pub budget: Budget,
    /// By agent id.
    pub agent_budgets: BTreeMap<String, Budget>,
}

impl Settings {
    /// System 0's; the ceiling of a server that was started without another.
    pub const CONCURRENT: u32 = 4;
    pub const CONCURRENT_CEILING: u32 = 16;
    pub const QUEUED: u32 = 256;
    /// Each is a process, a sandbox and a connection to the database.
    pub const SESSIONS: u32 = 64;

    pub fn budget_of(&self, agent: &str) -> Budget {
        self.agent_budgets
            .get(agent)
            .copied()
            .unwrap_or(self.budget)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_execs: Self::CONCURRENT,
            max_concurrent_per_space: None,
            max_concurrent_per_user: None,
            max_queued: Self::QUEUED,
            max_queued_per_space: None,
            max_sessions: Self::SESSIONS,
            max_sessions_per_space: None,
            budget: Budget::default(),
            agent_budgets: BTreeMap::new(),
        }
    }
}
