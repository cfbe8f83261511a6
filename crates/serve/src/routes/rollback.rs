//! Going back to a verified snapshot.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_api::{RollbackRequest, RolledBackWorkspace};

use super::Path;
use super::snapshots::{Before, known};
use super::workspace_request::WorkspaceRequest;
use crate::app::App;
use crate::auth::WritesFiles;
use crate::body::{Json, Query};
use crate::failure::Answer;

/// Roll a workspace back
///
/// To the newest snapshot that was verified, or to the one that is named, which has to be. What
/// stands there now is kept as a snapshot first: `before`. While execs of the workspace run it is a
/// 409, and so is a snapshot that is not verified.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/rollback", operation_id = "roll_back_workspace", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id."), Before),
    request_body = RollbackRequest,
    responses((status = 200, description = "It is as it was then.", body = RolledBackWorkspace)),
)]
pub(super) async fn roll_back(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Query(before): Query<Before>,
    Json { value, mutation }: Json<RollbackRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let done = errand.overhaul(&mutation, "rollback", StatusCode::OK, move |it, watch| {
        let to = value.snapshot_id.as_ref();
        let done = it.rollback(to, before.present(), watch);
        match to {
            Some(_) => done.map_err(known),
            None => done,
        }
    });
    done.await
}
