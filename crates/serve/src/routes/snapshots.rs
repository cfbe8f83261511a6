//! Workspaces as they were.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_api::{
    CollectAnswer, DiffAnswer, ForkRequest, ForkedWorkspace, RestoredWorkspace, SnapshotInfo,
    SnapshotList, SnapshotRequest, TakenSnapshot, UndoRequest, UndoneExec, VerifyAnswer,
};
use glovebox_engine::Present;
use glovebox_model::{Code, Error, SnapshotId, Stage};
use glovebox_snapshot::DiffLimits;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::workspace_request::WorkspaceRequest;
use crate::app::App;
use crate::auth::{ReadsFiles, WritesFiles};
use crate::body::{Json, Mutation, Query};
use crate::failure::{Answer, Failure, discreet};
use crate::idempotency::{Outcome, once};
use crate::order::not_reserved;

const LISTED: usize = 1000;
const TEXT_BYTES: usize = 1 << 20;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// At most so many.
    #[param(minimum = 1, maximum = 10000, default = 1000)]
    limit: Option<usize>,
}

fn unknown() -> Failure {
    Failure::not_found("snapshot")
        .hint("`GET /v1/workspaces/{project}/snapshots` lists those of a workspace")
}

/// What cannot be the name of a snapshot names none.
fn snapshot_id(text: &str) -> Answer<SnapshotId> {
    text.parse().map_err(|_| unknown())
}

/// The same words for one that never was, one of another space, and one of another workspace.
pub(super) fn known(error: Error) -> Error {
    match (error.code, error.stage) {
        (Code::NotFound, _) | (Code::InvalidArgument, Stage::Resolve) => *unknown().0,
        _ => error,
    }
}

/// Take a snapshot
///
/// Only what changed since the last one is read and stored. It is on disk when the answer comes.
/// While execs of the workspace run it is a 409, unless `live` is said.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/snapshots", operation_id = "take_snapshot", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = SnapshotRequest,
    responses((status = 201, description = "It is taken.", body = TakenSnapshot)),
)]
pub(super) async fn take(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<SnapshotRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let taken = errand.overhaul(&mutation, "snapshot", StatusCode::CREATED, |it, watch| {
        it.take(value, watch)
    });
    taken.await
}

/// List snapshots
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/snapshots", operation_id = "list_snapshots", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id."), Filter),
    responses((status = 200, description = "Those of the workspace.", body = SnapshotList)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Query(filter): Query<Filter>,
) -> Answer<Answered<SnapshotList>> {
    let most = filter.limit.unwrap_or(LISTED);
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let listed = errand.look("snapshots", move |it| it.list_snapshots(most));
    listed.await.map(Answered)
}

/// Get a snapshot
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/snapshots/{id}", operation_id = "get_snapshot", tag = "snapshots",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("id" = String, Path, description = "The snapshot's id."),
    ),
    responses((status = 200, description = "What it holds.", body = SnapshotInfo)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path((name, id)): Path<(String, String)>,
) -> Answer<Answered<SnapshotInfo>> {
    let (errand, id) = (
        WorkspaceRequest::new(app, caller, &name)?,
        snapshot_id(&id)?,
    );
    let found = errand.look("snapshot", move |it| it.snapshot_info(&id).map_err(known));
    found.await.map(Answered)
}

/// Remove a snapshot
///
/// The space that it alone took is free after the next collection.
#[utoipa::path(
    delete, path = "/v1/workspaces/{project}/snapshots/{id}", operation_id = "remove_snapshot", tag = "snapshots",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("id" = String, Path, description = "The snapshot's id."),
    ),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path((name, id)): Path<(String, String)>,
    mutation: Mutation,
) -> Answer<Response> {
    let (errand, id) = (
        WorkspaceRequest::new(app, caller, &name)?,
        snapshot_id(&id)?,
    );
    let removed = errand.change(&mutation, "forget", StatusCode::NO_CONTENT, move |it| {
        it.remove_snapshot(&id).map_err(known)
    });
    removed.await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Before {
    /// `false`: what stands there now is lost. A program can leave a tree of which no snapshot can
    /// be taken.
    #[param(default = true)]
    snapshot_before: Option<bool>,
}

impl Before {
    pub(super) fn present(&self) -> Present {
        match self.snapshot_before {
            Some(false) => Present::Lost,
            Some(true) | None => Present::Snapshot,
        }
    }
}

/// Restore a snapshot
///
/// Everything is as it was then. What stands there now is kept as a snapshot first: `before`.
/// While execs of the workspace run it is a 409.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/snapshots/{id}/restore", operation_id = "restore_snapshot", tag = "snapshots",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("id" = String, Path, description = "The snapshot's id."),
        Before,
    ),
    responses((status = 200, description = "It is restored.", body = RestoredWorkspace)),
)]
pub(super) async fn restore(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path((name, id)): Path<(String, String)>,
    Query(before): Query<Before>,
    mutation: Mutation,
) -> Answer<Response> {
    let (errand, id) = (
        WorkspaceRequest::new(app, caller, &name)?,
        snapshot_id(&id)?,
    );
    let restored = errand.overhaul(&mutation, "restore", StatusCode::OK, move |it, watch| {
        it.restore(&id, before.present(), watch).map_err(known)
    });
    restored.await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Sides {
    /// A snapshot; without it, the workspace as it is now.
    #[param(inline)]
    from: Option<SnapshotId>,
    /// A snapshot; without it, the workspace as it is now.
    #[param(inline)]
    to: Option<SnapshotId>,
    /// Changes that are listed; all are counted.
    #[param(minimum = 1, maximum = 10000, default = 10000)]
    limit: Option<usize>,
    /// With hunks of what is text, up to 1 MiB in all.
    #[param(default = true)]
    text: Option<bool>,
}

/// Compare
///
/// Two snapshots, or one with the workspace as it is now.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/diff", operation_id = "diff_workspace", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id."), Sides),
    responses((status = 200, description = "What differs.", body = DiffAnswer)),
)]
pub(super) async fn diff(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Query(sides): Query<Sides>,
) -> Answer<Answered<DiffAnswer>> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let usual = DiffLimits::default();
    let limits = DiffLimits {
        changes: sides.limit.unwrap_or(usual.changes),
        text_bytes: match sides.text {
            Some(false) => 0,
            None | Some(true) => TEXT_BYTES,
        },
        ..usual
    };
    let compared = errand.haul("diff", move |it, watch| {
        let (from, to) = (sides.from.as_ref(), sides.to.as_ref());
        it.diff(from, to, limits, watch).map_err(known)
    });
    compared.await.map(Answered)
}

