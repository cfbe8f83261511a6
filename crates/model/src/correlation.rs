//! The ids that travel with everything: they say on whose behalf something happened.

use serde::{Deserialize, Serialize};

use crate::id::SpaceId;

/// Every field but the space is the caller's own text, kept as given and never used as a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    pub space_id: SpaceId,
    #[serde(default)]
    pub user_id: Option<String>,
    #[serde(default)]
    pub conversation_id: Option<String>,
    #[serde(default)]
    pub turn_id: Option<String>,
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(default)]
    pub workflow_id: Option<String>,
    #[serde(default)]
    pub agent_id: Option<String>,
    #[serde(default)]
    pub session_id: Option<String>,
}

/// On whose word the ids of a call stand. An agent is what its token says; for which user it acts, and
/// in which conversation, is its own word, unless its token is bound to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Vouched {
    /// People, an orchestrator, or whoever has the state directory: all of them.
    People,
    /// An agent with a token of its own, which is bound to these or is not.
    Agent { user: bool, conversation: bool },
}

impl Default for Vouched {
    /// What was kept before it was written down proves nothing.
    fn default() -> Self {
        Self::Agent {
            user: false,
            conversation: false,
        }
    }
}

impl Vouched {
    pub fn is_unproven(&self) -> bool {
        *self == Self::default()
    }

    pub fn is_by_people(&self) -> bool {
        *self == Self::People
    }

    pub fn proves_user(&self) -> bool {
        matches!(self, Self::People | Self::Agent { user: true, .. })
    }

    pub fn proves_conversation(&self) -> bool {
        matches!(
            self,
            Self::People
                | Self::Agent {
                    conversation: true,
                    ..
                }
        )
    }
}

impl Correlation {
    pub fn of_space(space_id: SpaceId) -> Self {
        Self {
            space_id,
            user_id: None,
            conversation_id: None,
            turn_id: None,
            task_id: None,
            workflow_id: None,
            agent_id: None,
            session_id: None,
        }
    }
}
