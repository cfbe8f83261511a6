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