/// Undo an exec
///
/// The workspace is as it was before the last exec that a snapshot was taken before, or before the
/// one that is named. Asked again, it goes one further back.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/undo", operation_id = "undo_exec", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id."), Before),
    request_body = UndoRequest,
    responses((status = 200, description = "It is undone.", body = UndoneExec)),
)]
pub(super) async fn undo(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Query(before): Query<Before>,
    Json { value, mutation }: Json<UndoRequest>,
) -> Answer<Response> {
    let errand = WorkspaceRequest::new(app, caller, &name)?;
    let undone = errand.overhaul(&mutation, "undo", StatusCode::OK, move |it, watch| {
        it.undo(value.exec_id.as_ref(), before.present(), watch)
    });
    undone.await
}

/// Fork a workspace
///
/// A new one with the files of a snapshot, or with those that are here now.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/fork", operation_id = "fork_workspace", tag = "snapshots",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = ForkRequest,
    responses((status = 201, description = "It is there.", body = ForkedWorkspace)),
)]
pub(super) async fn fork(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Json { value, mutation }: Json<ForkRequest>,
) -> Answer<Response> {
    let (errand, into) = (
        WorkspaceRequest::new(app, caller, &name)?,
        not_reserved(value.into)?,
    );
    let forked = errand.overhaul(&mutation, "fork", StatusCode::CREATED, move |it, watch| {
        it.fork(value.snapshot_id.as_ref(), &into, watch)
            .map_err(known)
    });
    forked.await
}

/// Collect snapshots
///
/// Of every space: those that were kept for their time, and whatever nobody needs any more. The
/// server does the same by itself from time to time.
#[utoipa::path(
    post, path = "/v1/snapshots/collect", operation_id = "collect_snapshots", tag = "snapshots",
    responses((status = 200, description = "What was removed.", body = CollectAnswer)),
)]
pub(super) async fn collect(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    mutation: Mutation,
) -> Answer<Response> {
    caller.operator()?;
    let work_app = app.clone();
    let work = async move {
        let collected = work_app.haul("collect", |dispatcher, _| dispatcher.collect_snapshots());
        let mut answer = collected.await?;
        let shown = !work_app.is_inline();
        for space in answer.spaces.iter_mut().filter(|_| shown) {
            space.error = space.error.take().map(discreet);
        }
        Outcome::json(StatusCode::OK, &answer)
    };
    once(&app, &caller, &mutation, work).await
}

/// Verify snapshots
///
/// Of every space: reads everything that is stored, and says what is damaged and whom it hurts.
/// What is sound is marked as verified in the ledger, and a workspace may be rolled back to it.
#[utoipa::path(
    get, path = "/v1/snapshots/verify", operation_id = "verify_snapshots", tag = "snapshots",
    responses((status = 200, description = "What was found.", body = VerifyAnswer)),
)]
pub(super) async fn verify(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
) -> Answer<Answered<VerifyAnswer>> {
    caller.operator()?;
    let by = caller.actor();
    let verified = app.haul("verify_snapshots", move |dispatcher, watch| {
        dispatcher.verify_snapshots(Some(&by), watch)
    });
    let mut answer = verified.await?;
    for space in answer.spaces.iter_mut().filter(|_| !app.is_inline()) {
        space.error = space.error.take().map(discreet);
    }
    Ok(Answered(answer))
}
