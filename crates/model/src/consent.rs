//! Who agreed that an exec may start.

use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, GrantId};

/// On whose word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Agreed {
    /// Policy lets it pass.
    Policy,
    /// A person had allowed this kind in this conversation.
    Grant,
    /// People were asked and said yes.
    People,
    /// People would have been asked, but approvals are automatic: for development alone.
    Automatic,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Consent {
    pub agreed: Agreed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    /// Who said yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

impl Consent {
    pub const fn of_policy() -> Self {
        Self {
            agreed: Agreed::Policy,
            approval_id: None,
            grant_id: None,
            by: Vec::new(),
        }
    }
}
