//! Tokens as they are asked for and given out.

use std::collections::BTreeSet;

use glovebox_model::{Role, Scope, SpaceId, Token, TokenName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "role": "agent", "expires_at": "2099-01-01T00:00:00Z"}))]
pub struct TokenRequest {
    /// Unique in its space.
    pub name: TokenName,
    pub role: Role,
    /// The caller's own if nothing is said; another only for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_id: Option<SpaceId>,
    /// Fewer than the role's, never more, and none that the caller does not have itself.
    #[schema(max_items = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<BTreeSet<Scope>>,
    /// Whoever holds it acts for this user alone. A caller that is bound gives its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Id>,
    /// The one agent that its holder is; without it the one that is called like the token, and with
    /// `*` each that a request names. Only for the role `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Id>,
    /// Its holder takes part in this conversation alone. Only for the role `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Id>,
    /// Not later than the caller's own, which is also what is taken if nothing is said.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A token and the one sight of its secret.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    pub token: Token,
    /// Shown this once; only a hash is kept.
    #[schema(pattern = "^gb_[0-9a-f]{32}_[0-9a-f]{64}$")]
    pub secret: String,
}
