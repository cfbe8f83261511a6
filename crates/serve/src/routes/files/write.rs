//! Writing and removing.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use glovebox_engine::Expected;
use glovebox_model::Code;
use glovebox_workspace::files::Etag;
use serde::Deserialize;
use utoipa::IntoParams;

use super::condition::{Tags, tags};
use super::{Named, told};
use crate::app::App;
use crate::auth::WritesFiles;
use crate::body::{Limit, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use crate::inside::LocalFile;
use crate::routes::workspace_request::WorkspaceRequest;
use glovebox_api::FileInfo;

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
enum Demand {
    Anything,
    Nothing,
    One(Tags),
    /// One that is there, where nothing is.
    Impossible,
}

impl Demand {
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

    fn accepts(&self, etag: &Etag) -> bool {
        matches!(self, Self::One(tags) if tags.holds(etag))
    }
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
    mut request: Request,
) -> Answer<Response> {
    let (project, path) = named.inside()?;
    let demand = Demand::read(request.headers())?;
    let local = request.extensions_mut().remove::<LocalFile>();
    let mutation = Mutation::read(&app, request, Limit::File).await?;
    let (contents, work_app) = (mutation.bytes.clone(), app.clone());
    let (eyes, by) = (caller.eyes(), caller.actor());
    let work = async move {
        let asked = work_app.ask("write", move |dispatcher| {
            let workspace = match demand {
                Demand::One(_) | Demand::Impossible => {
                    dispatcher.workspace(&eyes, &project, Some(by))
                }
                Demand::Anything | Demand::Nothing => {
                    dispatcher.make_workspace(&eyes, &project, Some(by))
                }
            };
            let workspace = match workspace {
                Err(error) if error.code == Code::NotFound => return Ok(None),
                workspace => workspace?,
            };
            let accepts = |etag: &Etag| demand.accepts(etag);
            let expected = match demand {
                Demand::Anything => Expected::Anything,
                Demand::Nothing => Expected::Nothing,
                Demand::One(_) | Demand::Impossible => Expected::Marked(&accepts),
            };
            let (mode, size) = (given.mode(), contents.len() as u64);
            let written = match local {
                Some(mut file) => workspace.write(&path, &mut file.0, None, mode, expected),
                None => workspace.write(&path, &mut &contents[..], Some(size), mode, expected),
            };
            written.map_err(told)
        });
        let written = asked.await?.ok_or_else(|| {
            let message = "what stands there is not what the request expects";
            Failure::new(Code::Conflict, message)
                .hint("get the file again, and decide again")
                .precondition()
        })?;
        Outcome::json(StatusCode::OK, &written)
    };
    once(&app, &caller, &mutation, work).await
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
    let with_contents = removal.recursive.unwrap_or(true);
    let errand = WorkspaceRequest::of(app, caller, project);
    let removed = errand.change(&mutation, "unlink", StatusCode::NO_CONTENT, move |it| {
        it.remove_file(&path, with_contents).map_err(told)
    });
    removed.await
}
