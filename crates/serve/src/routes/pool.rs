//! Sandboxes that stand ready, and what they could stand on: of the whole server, so for those who
//! look after it.

use axum::Json;
use axum::extract::State;
use glovebox_engine::{BackendView, PoolStats};
use glovebox_model::{Correlation, SpaceId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::ReadsAudit;
use crate::failure::Answer;

/// Get the pool
///
/// How many sandboxes stand ready, and how often one did when an exec came.
#[utoipa::path(
    get, path = "/v1/pool", operation_id = "get_pool", tag = "server",
    responses((status = 200, description = "As it is now.", body = PoolStats)),
)]
pub(super) async fn pool(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
) -> Answer<Json<PoolStats>> {
    caller.overseer()?;
    let stats = app.ask("pool", |dispatcher| Ok(dispatcher.pool_stats()));
    stats.await.map(Json)
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Backends {
    items: Vec<BackendView>,
}

/// List backends
///
/// Every way to run something on this host, with the guarantees that each gives, how it is known,
/// and what would mend those that it does not give.
#[utoipa::path(
    get, path = "/v1/backends", operation_id = "list_backends", tag = "server",
    responses((status = 200, description = "As they are now.", body = Backends)),
)]
pub(super) async fn backends(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
) -> Answer<Json<Backends>> {
    caller.overseer()?;
    let ids = Correlation::of_space(SpaceId::local());
    let all = app.care("backends", move |dispatcher| Ok(dispatcher.backends(&ids)));
    Ok(Json(Backends { items: all.await? }))
}
