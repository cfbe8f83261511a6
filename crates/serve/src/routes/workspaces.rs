//! Workspaces that Glovebox keeps.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_api::{ResetAnswer, ResetRequest, SeedAnswer, Workspace, WorkspaceName, Workspaces};
use glovebox_model::{Code, Error, ProjectId, Stage};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::workspace_request::WorkspaceRequest;
use crate::app::App;
use crate::auth::{Caller, ReadsFiles, WritesFiles};
use crate::body::{Json as Body, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use crate::inside::LocalDirectory;

const LISTED: usize = 10_000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// At most so many.
    #[param(minimum = 1, maximum = 10000, default = 10000)]
    limit: Option<usize>,
}

pub(super) fn unknown() -> Failure {
    Failure::not_found("workspace").hint("`GET /v1/workspaces` lists those of the token's space")
}

/// What cannot be the name of a workspace names none.
pub(super) fn project(caller: &Caller, text: &str) -> Answer<ProjectId> {
    let project = text.parse().map_err(|_| unknown())?;
    if caller.may_not_name(&project) {
        return Err(unknown());
    }
    Ok(project)
}

/// What is shared is somebody's own: it is neither emptied nor removed.
fn ours(caller: &Caller, text: &str) -> Answer<ProjectId> {
    let project = project(caller, text)?;
    // Who owns it is told by the engine that it is theirs.
    if caller.shared() != Some(&project) || caller.is_at_machine() {
        return Ok(project);
    }
    Err(Failure::new(
        Code::Forbidden,
        "this workspace is a directory of the machine's user, which Glovebox does not empty or remove",
    )
    .hint("remove what is to go, file by file")
    .hint("`undo` and `restore` bring back what a snapshot holds"))
}

/// List workspaces
#[utoipa::path(
    get, path = "/v1/workspaces", operation_id = "list_workspaces", tag = "workspaces",
    params(Filter),
    responses((status = 200, description = "Those of the token's space.", body = Workspaces)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Query(filter): Query<Filter>,
) -> Answer<Json<Workspaces>> {
    let eyes = caller.eyes();
    let listed = app.ask("projects", move |dispatcher| {
        dispatcher.projects(&eyes, LISTED)
    });
    let mut projects = listed.await?;
    projects.retain(|project| !caller.may_not_name(project));
    if let Some(shared) = caller.shared().filter(|it| !projects.contains(it)) {
        projects.push(shared.clone());
    }
    projects.truncate(filter.limit.unwrap_or(LISTED));
    let items = projects.into_iter();
    Ok(Json(Workspaces {
        items: items
            .map(|project_id| WorkspaceName { project_id })
            .collect(),
    }))
}

/// Get a workspace
#[utoipa::path(
    get, path = "/v1/workspaces/{project}", operation_id = "get_workspace", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    responses((status = 200, description = "Its size.", body = Workspace)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
) -> Answer<Json<Workspace>> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let measured = errand.look("usage", |it| it.info());
    measured.await.map(Json)
}

/// Seed a workspace
///
/// Copies the operator's template into it; nothing that is there is touched.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/seed", operation_id = "seed_workspace", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    responses((status = 200, description = "What came from the template.", body = SeedAnswer)),
)]
pub(super) async fn seed(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    template: Option<Extension<LocalDirectory>>,
    mutation: Mutation,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?.making();
    let seeded = errand.change(&mutation, "seed", StatusCode::OK, move |it| {
        let template = template.map(|it| it.open()).transpose()?;
        it.seed(template.as_ref())
    });
    seeded.await
}

/// Reset a workspace
///
/// Empties it and seeds it from the operator's template, if there is one. Snapshots stay. Of inputs
/// and artifacts an agent removes those that are there for it. While execs of it run it is a 409.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/reset", operation_id = "reset_workspace", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = ResetRequest,
    responses((status = 200, description = "It is as it was on its first day.", body = ResetAnswer)),
)]
pub(super) async fn reset(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Body { value, mutation }: Body<ResetRequest>,
) -> Answer<Response> {
    ours(&caller, &name)?;
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let reset = errand.change(&mutation, "reset", StatusCode::OK, move |it| {
        it.reset(&value)
    });
    reset.await
}

/// Remove a workspace
///
/// With its inputs, artifacts and snapshots, and with changes that wait; records and ledger stay. For
/// an agent it is a 409 where some of them are another's, or people's: people can remove it.
#[utoipa::path(
    delete, path = "/v1/workspaces/{project}", operation_id = "remove_workspace", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let (eyes, id, work_app) = (caller.eyes(), ours(&caller, &name)?, app.clone());
    let by = caller.actor();
    let work = async move {
        let removed = work_app.ask("remove", move |dispatcher| {
            let workspace = dispatcher.workspace(&eyes, &id, Some(by))?;
            if dispatcher.is_busy(eyes.space(), &id) {
                let message = "execs of this workspace run or wait";
                return Err(Error::new(Code::Conflict, Stage::Open, message)
                    .hint("cancel them, or wait for their end"));
            }
            workspace.remove()
        });
        removed.await.map_err(|failure| match failure.0.code {
            Code::NotFound => unknown(),
            _ => failure,
        })?;
        Ok(Outcome::empty())
    };
    once(&app, &caller, &mutation, work).await
}
