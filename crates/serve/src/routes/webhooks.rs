//! Who is told of what by itself, and how that went.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_engine::Webhook;
use glovebox_model::{DeliveryState, Page, WebhookDelivery};
use glovebox_store::DeliveryFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use crate::app::App;
use crate::auth::{ReadsSettings, WritesSettings};
use crate::body::{Mutation, Query};
use crate::failure::Answer;
use crate::idempotency::{Outcome, once};
use glovebox_api::{Id, WebhookList};

const LIMIT: usize = 50;

/// List webhooks
///
/// As the configuration has them.
#[utoipa::path(
    get, path = "/v1/webhooks", operation_id = "list_webhooks", tag = "webhooks",
    responses((status = 200, description = "All of them.", body = WebhookList)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsSettings(caller): ReadsSettings,
) -> Answer<Json<WebhookList>> {
    caller.operator()?;
    let webhooks = app.dispatcher().webhooks();
    Ok(Json(WebhookList {
        items: webhooks.iter().map(Webhook::info).collect(),
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Of this webhook alone.
    #[param(inline)]
    webhook: Option<Id>,
    #[param(inline)]
    state: Option<DeliveryState>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}\\.msg_[0-9a-f]{32}\\.[A-Za-z0-9._-]{1,128}$")]
    cursor: Option<String>,
}

/// List deliveries
///
/// Messages to webhooks and what came of them, newest first. What has ended is kept for seven days.
#[utoipa::path(
    get, path = "/v1/webhooks/deliveries", operation_id = "list_webhook_deliveries",
    tag = "webhooks",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<WebhookDelivery>)),
)]
pub(super) async fn deliveries(
    State(app): State<App>,
    ReadsSettings(caller): ReadsSettings,
    Query(filter): Query<Filter>,
) -> Answer<Json<Page<WebhookDelivery>>> {
    caller.operator()?;
    let filter = DeliveryFilter {
        webhook: filter.webhook.map(|id| id.0),
        state: filter.state,
        limit: filter.limit.unwrap_or(LIMIT),
        cursor: filter.cursor,
    };
    let listed = app.ask("list_webhook_deliveries", move |dispatcher| {
        dispatcher.store()?.deliveries(&filter)
    });
    listed.await.map(Json)
}

/// Try a webhook
///
/// Sends it a message that is about nothing, `webhook.test`. What came of it is among the deliveries.
#[utoipa::path(
    post, path = "/v1/webhooks/{name}/test", operation_id = "test_webhook", tag = "webhooks",
    params(("name" = String, Path, description = "Its name in the configuration.")),
    responses((status = 202, description = "It is on its way.", body = WebhookDelivery)),
)]
pub(super) async fn test(
    State(app): State<App>,
    WritesSettings(caller): WritesSettings,
    Path(name): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    caller.operator()?;
    let work_app = app.clone();
    let work = async move {
        let tried = work_app.ask("test_webhook", move |dispatcher| {
            dispatcher.try_webhook(&name)
        });
        Outcome::json(StatusCode::ACCEPTED, &tried.await?)
    };
    once(&app, &caller, &mutation, work).await
}
