//! Figures for a monitoring system.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::app::App;
use crate::auth::ReadsMetrics;
use crate::failure::Answer;

/// Get metrics
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "server",
    responses((status = 200, description = "OpenMetrics text.",
        content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8", body = String)),
)]
pub(super) async fn metrics(
    State(app): State<App>,
    ReadsMetrics(caller): ReadsMetrics,
) -> Answer<impl IntoResponse> {
    caller.operator()?;
    let load = app.dispatcher().load();
    app.metrics()
        .load(load.running, load.queued, u64::from(load.limit));
    let stock = app.ask("stock", |dispatcher| {
        Ok((dispatcher.pool_stats(), dispatcher.own_sandboxes()))
    });
    let (pool, kept) = stock.await?;
    app.metrics().stock(&pool, &kept);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], app.metrics().text()))
}
