//! Files and directories as they are.

use std::io::Read;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use glovebox_engine::{ListRequest, Opened, Workspace};
use glovebox_model::{Code, Error, Result};
use glovebox_workspace::RelPath;
use glovebox_workspace::files::{Etag, Range, Reading};
use serde::Deserialize;
use utoipa::IntoParams;

use super::condition::{Tags, if_range, range, tags};
use super::{Named, told};
use crate::app::App;
use crate::auth::{Caller, ReadsFiles};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use crate::routes::artifacts::attachment;
use crate::routes::workspace_request::WorkspaceRequest;
use glovebox_api::Looked;

const PIECE: usize = 256 << 10;
/// Of one answer. A file without contents may say that it is a thousand times larger.
const MOST_BYTES: u64 = 4 << 30;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct Wanted {
    /// Only what it is, also of a link or a special file, as JSON.
    stat: Option<bool>,
    /// Of a directory: how many levels.
    #[param(minimum = 1, maximum = 100, default = 1)]
    depth: Option<usize>,
    /// Of a directory: entries of one page.
    #[param(minimum = 1, maximum = 10000, default = 1000)]
    limit: Option<usize>,
    /// Of a directory: `next` of the page before.
    #[param(pattern = "^[0-9a-f]+$", max_length = 8190)]
    after: Option<String>,
}

/// What a request for a file says about it in its head.
#[derive(Debug)]
struct Terms {
    known: Option<Tags>,
    range: Option<Range>,
    if_range: Option<Option<Etag>>,
}

impl Terms {
    fn read(headers: &HeaderMap) -> Answer<Self> {
        Ok(Self {
            known: tags(headers, &header::IF_NONE_MATCH)?,
            range: range(headers),
            if_range: if_range(headers),
        })
    }
}

enum Found {
    Whole(Reading),
    Part(Reading),
    Known(Etag),
    Told(Looked),
    Beyond { size: u64, error: Error },
}

/// List a workspace
///
/// What is in its topmost directory.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/files", operation_id = "list_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id."), Wanted),
    responses((status = 200, description = "Its entries.", body = Looked)),
)]
pub(in crate::routes) async fn root(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    named: Named,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Answer<Response> {
    answer(app, caller, named, wanted, &headers).await
}

/// Get a file
///
/// Its bytes, or a part of them by `Range`; what is in it when it is a directory (`.` is the
/// workspace itself); what it is with `stat`. A link that stays inside the workspace is followed.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/files/{*path}", operation_id = "get_file", tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        ("path" = String, Path, description = "The path in the workspace."),
        Wanted,
        ("Range" = Option<String>, Header, description = "One range of bytes: `bytes=0-99`, `bytes=100-`, `bytes=-100`."),
        ("If-None-Match" = Option<String>, Header, description = "Marks that are known already, in quotation marks: then it is a 304.",
            pattern = r#"^(?:|\*|(?:W/)?"[!#-~]+"(?:, *(?:W/)?"[!#-~]+")*)$"#),
        ("If-Range" = Option<String>, Header, description = "The mark that the range is meant for; of another file the whole is sent."),
    ),
    responses(
        (status = 200, description = "A file's bytes, a directory's entries, or what it is.",
            content((Vec<u8> = "application/octet-stream"), (Looked = "application/json")),
            headers(("ETag" = Option<String>, description = "The file's mark."))),
        (status = 206, description = "A part of a file's bytes.", content_type = "application/octet-stream", body = Vec<u8>,
            headers(("ETag" = String), ("Content-Range" = String))),
        (status = 304, description = "It is one of those that are known.", headers(("ETag" = String))),
    ),
)]
pub(in crate::routes) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    named: Named,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Answer<Response> {
    answer(app, caller, named, wanted, &headers).await
}

