//! The files of a workspace, one by one.

mod arrange;
mod condition;
mod read;
mod search;
mod write;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use glovebox_model::{ByteString, Code, Error, ProjectId, Stage};
use glovebox_workspace::files::FileError;
use glovebox_workspace::{PathError, RelPath};
use percent_encoding::percent_decode_str;

pub(super) use arrange::*;
pub(super) use read::*;
pub(super) use search::*;
pub(super) use write::*;

use super::workspaces;
use crate::app::App;
use crate::auth::Anybody;
use crate::failure::{Answer, Failure};

/// A file that a route names. Names are bytes, so the path is taken from the request as it came,
/// and decoded once.
#[derive(Debug)]
pub(super) struct Named {
    project: ProjectId,
    /// None: the workspace itself.
    path: Option<RelPath>,
}

impl FromRequestParts<App> for Named {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Answer<Self> {
        let Anybody(caller) = Anybody::from_request_parts(parts, app).await?;
        let rest = parts.uri.path().strip_prefix("/v1/workspaces/");
        let (project, file) = rest
            .and_then(|rest| rest.split_once("/files"))
            .ok_or_else(Failure::internal)?;
        let project = percent_decode_str(project).decode_utf8();
        let project = project.map_err(|_| workspaces::unknown())?;
        let file: Vec<u8> = percent_decode_str(file.strip_prefix('/').unwrap_or(file)).collect();
        Ok(Self {
            project: workspaces::project(&caller, &project)?,
            path: place(&file)?,
        })
    }
}

impl Named {
    /// Of something to be changed: a name in the workspace, and no way back on the way to it.
    fn inside(self) -> Answer<(ProjectId, RelPath)> {
        let path = self.path.ok_or_else(|| refused(PathError::Itself, b"."))?;
        Ok((self.project, plain(path)?))
    }
}

/// What cannot be the name of a file names none; why not is said all the same.
fn refused(error: PathError, path: &[u8]) -> Failure {
    let told = error.at(Stage::Parse, path);
    let hints = told.hints.into_iter();
    hints.fold(Failure::new(Code::NotFound, told.message), Failure::hint)
}

fn place(path: &[u8]) -> Answer<Option<RelPath>> {
    let end = path.iter().rposition(|byte| *byte != b'/');
    match &path[..end.map_or(0, |last| last + 1)] {
        b"" if !path.is_empty() => Err(refused(PathError::Absolute, path)),
        b"" | b"." => Ok(None),
        path => RelPath::new(path)
            .map(Some)
            .map_err(|why| refused(why, path)),
    }
}

fn plain(path: RelPath) -> Answer<RelPath> {
    match path.climbs() {
        false => Ok(path),
        true => {
            let message = "a path to something that is changed cannot hold `..`";
            Err(Failure::new(Code::NotFound, message).hint("name it from the top of the workspace"))
        }
    }
}

/// Where something begins; none is the workspace itself.
pub(super) fn start(path: Option<&[u8]>) -> Answer<Option<RelPath>> {
    path.map_or(Ok(None), place)
}

/// Something to be changed, named in a body.
fn target(path: &ByteString) -> Answer<RelPath> {
    let path = place(path.as_bytes())?.ok_or_else(|| refused(PathError::Itself, b"."))?;
    plain(path)
}

/// As whoever asked is told.
pub(super) fn told(error: FileError) -> Error {
    let told = error.at(Stage::Open);
    match told.code {
        Code::NotFound => {
            told.hint("`GET /v1/workspaces/{project}/files` lists those of a workspace")
        }
        _ => told,
    }
}
