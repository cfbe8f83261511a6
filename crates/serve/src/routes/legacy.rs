//! The exec routes under the names of system 0: the same handlers, records with its extra names,
//! output as JSON.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use glovebox_model::{ExecId, Page, Status, Stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::artifacts::Artifacts;
use super::stream::Part;
use super::wait::find;
use super::{Path, artifacts as files, cancel as end, events as stream_events, execs, submit};
use crate::app::App;
use crate::auth::{ReadsExecs, WritesExecs};
use crate::body::{Json, Mutation, Query};
use crate::failure::Answer;
use glovebox_api::{ExecRequest, LegacyExec, OutputAnswer};

/// Run something
///
/// As `POST /v1/execs`.
#[utoipa::path(
    post, path = "/sandbox/execs", operation_id = "sandbox_create_exec", tag = "sandbox",
    request_body = ExecRequest,
    responses(
        (status = 200, description = "It has ended.", body = LegacyExec),
        (status = 202, description = "It waits or runs.", body = LegacyExec),
    ),
)]
pub(super) async fn create(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    request: Json<ExecRequest>,
) -> Answer<Response> {
    let taken = submit::take_on(&app, &caller, request).await?;
    Ok(taken.answer(LegacyExec::from))
}

/// List execs
///
/// As `GET /v1/execs`.
#[utoipa::path(
    get, path = "/sandbox/execs", operation_id = "sandbox_list_execs", tag = "sandbox",
    params(execs::Filter),
    responses((status = 200, description = "A page.", body = Page<LegacyExec>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Query(filter): Query<execs::Filter>,
) -> Answer<Answered<Page<LegacyExec>>> {
    let page = execs::page(&app, &caller, filter).await?;
    Ok(Answered(page.map(LegacyExec::from)))
}

/// Get an exec
#[utoipa::path(
    get, path = "/sandbox/execs/{id}", operation_id = "sandbox_get_exec", tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The record as it is now.", body = LegacyExec)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<LegacyExec>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    Ok(Answered(exec.into_inner().into()))
}

/// Standard output
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/stdout", operation_id = "sandbox_get_stdout", tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id."), Part),
    responses((status = 200, description = "What it printed.", body = OutputAnswer)),
)]
pub(super) async fn stdout(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Answer<Answered<OutputAnswer>> {
    super::stream::legacy(&app, &caller, &id, Stream::Stdout, part).await
}

/// Standard error
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/stderr", operation_id = "sandbox_get_stderr", tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id."), Part),
    responses((status = 200, description = "What it printed.", body = OutputAnswer)),
)]
pub(super) async fn stderr(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Answer<Answered<OutputAnswer>> {
    super::stream::legacy(&app, &caller, &id, Stream::Stderr, part).await
}

/// All that an agent wants to see of an exec.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Observation {
    exec_id: ExecId,
    status: Status,
    exit_code: Option<i32>,
    stdout: OutputAnswer,
    stderr: OutputAnswer,
    artifacts: Artifacts,
}

/// Exit code, output and artifacts at once
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/observation", operation_id = "sandbox_get_observation",
    tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "What is known now.", body = Observation)),
)]
pub(super) async fn observation(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<Observation>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    Ok(Answered(Observation {
        exec_id: exec.exec_id.clone(),
        status: exec.status,
        exit_code: exec.exit_code,
        stdout: super::stream::whole(&app, &exec, Stream::Stdout).await?,
        stderr: super::stream::whole(&app, &exec, Stream::Stderr).await?,
        artifacts: files::listing(&app, &exec).await?,
    }))
}

/// List artifacts
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/artifacts", operation_id = "sandbox_list_artifacts",
    tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "Regular files, with their hashes.", body = Artifacts)),
)]
pub(super) async fn artifacts(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<Artifacts>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    files::listing(&app, &exec).await.map(Answered)
}

/// Get an artifact
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/artifacts/{*path}", operation_id = "sandbox_get_artifact",
    tag = "sandbox",
    params(
        ("id" = String, Path, description = "The exec's id, or its client id."),
        ("path" = String, Path, description = "The file's path in the list of artifacts."),
    ),
    responses((status = 200, description = "The bytes, never as a page.",
        content_type = "application/octet-stream", body = Vec<u8>)),
)]
pub(super) async fn artifact(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path((id, path)): Path<(String, String)>,
) -> Answer<Response> {
    files::file(&app, &caller, &id, &path).await
}

/// Follow an exec
#[utoipa::path(
    get, path = "/sandbox/execs/{id}/events", operation_id = "sandbox_get_events", tag = "sandbox",
    params(
        ("id" = String, Path, description = "The exec's id, or its client id."),
        stream_events::From,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$", min_length = 1, max_length = 15,
            description = "As `after`; the larger of the two counts."),
    ),
    responses((status = 200, description = "The events.",
        content_type = "text/event-stream", body = stream_events::StreamedEvent)),
)]
pub(super) async fn events(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(from): Query<stream_events::From>,
    headers: HeaderMap,
) -> Answer<Response> {
    stream_events::follow(app, caller, &id, from, &headers).await
}

/// Cancel an exec
#[utoipa::path(
    post, path = "/sandbox/execs/{id}/cancel", operation_id = "sandbox_cancel_exec", tag = "sandbox",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The record as it is now.", body = LegacyExec)),
)]
pub(super) async fn cancel(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    end::do_cancel(app, caller, id, mutation, LegacyExec::from).await
}
