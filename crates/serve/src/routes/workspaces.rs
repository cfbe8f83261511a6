//! Workspaces that Glovebox keeps.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use glovebox_model::{Code, Error, ProjectId, Stage};
use glovebox_workspace::UsageLimits;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Path;
use crate::app::App;
use crate::auth::{ReadsFiles, WritesFiles};
use crate::body::{Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::once::{Outcome, once};
use crate::wire::is_reserved;

const LISTED: usize = 10_000;
const MEASURED: UsageLimits = UsageLimits {
    entries: 1_000_000,
    time: Duration::from_secs(2),
};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Workspaces {
    /// By name.
    items: Vec<WorkspaceName>,
}

#[derive(Debug, Serialize, ToSchema)]
struct WorkspaceName {
    project_id: ProjectId,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Workspace {
    project_id: ProjectId,
    /// On disk.
    bytes: u64,
    files: u64,
    /// False when it was too large to be measured in time.
    complete: bool,
}

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
pub(super) fn project(text: &str) -> Answer<ProjectId> {
    let project = text.parse().map_err(|_| unknown())?;
    if is_reserved(&project) {
        return Err(unknown());
    }
    Ok(project)
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
    let space = caller.space().clone();
    let listed = app.ask("projects", move |dispatcher| {
        dispatcher.layout(&space)?.projects(LISTED)
    });
    let mut projects = listed.await?;
    projects.retain(|project| !is_reserved(project));
    projects.truncate(filter.limit.unwrap_or(LISTED));
    let items = projects
        .into_iter()
        .map(|project_id| WorkspaceName { project_id });
    Ok(Json(Workspaces {
        items: items.collect(),
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
    let (space, project_id) = (caller.space().clone(), project(&name)?);
    let id = project_id.clone();
    let measured = app.ask("usage", move |dispatcher| {
        let project = match dispatcher.layout(&space)?.existing(&id) {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            project => project?,
        };
        let work = project.work().map(|work| work.usage(MEASURED)).transpose();
        Ok(Some(
            work.map_err(|error| error.at(Stage::Collect))?
                .unwrap_or_default(),
        ))
    });
    let usage = measured.await?.ok_or_else(unknown)?;
    Ok(Json(Workspace {
        project_id,
        bytes: usage.bytes,
        files: usage.inodes,
        complete: usage.complete,
    }))
}

/// Remove a workspace
///
/// With its inputs and artifacts; records and ledger stay.
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
    let (space, id, work_app) = (caller.space().clone(), project(&name)?, app.clone());
    let work = async move {
        let removed = work_app.ask("remove", move |dispatcher| {
            if dispatcher.is_busy(&space, &id) {
                let message = "execs of this workspace run or wait";
                return Err(Error::new(Code::Conflict, Stage::Open, message)
                    .hint("cancel them, or wait for their end"));
            }
            dispatcher.layout(&space)?.remove(&id)
        });
        match removed.await? {
            true => Ok(Outcome::empty()),
            false => Err(unknown()),
        }
    };
    once(&app, &caller, &mutation, work).await
}