async fn answer(
    app: App,
    caller: Caller,
    named: Named,
    wanted: Wanted,
    headers: &HeaderMap,
) -> Answer<Response> {
    let terms = Terms::read(headers)?;
    let (project, path) = named.place()?;
    let name = path.as_ref().map_or_else(Vec::new, |path| {
        path.components().last().unwrap_or_default().to_vec()
    });
    let most = match app.is_inline() {
        true => u64::MAX,
        false => MOST_BYTES,
    };
    let found = WorkspaceRequest::of(app, caller, project).look("file", move |workspace| {
        find(workspace, path.as_ref(), &wanted, &terms).map_err(told)
    });
    match found.await? {
        Found::Beyond { size, error } => Err(Failure::from(error).beyond(size)),
        Found::Told(told) => Ok(Json(told).into_response()),
        Found::Known(etag) => marked(StatusCode::NOT_MODIFIED, Body::empty(), &etag),
        Found::Whole(reading) => bytes(reading, StatusCode::OK, &name, most),
        Found::Part(reading) => bytes(reading, StatusCode::PARTIAL_CONTENT, &name, most),
    }
}

fn find(
    workspace: &Workspace<'_>,
    path: Option<&RelPath>,
    wanted: &Wanted,
    terms: &Terms,
) -> Result<Found> {
    if wanted.stat == Some(true) {
        return Ok(Found::Told(Looked::File(workspace.stat(path)?)));
    }
    let list = |path| {
        let page = ListRequest {
            depth: wanted.depth,
            limit: wanted.limit,
            after: wanted.after.clone(),
        };
        let listing = workspace.list(path, &page)?;
        Ok(Found::Told(Looked::Directory(listing)))
    };
    let Some(path) = path else {
        return list(None);
    };
    let whole = match workspace.open(path, Range::Whole)? {
        Opened::File(whole) => whole,
        Opened::Directory => return list(Some(path)),
        Opened::Beyond { size, error } => return Ok(Found::Beyond { size, error }),
    };
    if let Some(known) = &terms.known
        && known.names(&whole.stat.etag)
    {
        return Ok(Found::Known(whole.stat.etag));
    }
    let is_meant = |reading: &Reading| match &terms.if_range {
        None => true,
        Some(etag) => etag.as_ref() == Some(&reading.stat.etag),
    };
    if let Some(range) = terms.range
        && is_meant(&whole)
    {
        match workspace.open(path, range)? {
            Opened::File(part) if is_meant(&part) => return Ok(Found::Part(part)),
            Opened::File(_) | Opened::Directory => {}
            Opened::Beyond { size, error } => return Ok(Found::Beyond { size, error }),
        }
    }
    Ok(Found::Whole(whole))
}

fn marked(status: StatusCode, body: Body, etag: &Etag) -> Answer<Response> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let etag = HeaderValue::from_str(&format!("\"{etag}\"")).map_err(|_| Failure::internal())?;
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

fn bytes(reading: Reading, status: StatusCode, name: &[u8], most: u64) -> Answer<Response> {
    let (start, length, size) = (reading.start, reading.length, reading.stat.size);
    if length > most {
        let message = format!("the file has {length} bytes, and one answer at most {most}");
        return Err(Failure::new(Code::PayloadTooLarge, message)
            .hint("ask for it in parts, with the header `Range`"));
    }
    let etag = reading.stat.etag.clone();
    let mut response = marked(status, Body::from_stream(pieces(reading)), &etag)?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        // A part is never empty.
        let range = format!("bytes {start}-{}/{size}", start + length - 1);
        let range = HeaderValue::from_str(&range).map_err(|_| Failure::internal())?;
        headers.insert(header::CONTENT_RANGE, range);
    }
    attachment(headers, name);
    Ok(response)
}

/// Read as they are sent.
fn pieces(
    reading: Reading,
) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    futures_util::stream::try_unfold(reading, |mut reading| async {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = reading.read(&mut piece)?;
            piece.truncate(count);
            Ok::<_, std::io::Error>((piece, reading))
        });
        let (piece, reading) = read.await.map_err(std::io::Error::other)??;
        Ok((!piece.is_empty()).then(|| (Bytes::from(piece), reading)))
    })
}
