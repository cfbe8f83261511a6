//! What a program printed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use glovebox_engine::Seen;
use glovebox_model::{Code, Error, Exec, Stage, Stream};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use glovebox_api::{OutputAnswer, OutputEncoding};

const PIECE: usize = 64 << 10;
/// In JSON, where all of it must be in memory.
const JSON_DEFAULT: u64 = 1 << 20;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// The first byte.
    #[param(minimum = 0, maximum = 1099511627776i64, default = 0)]
    offset: Option<u64>,
    /// At most so many bytes. In JSON 1 MiB if nothing is said.
    #[param(minimum = 1, maximum = 16777216)]
    limit: Option<u64>,
}

/// Standard output
///
/// The bytes as they are, while it runs too; as JSON with `Accept: application/json`.
#[utoipa::path(
    get, path = "/v1/execs/{id}/stdout", operation_id = "get_exec_stdout", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id."), Part),
    responses((status = 200, description = "What it printed.",
        content((String = "text/plain; charset=utf-8"), (OutputAnswer = "application/json")))),
)]
pub(super) async fn stdout(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(part): Query<Part>,
    headers: HeaderMap,
) -> Answer<Response> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    either(&app, exec, Stream::Stdout, part, &headers).await
}

/// Standard error
///
/// The bytes as they are, while it runs too; as JSON with `Accept: application/json`.
#[utoipa::path(
    get, path = "/v1/execs/{id}/stderr", operation_id = "get_exec_stderr", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id."), Part),
    responses((status = 200, description = "What it printed.",
        content((String = "text/plain; charset=utf-8"), (OutputAnswer = "application/json")))),
)]
pub(super) async fn stderr(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(part): Query<Part>,
    headers: HeaderMap,
) -> Answer<Response> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    either(&app, exec, Stream::Stderr, part, &headers).await
}

async fn either(
    app: &App,
    exec: Seen<Exec>,
    stream: Stream,
    part: Part,
    headers: &HeaderMap,
) -> Answer<Response> {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.trim().starts_with("application/json")) {
        return Ok(Json(output(app, &exec, stream, part).await?).into_response());
    }
    let Some(file) = open(app, &exec, stream).await? else {
        return Err(Failure::not_found("output")
            .hint("an exec that has not run has none; only the server that ran it has it"));
    };
    let (body, length) = file_body(app, file, part.offset.unwrap_or(0), part.limit)?;
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

pub(super) async fn legacy(
    app: &App,
    caller: &Caller,
    id: &str,
    stream: Stream,
    part: Part,
) -> Answer<Json<OutputAnswer>> {
    let exec = find(app, &caller.eyes(), id).await?;
    output(app, &exec, stream, part).await.map(Json)
}

/// All that JSON carries if nothing is said.
pub(super) async fn whole(app: &App, exec: &Seen<Exec>, stream: Stream) -> Answer<OutputAnswer> {
    let part = Part {
        offset: None,
        limit: None,
    };
    output(app, exec, stream, part).await
}

async fn output(app: &App, exec: &Seen<Exec>, stream: Stream, part: Part) -> Answer<OutputAnswer> {
    let (bytes, truncated) = match stream {
        Stream::Stdout => (exec.stdout_bytes, exec.stdout_truncated),
        Stream::Stderr => (exec.stderr_bytes, exec.stderr_truncated),
    };
    let file = open(app, exec, stream).await?;
    let missing_file = file.is_none();
    let content = match file {
        None => Vec::new(),
        Some(file) => {
            let offset = part.offset.unwrap_or(0);
            let limit = part.limit.unwrap_or(JSON_DEFAULT);
            app.ask("read", move |_| read_part(&file, offset, limit))
                .await?
        }
    };
    let (content, encoding) = match String::from_utf8(content) {
        Ok(text) => (text, OutputEncoding::Utf8),
        Err(error) => (STANDARD.encode(error.as_bytes()), OutputEncoding::Base64),
    };
    Ok(OutputAnswer {
        content,
        encoding,
        truncated,
        bytes,
        missing_file,
    })
}

async fn open(app: &App, exec: &Seen<Exec>, stream: Stream) -> Answer<Option<File>> {
    let (space, project) = (exec.ids.space_id.clone(), exec.project_id.clone());
    let id = exec.exec_id.clone();
    let opened = app.ask("open", move |dispatcher| {
        match dispatcher.layout(&space)?.stream(&project, &id, stream) {
            Err(error) if error.code == Code::NotFound => Ok(None),
            file => file.map(Some),
        }
    });
    opened.await
}

fn read_part(file: &File, offset: u64, limit: u64) -> glovebox_model::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    while bytes.len() < most {
        let start = bytes.len();
        bytes.resize(start + PIECE.min(most - start), 0);
        let count = read_at(file, &mut bytes[start..], offset + start as u64)?;
        bytes.truncate(start + count);
        if count == 0 {
            break;
        }
    }
    Ok(bytes)
}

fn read_at(file: &File, into: &mut [u8], offset: u64) -> glovebox_model::Result<usize> {
    loop {
        match file.read_at(into, offset) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let message = "the file cannot be read";
                return Err(
                    Error::new(Code::StoreUnavailable, Stage::Collect, message).caused_by(error)
                );
            }
            Ok(count) => return Ok(count),
        }
    }
}

/// A file's bytes, read as they are sent, and how many there will be: what is added to the file
/// meanwhile is not part of them.
pub(super) fn file_body(
    app: &App,
    file: File,
    offset: u64,
    limit: Option<u64>,
) -> Answer<(Body, u64)> {
    let size = file
        .metadata()
        .map(|about| about.len())
        .map_err(|_| Failure::internal())?;
    let length = size.saturating_sub(offset).min(limit.unwrap_or(u64::MAX));
    let (app, file) = (app.clone(), Arc::new(file));
    let pieces = futures_util::stream::try_unfold((offset, length), move |(offset, left)| {
        let (app, file) = (app.clone(), Arc::clone(&file));
        async move {
            if left == 0 {
                return Ok(None);
            }
            let most = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let read = app.ask("read", move |_| {
                let mut piece = vec![0; most];
                let count = read_at(&file, &mut piece, offset)?;
                piece.truncate(count);
                Ok(piece)
            });
            let piece = read
                .await
                .map_err(|failure| std::io::Error::other(failure.0))?;
            if piece.is_empty() {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
            }
            let count = piece.len() as u64;
            Ok(Some((Bytes::from(piece), (offset + count, left - count))))
        }
    });
    Ok((Body::from_stream(pieces), length))
}
