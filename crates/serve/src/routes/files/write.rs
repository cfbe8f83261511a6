//! Writing and removing.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use glovebox_engine::Workspace;
use glovebox_model::{Code, Result};
use glovebox_workspace::files::{
    self, Condition, FileError, FileStat, Parents, Recursive, WriteOptions,
};
use glovebox_workspace::{Dir, FsErrorKind, RelPath};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::condition::{Tags, tags};
use super::{Named, told};
use crate::app::App;
use crate::auth::WritesFiles;
use crate::body::{Limit, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::once::{Outcome, once};
use crate::routes::errand::Errand;
use crate::wire::answer::FileInfo;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct Given {
    /// Permissions, octal; without it those of the file that is replaced, or 0644.
    #[param(pattern = "^[0-7]{3,4}$")]
    mode: Option<String>,
}

impl Given {
    fn mode(&self) -> Option<u32> {
        // Of the described form, so it is a number.
        let mode = self.mode.as_deref();
        mode.and_then(|text| u32::from_str_radix(text, 8).ok())
    }
}

/// What must stand there for a write to be done.
#[derive(Debug)]
enum Expected {
    Anything,
    Nothing,
    One(Tags),
    /// One that is there, where nothing is.
    Impossible,
}

impl Expected {
    fn read(headers: &HeaderMap) -> Answer<Self> {
        let (is, is_not) = (
            tags(headers, &header::IF_MATCH)?,
            tags(headers, &header::IF_NONE_MATCH)?,
        );
        match (is, is_not) {
            (None, None) => Ok(Self::Anything),
            (Some(tags), None) => Ok(Self::One(tags)),
            (None, Some(Tags::Any)) => Ok(Self::Nothing),
            (Some(_), Some(Tags::Any)) => Ok(Self::Impossible),
            (_, Some(Tags::These(_))) => Err(Failure::invalid(
                "a write takes `If-None-Match: *`, and no marks there",
            )
            .hint("`If-Match` names the file that may be replaced")),
        }
    }

    fn condition(&self, there: Option<&FileStat>) -> Option<Condition> {
        match self {
            Self::Anything => Some(Condition::Always),
            Self::Nothing => Some(Condition::Absent),
            Self::One(tags) => there
                .filter(|stat| tags.holds(&stat.etag))
                .map(|stat| Condition::Matches(stat.etag.clone())),
            Self::Impossible => None,
        }
    }
}

/// Why a file was not written.
enum Unwritten {
    NotAsExpected,
    Otherwise(FileError),
}

/// Write a file
///
/// Whole or not at all; directories on the way, and the workspace itself, are made.
#[utoipa::path(
    put, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "put_file", tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
        Given,
        ("If-Match" = Option<String>, Header, description = "The mark of the file that is replaced, in quotation marks; `*` for any. While another stands there it is a 412.",
            pattern = r#"^(?:|\*|(?:W/)?"[!#-~]+"(?:, *(?:W/)?"[!#-~]+")*)$"#),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only where nothing stands.", pattern = r"^\*?$"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "It is written.", body = FileInfo)),
)]
pub(in crate::routes) async fn put(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    named: Named,
    Query(given): Query<Given>,
    request: Request,
) -> Answer<Response> {
    let (project, path) = named.inside()?;
    let expected = Expected::read(request.headers())?;
    let mutation = Mutation::read(&app, request, Limit::File).await?;
    let (contents, work_app) = (mutation.bytes.clone(), app.clone());
    let (eyes, by) = (caller.eyes(), caller.actor());
    let work = async move {
        let asked = work_app.ask("write", move |dispatcher| {
            let workspace = match expected {
                Expected::One(_) | Expected::Impossible => {
                    dispatcher.workspace(&eyes, &project, Some(by))
                }
                Expected::Anything | Expected::Nothing => {
                    dispatcher.make_workspace(&eyes, &project, Some(by))
                }
            };
            let workspace = match workspace {
                Err(error) if error.code == Code::NotFound => {
                    return Ok(Err(Unwritten::NotAsExpected));
                }
                workspace => workspace?,
            };
            let written = write(&workspace, &path, &contents, &expected, given.mode())?;
            let stat = match written {
                Ok(stat) => stat,
                Err(why) => return Ok(Err(why)),
            };
            let details = json!({ "path": path.to_byte_string(), "bytes": stat.size });
            workspace.note("file.written", details)?;
            Ok(Ok(FileInfo::new(Some(&path), stat)))
        });
        match asked.await? {
            Ok(info) => Outcome::json(StatusCode::OK, &info),
            Err(Unwritten::Otherwise(error)) => Err(told(error).into()),
            Err(Unwritten::NotAsExpected) => {
                let message = "what stands there is not what the request expects";
                Err(Failure::new(Code::Conflict, message)
                    .hint("get the file again, and decide again")
                    .precondition())
            }
        }
    };
    once(&app, &caller, &mutation, work).await
}

fn write(
    workspace: &Workspace<'_>,
    path: &RelPath,
    mut contents: &[u8],
    expected: &Expected,
    mode: Option<u32>,
) -> Result<Result<FileStat, Unwritten>> {
    let writing = workspace.writing()?;
    let work = writing.work();
    let there = standing(work, path);
    let Some(condition) = expected.condition(there.as_ref()) else {
        return Ok(Err(Unwritten::NotAsExpected));
    };
    let size = contents.len() as u64;
    writing.fits(path, size)?;
    let options = WriteOptions {
        condition,
        parents: Parents::Make,
        mode,
        most_bytes: size,
        ..WriteOptions::default()
    };
    let written = files::write(work, path, &mut contents, &options);
    Ok(written.map_err(|error| match (&error, expected) {
        (FileError::Changed { .. }, _) => Unwritten::NotAsExpected,
        (FileError::Fs(fault), Expected::Nothing) if fault.kind() == FsErrorKind::Exists => {
            Unwritten::NotAsExpected
        }
        _ => Unwritten::Otherwise(error),
    }))
}

fn standing(work: &Dir, path: &RelPath) -> Option<FileStat> {
    files::stat(work, Some(path)).ok()
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct Removal {
    /// A directory goes with everything in it.
    #[param(default = true)]
    recursive: Option<bool>,
}

/// Remove a file
///
/// Or a directory with everything in it. A link goes, what it points at stays.
#[utoipa::path(
    delete, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "remove_file",
    tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
        Removal,
    ),
    responses((status = 204, description = "It is gone.")),
)]
pub(in crate::routes) async fn remove(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    named: Named,
    Query(removal): Query<Removal>,
    mutation: Mutation,
) -> Answer<Response> {
    let (project, path) = named.inside()?;
    let recursive = match removal.recursive {
        Some(false) => Recursive::No,
        None | Some(true) => Recursive::Yes,
    };
    let errand = Errand::of(app, caller, project);
    let removed = errand.change(&mutation, "unlink", StatusCode::NO_CONTENT, move |it| {
        let writing = it.writing()?;
        files::remove(writing.work(), &path, recursive).map_err(told)?;
        it.note("file.removed", json!({ "path": path.to_byte_string() }))
    });
    removed.await
}
