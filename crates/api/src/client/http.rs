//! HTTP/1.1 over a connection, each request with an end in time.

use std::fmt;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use glovebox_model::{Code, Error, Result, Stage};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName};
use hyper::{Request, Response, StatusCode};

use super::address::Scheme;
use super::connect::{Connector, Sender};
use super::credential::Credential;
use super::refusal;
use super::transport::{
    ANSWER_MOST, ApiRequest, Content, FileContent, Pieces, REFUSAL_MOST, SendError, SendResult,
    Transport,
};

/// Between two pieces of an answer. A stream of events says something more often than that.
const PAUSE: Duration = Duration::from_secs(60);
/// What a server takes in one file or archive.
const FILE_BYTES: u64 = 64 << 20;
/// One that waits for output, and one on which something is typed meanwhile.
const IDLE_MOST: usize = 2;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(crate) struct Http {
    connector: Connector,
    credential: Credential,
    /// Connections whose last answer was read to its end.
    idle: Mutex<Vec<Sender>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

impl Http {
    pub(crate) fn new(connector: Connector, credential: Credential) -> Self {
        Self {
            connector,
            credential,
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn whole(&self, ask: &ApiRequest) -> SendResult<Bytes> {
        let idle = self.idle().pop();
        if let Some(sender) = idle.filter(|it| !it.is_closed()) {
            match self.ask_over(sender, ask).await {
                // The server has closed it meanwhile, which is no failure.
                Err(SendError::Broken(_)) => {}
                heard => return heard,
            }
        }
        let sender = self
            .connector
            .connect()
            .await
            .map_err(SendError::Unreachable)?;
        self.ask_over(sender, ask).await
    }

    async fn ask_over(&self, mut sender: Sender, ask: &ApiRequest) -> SendResult<Bytes> {
        let response = self.send(&mut sender, ask).await?;
        let status = response.status();
        let most = if status.is_success() {
            ANSWER_MOST
        } else {
            REFUSAL_MOST
        };
        let body = self.collect(response.into_body(), most).await?;
        if !status.is_success() {
            return Err(self.refused(status, &body));
        }
        let mut idle = self.idle();
        if idle.len() < IDLE_MOST {
            idle.push(sender);
        }
        Ok(body)
    }

    /// Over a connection of its own.
    async fn stream(&self, ask: &ApiRequest) -> SendResult<Pieces> {
        let mut sender = self
            .connector
            .connect()
            .await
            .map_err(SendError::Unreachable)?;
        let response = self.send(&mut sender, ask).await?;
        let status = response.status();
        if !status.is_success() {
            let body = self.collect(response.into_body(), REFUSAL_MOST).await?;
            return Err(self.refused(status, &body));
        }
        // The connection lives as long as its sender.
        let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
        let state = (self.address(), response.into_body(), sender);
        let pieces = futures_util::stream::try_unfold(state, |(address, mut body, sender)| async {
            let piece = next(&address, &mut body).await?;
            Ok(piece.map(|piece| (piece, (address, body, sender))))
        });
        Ok(Pieces::new(content_type, pieces))
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> SendError {
        let error = refusal::read(&self.address(), status, body);
        SendError::Refused(self.credential.explain(error))
    }

    async fn send(&self, sender: &mut Sender, ask: &ApiRequest) -> SendResult<Response<Incoming>> {
        let request = self.request(ask).map_err(SendError::Refused)?;
        let sent = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        match tokio::time::timeout(ask.patience, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_parse() => {
                let error = refusal::garbled(&self.address(), error);
                Err(SendError::Refused(
                    match self.connector.address().over(Scheme::Tls) {
                        Some(other) => error.hint(format!("if it speaks TLS: try `{other}`")),
                        None => error,
                    },
                ))
            }
            Ok(Err(error)) => Err(broken(&self.address(), &error)),
            Err(_) => {
                let seconds = ask.patience.as_secs_f32();
                let address = self.address();
                Err(SendError::Broken(unanswered(
                    &address,
                    &format!("within {seconds} seconds"),
                )))
            }
        }
    }

    fn request(&self, ask: &ApiRequest) -> Result<Request<Full<Bytes>>> {
        let mut builder = Request::builder()
            .method(&ask.method)
            .uri(ask.target.to_string())
            .header(header::HOST, self.connector.address().authority())
            .header(
                header::USER_AGENT,
                concat!("glovebox/", env!("CARGO_PKG_VERSION")),
            )
            .header(header::ACCEPT, ask.accept);
        if let Some(token) = self.credential.header() {
            builder = builder.header(header::AUTHORIZATION, token);
        }
        if let Some(key) = &ask.key {
            builder = builder.header(KEY, key);
        }
        for (name, value) in &ask.headers {
            builder = builder.header(name, value);
        }
        let (kind, body) = match &ask.content {
            Content::Nothing => (None, Bytes::new()),
            Content::Json(bytes) => (Some("application/json"), bytes.clone()),
            Content::Bytes(bytes) => (Some("application/octet-stream"), bytes.clone()),
            Content::File(_) | Content::Directory(_) => {
                return Err(invalid("a server cannot see a file of this machine"));
            }
        };
        if let Some(kind) = kind {
            builder = builder.header(header::CONTENT_TYPE, kind);
        }
        builder.body(Full::new(body)).map_err(|error| {
            Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "this cannot be sent to a server",
            )
            .caused_by(error)
        })
    }

    async fn collect(&self, mut body: Incoming, most: usize) -> SendResult<Bytes> {
        let mut all = Vec::new();
        while let Some(piece) = next(&self.address(), &mut body).await? {
            if all.len() + piece.len() > most {
                let why = format!("more than {} MiB in one answer", most >> 20);
                return Err(SendError::Refused(refusal::garbled(&self.address(), why)));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}

impl Transport for Http {
    fn address(&self) -> String {
        self.connector.address().to_string()
    }

    fn open<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, SendResult<Pieces>> {
        Box::pin(self.stream(request))
    }

    fn ask<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, SendResult<Bytes>> {
        Box::pin(self.whole(request))
    }
}

/// All of a file, up to what a server takes.
pub(crate) fn whole_file(file: FileContent) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| invalid("cannot read what is to be sent").caused_by(error))?;
    match bytes.len() as u64 > FILE_BYTES {
        true => Err(Error::new(
            Code::PayloadTooLarge,
            Stage::Parse,
            "this is more than the 64 MiB that a server takes at once",
        )
        .hint("send it in parts, or compressed")),
        false => Ok(bytes.into()),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

async fn next(address: &str, body: &mut Incoming) -> SendResult<Option<Bytes>> {
    loop {
        match tokio::time::timeout(PAUSE, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
            Ok(Some(Err(error))) => return Err(broken(address, &error)),
            Err(_) => {
                let why = format!("for {} seconds", PAUSE.as_secs());
                return Err(SendError::Broken(unanswered(address, &why)));
            }
        }
    }
}

fn broken(address: &str, error: &hyper::Error) -> SendError {
    let cause = std::error::Error::source(error).map_or(error.to_string(), ToString::to_string);
    SendError::Broken(
        Error::new(
            Code::StoreUnavailable,
            Stage::Admit,
            format!("the connection to the server `{address}` broke"),
        )
        .caused_by(cause)
        .hint("try again; nothing that was accepted is lost: `glovebox ps` lists what runs"),
    )
}

fn unanswered(address: &str, how_long: &str) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Admit,
        format!("the server `{address}` said nothing {how_long}"),
    )
    .hint("try again; nothing that was accepted is lost: `glovebox ps` lists what runs")
}
