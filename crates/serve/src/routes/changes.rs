//! What an exec would change, shown, kept or discarded.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_api::{DecidedAnswer, WaitingAnswer};
use glovebox_engine::Workspace;
use glovebox_model::{Code, Exec, ExecId, Result, Role};

use super::Path;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsFiles, WritesFiles};
use crate::body::Mutation;
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};

fn nothing() -> Failure {
    Failure::new(Code::NotFound, "no changes of this exec wait")
        .hint("`\"writes\": \"held\"` in `POST /v1/execs` makes an exec's changes wait")
}

/// Whoever still runs has not said its last word.
fn ended(exec: &Exec) -> Answer<()> {
    match exec.status.is_final() {
        true => Ok(()),
        false => Err(Failure::new(Code::Conflict, "the exec has not ended")
            .hint("wait for its end, or cancel it: `POST /v1/execs/{id}/cancel`")),
    }
}

async fn on<T: Send + 'static>(
    app: &App,
    caller: &Caller,
    id: &str,
    what: &'static str,
    work: impl FnOnce(&Workspace<'_>, &ExecId) -> Result<T> + Send + 'static,
) -> Answer<T> {
    let exec = find(app, &caller.eyes(), id).await?;
    ended(&exec)?;
    let (eyes, by) = (caller.eyes(), caller.actor());
    let done = app.haul(what, move |dispatcher, _| {
        let workspace = dispatcher.workspace_of(&eyes, &exec, by)?;
        work(&workspace, &exec.exec_id)
    });
    done.await.map_err(|failure| match failure.0.code {
        Code::NotFound => nothing(),
        _ => failure,
    })
}

pub(super) async fn decide(
    app: App,
    caller: Caller,
    id: String,
    mutation: &Mutation,
    what: &'static str,
    work: impl FnOnce(&Workspace<'_>, &ExecId) -> Result<DecidedAnswer> + Send + 'static,
) -> Answer<Response> {
    let (work_app, work_caller) = (app.clone(), caller.clone());
    let decided = async move {
        let decided = on(&work_app, &work_caller, &id, what, work).await?;
        Outcome::json(StatusCode::OK, &decided)
    };
    once(&app, &caller, mutation, decided).await
}

/// Changes that wait
///
/// What an exec with `"writes": "held"` would change in the workspace as it is now.
#[utoipa::path(
    get, path = "/v1/execs/{id}/changes", operation_id = "get_exec_changes", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The changes.", body = WaitingAnswer)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(id): Path<String>,
) -> Answer<Json<WaitingAnswer>> {
    let changes = on(&app, &caller, &id, "changes", |workspace, exec| {
        workspace.changes(exec)
    });
    changes.await.map(Json)
}

/// Keep changes
///
/// All of them are carried into the workspace, or none: what has changed there since is a 409 that
/// names it.
#[utoipa::path(
    post, path = "/v1/execs/{id}/keep", operation_id = "keep_exec_changes", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "They are part of the workspace.", body = DecidedAnswer)),
)]
pub(super) async fn keep(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let is_agent = caller.token().role == Role::Agent;
    let kept = decide(app, caller, id, &mutation, "keep", move |it, exec| {
        it.keep(exec, is_agent)
    });
    kept.await
}

/// Discard changes
///
/// The workspace stays as it is.
#[utoipa::path(
    post, path = "/v1/execs/{id}/discard", operation_id = "discard_exec_changes", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "They are gone.", body = DecidedAnswer)),
)]
pub(super) async fn discard(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let gone = decide(app, caller, id, &mutation, "discard", |it, exec| {
        it.discard(exec)
    });
    gone.await
}
