//! The files of a workspace, one by one.

mod arrange;
mod condition;
mod read;
mod search;
mod write;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use glovebox_engine::{changed_path, file_path};
use glovebox_model::{Code, Error, ProjectId};
use glovebox_workspace::RelPath;
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
    /// As it came, decoded.
    path: Vec<u8>,
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
            path: file,
        })
    }
}

impl Named {
    /// Of something to be changed: a name in the workspace, and no way back on the way to it.
    fn inside(self) -> Answer<(ProjectId, RelPath)> {
        Ok((self.project, changed_path(&self.path)?))
    }

    /// None: the workspace itself.
    fn place(self) -> Answer<(ProjectId, Option<RelPath>)> {
        Ok((self.project, file_path(&self.path)?))
    }
}

/// Where something begins; none is the workspace itself.
pub(super) fn start(path: Option<&[u8]>) -> Answer<Option<RelPath>> {
    Ok(path.map_or(Ok(None), file_path)?)
}

/// An error about a file, with the way to those that are there.
pub(super) fn told(error: Error) -> Error {
    match error.code {
        Code::NotFound => {
            error.hint("`GET /v1/workspaces/{project}/files` lists those of a workspace")
        }
        _ => error,
    }
}
