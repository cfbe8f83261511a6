//! Whole trees, in and out.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use glovebox_model::{Code, Error, Stage};
use glovebox_snapshot::{Progress, Watch};
use glovebox_workspace::files::Format;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use super::files::{start, told};
use super::{Path, workspaces};
use crate::app::App;
use crate::auth::{ReadsFiles, WritesFiles};
use crate::body::{Limit, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use crate::inside::LocalFile;
use crate::routes::artifacts::attachment;
use glovebox_api::UnpackAnswer;

const PIECE: usize = 128 << 10;
/// Pieces that wait for a client that reads slowly.
const AHEAD: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
enum ArchiveFormat {
    #[serde(rename = "tar")]
    Tar,
    #[serde(rename = "tar.gz")]
    TarGzip,
    #[serde(rename = "tar.zst")]
    TarZstd,
    #[serde(rename = "zip")]
    Zip,
}

impl ArchiveFormat {
    const fn format(self) -> Format {
        match self {
            Self::Tar => Format::Tar,
            Self::TarGzip => Format::TarGzip,
            Self::TarZstd => Format::TarZstd,
            Self::Zip => Format::Zip,
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::TarGzip => "tar.gz",
            Self::TarZstd => "tar.zst",
            Self::Zip => "zip",
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Packing {
    #[param(inline)]
    format: Option<ArchiveFormat>,
    /// The directory that is packed; the whole workspace without it.
    #[param(max_length = 1000)]
    path: Option<String>,
}

/// Download a directory
///
/// As an archive, made while it is sent. Links are packed as links; special files are left out.
/// What is above 200000 entries or 4 GiB is refused; an archive without its end was cut off. A
/// space is sent at most four at once.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/archive", operation_id = "download_archive", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id."), Packing),
    responses((status = 200, description = "The archive.", content_type = "application/octet-stream", body = Vec<u8>)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Query(packing): Query<Packing>,
) -> Answer<Response> {
    let project = workspaces::project(&caller, &name)?;
    let under = start(packing.path.as_deref().map(str::as_bytes))?;
    let format = packing.format.unwrap_or(ArchiveFormat::Tar);
    let place = app.archives().enter(caller.space())?;
    let (eyes, by) = (caller.eyes(), caller.actor());
    let (send, mut receive) = mpsc::channel(AHEAD);
    let asked = app.clone();
    let packed = tokio::spawn(async move {
        let packed = asked.ask_on_thread("pack", move |dispatcher| {
            let _place = place;
            let workspace = match dispatcher.workspace(&eyes, &project, Some(by)) {
                Err(error) if error.code == Code::NotFound => return Ok(None),
                workspace => workspace?,
            };
            let mut sink = Pieces::new(send);
            let packed = workspace.pack(under.as_ref(), format.format(), &mut sink);
            packed.map_err(told)?;
            sink.flush().map(Some).map_err(|error| {
                let message = "the archive was not read to its end";
                Error::new(Code::Canceled, Stage::Collect, message).caused_by(error)
            })
        });
        packed.await
    });
    // The first piece before the answer begins: what is refused is refused before it.
    let Some(first) = receive.recv().await else {
        return Err(match packed.await.map_err(|_| Failure::internal())? {
            Ok(None) => workspaces::unknown(),
            Ok(Some(())) => Failure::internal(),
            Err(failure) => failure,
        });
    };
    let rest = futures_util::stream::unfold(Some((receive, packed)), |state| async {
        let (mut receive, packed) = state?;
        match receive.recv().await {
            Some(piece) => Some((Ok(piece), Some((receive, packed)))),
            // Without its end, nobody takes it for the whole.
            None => match packed.await {
                Ok(Ok(Some(_))) => None,
                _ => Some((Err(io::Error::from(io::ErrorKind::Other)), None)),
            },
        }
    });
    let first = futures_util::stream::once(async { Ok(first) });
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let file = format!("{name}.{}", format.ending());
    attachment(response.headers_mut(), file.as_bytes());
    Ok(response)
}

/// Sends what is written to it; fails once nobody receives.
struct Pieces {
    piece: BytesMut,
    send: mpsc::Sender<Bytes>,
}

impl Pieces {
    fn new(send: mpsc::Sender<Bytes>) -> Self {
        Self {
            piece: BytesMut::with_capacity(PIECE),
            send,
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, BytesMut::with_capacity(PIECE));
        let sent = self.send.blocking_send(piece.freeze());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Unpacking {
    /// The directory that it is unpacked to, made when it is not there; the workspace itself
    /// without it.
    #[param(max_length = 1000)]
    path: Option<String>,
}

/// Upload a directory
///
/// A tar, plain or compressed with gzip or zstd, or a ZIP: what it is, is seen from its bytes. All
/// of it is unpacked aside and moved in when all of it was right, so a refused archive changes
/// no file. Files of the same name are replaced. Owners, attributes and set-id bits are not taken
/// over; links that lead out, special files and names with `..` are refused.
#[utoipa::path(
    put, path = "/v1/workspaces/{project}/archive", operation_id = "upload_archive", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id."), Unpacking),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "What was unpacked.", body = UnpackAnswer)),
)]
pub(super) async fn put(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(name): Path<String>,
    Query(unpacking): Query<Unpacking>,
    mut request: Request,
) -> Answer<Response> {
    let project = workspaces::project(&caller, &name)?;
    let local = request.extensions_mut().remove::<LocalFile>();
    let under = start(unpacking.path.as_deref().map(str::as_bytes))?;
    let mutation = Mutation::read(&app, request, Limit::File).await?;
    let (archive, work_app) = (mutation.bytes.clone(), app.clone());
    let (eyes, by) = (caller.eyes(), caller.actor());
    let work = async move {
        let unpacked = work_app.haul("unpack", move |dispatcher, watch| {
            let workspace = dispatcher.make_workspace(&eyes, &project, Some(by))?;
            let under = under.as_ref();
            let unpacked = match local {
                Some(file) => workspace.unpack(under, file.0),
                None => workspace.unpack(
                    under,
                    Wanted {
                        archive: Cursor::new(archive),
                        watch,
                    },
                ),
            };
            unpacked.map_err(told)
        });
        Outcome::json(StatusCode::OK, &unpacked.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// An archive that is read for as long as somebody waits for it.
struct Wanted<'w> {
    archive: Cursor<Bytes>,
    watch: &'w mut dyn Watch,
}

impl Read for Wanted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let progress = Progress {
            entries: 0,
            bytes: self.archive.position(),
        };
        match self.watch.on(progress).is_break() {
            true => Err(io::Error::other("nobody waits for it any more")),
            false => self.archive.read(buffer),
        }
    }
}

impl Seek for Wanted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.archive.seek(to)
    }
}
