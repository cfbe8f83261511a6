//! Sessions: execs whose process lives on between requests.

use serde::{Deserialize, Serialize};

use crate::units::Millis;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 500))]
    pub columns: u16,
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 500))]
    pub rows: u16,
}

impl TerminalSize {
    /// What terminals have had since terminals were devices.
    pub const USUAL: Self = Self {
        columns: 80,
        rows: 24,
    };
    /// A screen is kept in memory.
    pub const MOST: u16 = 500;

    pub const fn is_possible(self) -> bool {
        self.columns >= 1 && self.columns <= Self::MOST && self.rows >= 1 && self.rows <= Self::MOST
    }
}

/// What makes an exec a session: its program is talked to while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionTerms {
    /// None: three pipes.
    pub terminal: Option<TerminalSize>,
    /// It is ended when nothing was written or read for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<Millis>,
}
