//! Directories, moves, copies and replaced text.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_workspace::Existing;
use glovebox_workspace::files::{self, CopyLimits, Etag, FileError, Occurrence, Parents, stat};
use serde_json::json;

use super::{target, told};
use crate::app::App;
use crate::auth::WritesFiles;
use crate::body::Json;
use crate::failure::Answer;
use crate::routes::Path;
use crate::routes::errand::Errand;
use crate::wire::answer::{CopyAnswer, FileInfo, ReplaceAnswer};
use crate::wire::{CopyRequest, MkdirRequest, MoveRequest, ReplaceRequest};

/// A file in which something is replaced, before and after.
const TEXT_BYTES: u64 = 64 << 20;

const fn parents(make: bool) -> Parents {
    match make {
        true => Parents::Make,
        false => Parents::Require,
    }
}

const fn existing(overwrite: bool) -> Existing {
    match overwrite {
        true => Existing::Replace,
        false => Existing::Refuse,
    }
}

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
    let (errand, path) = (Errand::new(app, caller, &name)?, target(&value.path)?);
    let made = errand.change(&mutation, "mkdir", StatusCode::OK, move |workspace| {
        let writing = workspace.writing()?;
        writing.room().take(0, writing.missing(&path))?;
        let made = files::mkdir(writing.work(), &path, parents(value.parents)).map_err(told)?;
        workspace.note("directory.made", json!({ "path": path.to_byte_string() }))?;
        Ok(FileInfo::new(Some(&path), made))
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
    let errand = Errand::new(app, caller, &name)?;
    let (from, to) = (target(&value.from)?, target(&value.to)?);
    let moved = errand.change(&mutation, "rename", StatusCode::OK, move |workspace| {
        let writing = workspace.writing()?;
        let work = writing.work();
        let (existing, parents) = (existing(value.overwrite), parents(value.parents));
        files::rename(work, &from, &to, existing, parents).map_err(told)?;
        let details = json!({ "from": from.to_byte_string(), "to": to.to_byte_string() });
        workspace.note("file.moved", details)?;
        let info = stat(work, Some(&to)).map_err(told)?;
        Ok(FileInfo::new(Some(&to), info))
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
    let errand = Errand::new(app, caller, &name)?;
    let (from, to) = (target(&value.from)?, target(&value.to)?);
    let copied = errand.change(&mutation, "copy", StatusCode::OK, move |workspace| {
        let writing = workspace.writing()?;
        let (room, usual) = (writing.room(), CopyLimits::default());
        // With the directories above it.
        let made = writing.missing(&to).max(1);
        room.take(0, made)?;
        let limits = CopyLimits {
            entries: usual.entries.min(room.files().saturating_sub(made - 1)),
            bytes: usual.bytes.min(room.bytes()),
            ..usual
        };
        let (existing, parents) = (existing(value.overwrite), parents(value.parents));
        let copied = files::copy(writing.work(), &from, &to, existing, parents, limits);
        let copied = copied.map_err(|error| match error {
            FileError::Limit(_) if limits != usual => room.passed(),
            error => told(error),
        })?;
        workspace.note(
            "file.copied",
            json!({ "from": from.to_byte_string(), "to": to.to_byte_string(),
                "files": copied.files, "bytes": copied.bytes }),
        )?;
        Ok(CopyAnswer::new(&to, copied))
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
    let (errand, path) = (Errand::new(app, caller, &name)?, target(&value.path)?);
    let replaced = errand.change(&mutation, "replace", StatusCode::OK, move |workspace| {
        let writing = workspace.writing()?;
        let work = writing.work();
        let cap = TEXT_BYTES.min(writing.largest_at(&path));
        let occurrence = match value.all {
            true => Occurrence::All,
            false => Occurrence::Once,
        };
        let etag = value.etag.map(Etag::new);
        let (old, new) = (value.old.as_bytes(), value.new.as_bytes());
        let replaced = files::replace(work, &path, old, new, occurrence, etag.as_ref(), cap);
        let replaced = replaced.map_err(told)?;
        let details = json!({ "path": path.to_byte_string(), "bytes": replaced.stat.size });
        workspace.note("file.replaced", details)?;
        Ok(ReplaceAnswer::new(&path, replaced))
    });
    replaced.await
}
