//! What an exec did to get out, as it happens.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use super::Path;
use super::wait::find;
use crate::app::App;
use crate::auth::ReadsExecs;
use crate::body::Query;
use crate::failure::Answer;
use glovebox_api::NetworkPage;

const AT_ONCE: usize = 500;
const WAIT_MOST: u64 = 30_000;
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// A place in the log: `next` of the page before.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    after: Option<u64>,
    /// How long to wait for something new while the exec runs.
    #[param(minimum = 0, maximum = 30000, default = 0)]
    wait_ms: Option<u64>,
}

/// Follow an exec's network
///
/// Every attempt of its programs to get out, in order: names they asked for, connections and
/// requests, with the decision. One that was let through is told again at its end, with its bytes.
/// Kept until 24 hours after the end.
#[utoipa::path(
    get, path = "/v1/execs/{id}/network", operation_id = "get_exec_network", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id."), From),
    responses((status = 200, description = "The attempts from there on.", body = NetworkPage)),
)]
pub(super) async fn network(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(from): Query<From>,
) -> Answer<Json<NetworkPage>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    let after = from.after.unwrap_or(0);
    let wait = Duration::from_millis(from.wait_ms.unwrap_or(0).min(WAIT_MOST));
    let until = Instant::now() + wait;
    loop {
        let (eyes, id) = (caller.eyes(), exec.exec_id.clone());
        let read = app.ask("network", move |dispatcher| {
            // The record first: what it says about the end is true of the log that follows.
            let exec = dispatcher.find(&eyes, id.as_str())?;
            let (attempts, next) = dispatcher.network(&exec, after, AT_ONCE)?;
            let complete = exec.status.is_final() && attempts.len() < AT_ONCE;
            Ok(NetworkPage {
                attempts,
                next,
                complete,
            })
        });
        let page = read.await?;
        if !page.attempts.is_empty() || page.complete || Instant::now() >= until {
            return Ok(Json(page));
        }
        tokio::time::sleep(LOOK).await;
    }
}
