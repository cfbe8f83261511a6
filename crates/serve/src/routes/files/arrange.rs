//! Directories, moves, copies and replaced text.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_api::{
    CopyAnswer, CopyRequest, FileInfo, MkdirRequest, MoveRequest, ReplaceAnswer, ReplaceRequest,
};

use super::told;
use crate::app::App;
use crate::auth::WritesFiles;
use crate::body::Json;
use crate::failure::Answer;
use crate::routes::Path;
use crate::routes::workspace_request::WorkspaceRequest;

/// Make a directory
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/mkdir", operation_id = "make_directory", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = MkdirRequest,
    responses((status = 200, description = "It is there.", body = FileInfo)),
)]
pub(in crate::routes) async fn mkdir(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<MkdirRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?.making();
    let made = errand.change(&mutation, "mkdir", StatusCode::OK, move |workspace| {
        workspace.mkdir(&value).map_err(told)
    });
    made.await
}

/// Move a file
///
/// Or a directory, or a link itself, in one step.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/move", operation_id = "move_file", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = MoveRequest,
    responses((status = 200, description = "As it is in its new place.", body = FileInfo)),
)]
pub(in crate::routes) async fn rename(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<MoveRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let moved = errand.change(&mutation, "rename", StatusCode::OK, move |workspace| {
        workspace.rename(&value).map_err(told)
    });
    moved.await
}

/// Copy a file
///
/// Or a directory with everything in it: made aside, and put in its place in one step. Links are
/// copied as links.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/copy", operation_id = "copy_file", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = CopyRequest,
    responses((status = 200, description = "What was copied.", body = CopyAnswer)),
)]
pub(in crate::routes) async fn copy(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<CopyRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let copied = errand.change(&mutation, "copy", StatusCode::OK, move |workspace| {
        workspace.copy(&value).map_err(told)
    });
    copied.await
}

/// Replace text in a file
///
/// `old` must be there exactly once, unless all of them are meant. Whoever writes to the file
/// meanwhile makes it a 409, and what they wrote stays.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/replace", operation_id = "replace_in_file", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = ReplaceRequest,
    responses((status = 200, description = "How often, and the file as it is now.", body = ReplaceAnswer)),
)]
pub(in crate::routes) async fn replace(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<ReplaceRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let replaced = errand.change(&mutation, "replace", StatusCode::OK, move |workspace| {
        workspace.replace(&value).map_err(told)
    });
    replaced.await
}
