//! Ending an exec early.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_model::{Code, Exec};

use super::Path;
use crate::app::App;
use crate::auth::{Caller, WritesExecs};
use crate::body::Mutation;
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};

/// Cancel an exec
///
/// One that waits is canceled at once; one that runs is asked to end, then killed; one that has
/// ended stays as it is.
#[utoipa::path(
    post, path = "/v1/execs/{id}/cancel", operation_id = "cancel_exec", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The record as it is now.", body = Exec)),
)]
pub(super) async fn cancel(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    do_cancel(app, caller, id, mutation, |exec| exec).await
}

pub(super) async fn do_cancel<T: serde::Serialize + 'static>(
    app: App,
    caller: Caller,
    id: String,
    mutation: Mutation,
    shape: fn(Exec) -> T,
) -> Answer<Response> {
    let (work_app, eyes) = (app.clone(), caller.eyes());
    let work = async move {
        let asked = work_app
            .ask("cancel", move |dispatcher| {
                dispatcher.cancel(dispatcher.find(&eyes, &id)?)
            })
            .await;
        let exec = asked.map_err(|failure| match failure.0.code {
            Code::NotFound => Failure::no_exec(),
            _ => failure,
        })?;
        Outcome::json(StatusCode::OK, &shape(exec))
    };
    once(&app, &caller, &mutation, work).await
}
