//! The webhooks of a server.

use glovebox_model::WebhookInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    pub items: Vec<WebhookInfo>,
}
