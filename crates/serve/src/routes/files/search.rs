//! Finding files by what they hold, and by their names.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_api::{GlobAnswer, GlobRequest, SearchAnswer, SearchRequest};

use super::told;
use crate::app::App;
use crate::auth::ReadsFiles;
use crate::body::Json;
use crate::failure::Answer;
use crate::routes::Path;
use crate::routes::workspace_request::WorkspaceRequest;

/// Search in files
///
/// Line by line. Links are not followed, files with a NUL byte are passed over, and every bound
/// that ends the search early is told.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/search", operation_id = "search_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = SearchRequest,
    responses((status = 200, description = "What was found.", body = SearchAnswer)),
)]
pub(in crate::routes) async fn search(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Json { value, .. }: Json<SearchRequest>,
) -> Answer<Answered<SearchAnswer>> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let searched = errand.look("search", move |workspace| {
        workspace.search(value).map_err(told)
    });
    searched.await.map(Answered)
}

/// Find files by name
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/glob", operation_id = "glob_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = GlobRequest,
    responses((status = 200, description = "Each directory before what is in it.", body = GlobAnswer)),
)]
pub(in crate::routes) async fn glob(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Json { value, .. }: Json<GlobRequest>,
) -> Answer<Answered<GlobAnswer>> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let globbed = errand.look("glob", move |workspace| {
        workspace.glob(&value).map_err(told)
    });
    globbed.await.map(Answered)
}
