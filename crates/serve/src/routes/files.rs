//! The files of a workspace.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use glovebox_model::{ByteString, Code, Error, Stage};
use glovebox_workspace::{Dir, FsError, FsErrorKind, Kind, RelPath};
use serde::Serialize;
use utoipa::ToSchema;

use super::artifacts::download;
use super::{Path, workspaces};
use crate::app::App;
use crate::auth::{ReadsFiles, WritesFiles};
use crate::body::{Limit, Mutation};
use crate::failure::{Answer, Failure};
use crate::once::{Outcome, once};

const LISTED: usize = 10_000;
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listing {
    /// By name; links are not followed.
    entries: Vec<FileEntry>,
    /// There are more than are listed.
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct FileEntry {
    name: ByteString,
    #[serde(rename = "type")]
    kind: FileKind,
    size: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FileKind {
    File,
    Directory,
    Symlink,
    Other,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Written {
    path: String,
    size: u64,
}

fn unknown() -> Failure {
    Failure::not_found("file")
        .hint("`GET /v1/workspaces/{project}/files/.` lists those of a workspace")
}

/// `.` is the workspace itself.
fn below(path: &str) -> Answer<Option<RelPath>> {
    match path.trim_end_matches('/') {
        "" | "." => Ok(None),
        path => RelPath::new(path).map(Some).map_err(|_| unknown()),
    }
}

enum Found {
    File(std::fs::File),
    Directory(Listing),
}

/// List a workspace
///
/// What is in its topmost directory.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/files", operation_id = "list_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    responses((status = 200, description = "Its entries.", body = Listing)),
)]
pub(super) async fn root(
    State(app): State<App>,
    caller: ReadsFiles,
    Path(name): Path<String>,
) -> Answer<Response> {
    get(State(app), caller, Path((name, ".".to_owned()))).await
}

/// Get a file
///
/// Its bytes, or what is in it when it is a directory; `.` is the workspace itself.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "get_file", tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
    ),
    responses((status = 200, description = "A file's bytes, or a directory's entries.",
        content((Vec<u8> = "application/octet-stream"), (Listing = "application/json")))),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path((name, path)): Path<(String, String)>,
) -> Answer<Response> {
    let (space, project) = (caller.space().clone(), workspaces::project(&name)?);
    let relative = below(&path)?;
    let found = app.ask("file", move |dispatcher| {
        let project = match dispatcher.layout(&space)?.existing(&project) {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            project => project?,
        };
        let Some(work) = project.work() else {
            return Ok(None);
        };
        Ok(look(work, relative.as_ref()))
    });
    match found.await?.ok_or_else(unknown)? {
        Found::File(file) => download(file, &path),
        Found::Directory(listing) => Ok(Json(listing).into_response()),
    }
}

/// What leads out, is special, or cannot be opened is as good as nothing.
fn look(work: &Dir, path: Option<&RelPath>) -> Option<Found> {
    let Some(path) = path else {
        return list(work).map(Found::Directory);
    };
    match work.open_file(path) {
        Ok((file, _)) => Some(Found::File(file)),
        Err(error) if error.kind() == FsErrorKind::IsADirectory => {
            list(&work.open_dir(path).ok()?).map(Found::Directory)
        }
        Err(_) => None,
    }
}

fn list(dir: &Dir) -> Option<Listing> {
    let listing = dir.list(LISTED).ok()?;
    let entries = listing.entries.into_iter().map(|entry| FileEntry {
        name: entry.name,
        kind: match entry.stat.kind {
            Kind::File => FileKind::File,
            Kind::Directory => FileKind::Directory,
            Kind::Symlink => FileKind::Symlink,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => FileKind::Other,
        },
        size: entry.stat.size,
    });
    Some(Listing {
        entries: entries.collect(),
        truncated: listing.truncated,
    })
}

/// Write a file
///
/// Whole or not at all; directories on the way, and the workspace itself, are made.
#[utoipa::path(
    put, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "put_file", tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "It is written.", body = Written)),
)]
pub(super) async fn put(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path((name, path)): Path<(String, String)>,
    request: Request,
) -> Answer<Response> {
    let (space, project) = (caller.space().clone(), workspaces::project(&name)?);
    let relative = below(&path)?
        .filter(|path| !path.climbs())
        .ok_or_else(unknown)?;
    let mutation = Mutation::read(&app, request, Limit::File).await?;
    let (contents, work_app) = (mutation.bytes.clone(), app.clone());
    let work = async move {
        let size = contents.len() as u64;
        let written = work_app.ask("write", move |dispatcher| {
            let project = dispatcher.layout(&space)?.project(&project)?;
            let work = project.work().ok_or_else(no_files)?;
            write(work, &relative, &contents).map_err(clash)
        });
        written.await?;
        Outcome::json(StatusCode::OK, &Written { path, size })
    };
    once(&app, &caller, &mutation, work).await
}

fn write(work: &Dir, path: &RelPath, contents: &[u8]) -> Result<(), FsError> {
    let parts: Vec<&[u8]> = path.components().collect();
    if let Some((_, parents)) = parts.split_last()
        && let Ok(parent) = RelPath::new(parents.join(&b'/'))
    {
        work.mkdir_all(&parent, DIR_MODE)?;
    }
    work.write(path, contents, FILE_MODE)
}

/// Remove a file
///
/// Or a directory with everything in it.
#[utoipa::path(
    delete, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "remove_file",
    tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
    ),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path((name, path)): Path<(String, String)>,
    mutation: Mutation,
) -> Answer<Response> {
    let (space, project) = (caller.space().clone(), workspaces::project(&name)?);
    let relative = below(&path)?
        .filter(|path| !path.climbs())
        .ok_or_else(unknown)?;
    let work_app = app.clone();
    let work = async move {
        let removed = work_app.ask("unlink", move |dispatcher| {
            let project = dispatcher.layout(&space)?.existing(&project)?;
            let work = project.work().ok_or_else(no_files)?;
            work.remove_all(&relative).map_err(clash)
        });
        removed.await.map_err(|failure| match failure.0.code {
            Code::NotFound => unknown(),
            _ => failure,
        })?;
        Ok(Outcome::empty())
    };
    once(&app, &caller, &mutation, work).await
}

fn no_files() -> Error {
    Error::new(Code::NotFound, Stage::Open, "there is no such workspace")
        .hint("`GET /v1/workspaces` lists those of the token's space")
}

/// The path was fine; what stands there is in the way.
fn clash(error: FsError) -> Error {
    let error_code = match error.kind() {
        FsErrorKind::Path(_) | FsErrorKind::NameTooLong => Code::NotFound,
        FsErrorKind::Escapes
        | FsErrorKind::NotADirectory
        | FsErrorKind::IsADirectory
        | FsErrorKind::Symlink
        | FsErrorKind::NotRegular(_)
        | FsErrorKind::OtherFileSystem
        | FsErrorKind::Loop => Code::Conflict,
        _ => return error.at(Stage::Open),
    };
    let mut told = error.at(Stage::Open);
    told.code = error_code;
    told
}
