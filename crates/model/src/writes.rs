//! Where what an exec writes to its workspace goes, and what became of it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Into the workspace itself.
    #[default]
    Direct,
    /// Beside it, until somebody keeps or discards them.
    Held,
    /// Beside it; kept by themselves when the exec succeeds, discarded otherwise.
    IfOk,
    /// Beside it, and gone with the exec.
    Dropped,
}

impl Writes {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Held => "held",
            Self::IfOk => "if_ok",
            Self::Dropped => "dropped",
        }
    }

    pub const fn is_direct(&self) -> bool {
        matches!(self, Self::Direct)
    }
}

/// How much an exec changed that did not write to the workspace itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeCount {
    pub created: u64,
    pub modified: u64,
    pub removed: u64,
    /// Of what was created or modified.
    pub bytes: u64,
    /// There were more than could be looked at.
    pub truncated: bool,
}
