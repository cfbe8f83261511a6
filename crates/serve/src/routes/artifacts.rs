//! Files that an exec left.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use glovebox_engine::Seen;
use glovebox_model::{Artifact, Code, Exec, ExecId};
use glovebox_workspace::{Manifest, RelPath};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use utoipa::ToSchema;

use super::Path;
use super::stream::file_body;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::failure::{Answer, Failure};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Artifacts {
    exec_id: ExecId,
    /// Relative to the state directory.
    artifacts_dir: Option<String>,
    files: Vec<Artifact>,
    missing_manifest: bool,
    missing_reason: Option<String>,
}

/// List artifacts
#[utoipa::path(
    get, path = "/v1/execs/{id}/artifacts", operation_id = "list_exec_artifacts", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "Regular files, with their hashes.", body = Artifacts)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Json<Artifacts>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    listing(&app, &exec).await.map(Json)
}

pub(super) async fn listing(app: &App, exec: &Seen<Exec>) -> Answer<Artifacts> {
    let (space, project) = (exec.ids.space_id.clone(), exec.project_id.clone());
    let id = exec.exec_id.clone();
    let manifest = app.ask("manifest", move |dispatcher| {
        let read = dispatcher
            .layout(&space)?
            .artifacts(&project, &id)
            .and_then(|dir| Manifest::read(&dir));
        match read {
            Err(error) if error.code == Code::NotFound => Ok(None),
            manifest => manifest.map(Some),
        }
    });
    let manifest = manifest.await?;
    let missing_reason = match (&manifest, exec.status.is_final()) {
        (Some(_), _) => None,
        (None, true) => Some("the exec never ran, was lost, or its files are gone"),
        (None, false) => Some("the exec has not ended"),
    };
    let files = manifest.as_ref().map_or_else(Vec::new, |manifest| {
        let files = manifest.files.iter();
        files
            .filter_map(|file| {
                Some(Artifact {
                    path: file.path.clone(),
                    size: file.size,
                    hash: file.hash.clone()?,
                })
            })
            .collect()
    });
    Ok(Artifacts {
        exec_id: exec.exec_id.clone(),
        artifacts_dir: exec.artifacts_dir.clone(),
        files,
        missing_manifest: manifest.is_none(),
        missing_reason: missing_reason.map(str::to_owned),
    })
}

/// Get an artifact
#[utoipa::path(
    get, path = "/v1/execs/{id}/artifacts/{*path}", operation_id = "get_exec_artifact", tag = "execs",
    params(
        ("id" = String, Path, description = "The exec's id, or its client id."),
        ("path" = String, Path, description = "The file's path in the list of artifacts."),
    ),
    responses((status = 200, description = "The bytes, never as a page.",
        content_type = "application/octet-stream", body = Vec<u8>)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path((id, path)): Path<(String, String)>,
) -> Answer<Response> {
    file(&app, &caller, &id, &path).await
}

pub(super) async fn file(app: &App, caller: &Caller, id: &str, path: &str) -> Answer<Response> {
    let exec = find(app, &caller.eyes(), id).await?;
    let nowhere = || {
        Failure::not_found("artifact")
            .hint("`GET /v1/execs/{id}/artifacts` lists them; only the server that ran it has them")
    };
    let relative = RelPath::new(path).map_err(|_| nowhere())?;
    let opened = app.ask("open", move |dispatcher| {
        let dir = match dispatcher
            .layout(&exec.ids.space_id)?
            .artifacts(&exec.project_id, &exec.exec_id)
        {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            dir => dir?,
        };
        // Whatever stands there but a file is as good as nothing.
        Ok(dir.open_file(&relative).ok())
    });
    let (file, _) = opened.await?.ok_or_else(nowhere)?;
    download(app, file, path)
}

pub(super) fn download(app: &App, file: std::fs::File, path: &str) -> Answer<Response> {
    let (body, length) = file_body(app, file, 0, None)?;
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    attachment(headers, path.rsplit('/').next().unwrap_or(path).as_bytes());
    Ok(response)
}

/// As a file to keep, which no browser shows as a page of ours.
pub(super) fn attachment(headers: &mut HeaderMap, name: &[u8]) {
    let name = percent_encode(name, NON_ALPHANUMERIC);
    let disposition = format!("attachment; filename*=UTF-8''{name}");
    let bytes = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, bytes);
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    let sandbox = HeaderValue::from_static("sandbox; default-src 'none'");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-resource-policy", same_origin);
}
