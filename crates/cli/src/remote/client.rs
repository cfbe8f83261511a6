//! One request after another over one connection, each with an end in time.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::address::Transport;
use super::connect::{Connector, Sender};
use super::credential::Credential;
use super::refusal;
use super::target::Target;

/// For an answer that needs no long work.
pub(super) const SOON: Duration = Duration::from_secs(30);
/// For one that may: verifying or writing out a whole ledger.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// Between two pieces of an answer. A stream of events says something more often than that.
pub(super) const PAUSE: Duration = Duration::from_secs(60);
/// A thousand of the largest records fit.
const ANSWER_MOST: usize = 256 << 20;
/// An error is short; who sends more is no server of ours.
const REFUSAL_MOST: usize = 1 << 20;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Everything that is asked may be asked again: it reads, or it has a key.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) accept: &'static str,
    pub(super) body: Option<Payload>,
    /// Beside those that every request has.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) key: Option<HeaderValue>,
    pub(super) patience: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Payload {
    pub(super) bytes: Bytes,
    pub(super) kind: &'static str,
}

impl Ask {
    pub(super) fn get(target: Target) -> Self {
        Self {
            method: Method::GET,
            target,
            accept: "application/json",
            body: None,
            headers: Vec::new(),
            key: None,
            patience: SOON,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// Nobody is there; nothing was sent.
    Unreachable(Error),
    /// The server may or may not have heard us.
    Broken(Error),
    /// The server's own words.
    Said(Error),
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unreachable(error) | Trouble::Broken(error) | Trouble::Said(error) => error,
        }
    }
}

pub(super) type Heard<T> = std::result::Result<T, Trouble>;

pub(super) struct Client {
    connector: Connector,
    credential: Credential,
    /// A connection whose last answer was read to its end.
    idle: Mutex<Option<Sender>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(connector: Connector, credential: Credential) -> Self {
        Self {
            connector,
            credential,
            idle: Mutex::new(None),
        }
    }

    pub(super) fn address(&self) -> String {
        self.connector.address().to_string()
    }

    /// The whole answer to something that may be asked again.
    pub(super) async fn ask(&self, ask: &Ask) -> Heard<Bytes> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(sender) = idle.filter(|it| !it.is_closed()) {
            match self.ask_over(sender, ask).await {
                // The server has closed it meanwhile, which is no failure.
                Err(Trouble::Broken(_)) => {}
                heard => return heard,
            }
        }
        let sender = self
            .connector
            .connect()
            .await
            .map_err(Trouble::Unreachable)?;
        self.ask_over(sender, ask).await
    }

    async fn ask_over(&self, mut sender: Sender, ask: &Ask) -> Heard<Bytes> {
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
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        Ok(body)
    }

    /// An answer that is read as it comes, over a connection of its own.
    pub(super) async fn open(&self, ask: &Ask) -> Heard<Pieces> {
        let mut sender = self
            .connector
            .connect()
            .await
            .map_err(Trouble::Unreachable)?;
        let response = self.send(&mut sender, ask).await?;
        let status = response.status();
        if !status.is_success() {
            let body = self.collect(response.into_body(), REFUSAL_MOST).await?;
            return Err(self.refused(status, &body));
        }
        Ok(Pieces {
            address: self.address(),
            body: response.into_body(),
            _sender: sender,
        })
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> Trouble {
        let error = refusal::read(&self.address(), status, body);
        Trouble::Said(self.credential.explain(error))
    }

    async fn send(&self, sender: &mut Sender, ask: &Ask) -> Heard<Response<Incoming>> {
        let request = self.request(ask).map_err(Trouble::Said)?;
        let sent = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        match tokio::time::timeout(ask.patience, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_parse() => {
                let error = refusal::garbled(&self.address(), error);
                Err(Trouble::Said(
                    match self.connector.address().over(Transport::Tls) {
                        Some(other) => error.hint(format!("if it speaks TLS: try `{other}`")),
                        None => error,
                    },
                ))
            }
            Ok(Err(error)) => Err(broken(&self.address(), &error)),
            Err(_) => {
                let seconds = ask.patience.as_secs_f32();
                let address = self.address();
                Err(Trouble::Broken(unanswered(
                    &address,
                    &format!("within {seconds} seconds"),
                )))
            }
        }
    }

    fn request(&self, ask: &Ask) -> Result<Request<Full<Bytes>>> {
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
        if let Some(body) = &ask.body {
            builder = builder.header(header::CONTENT_TYPE, body.kind);
        }
        let body = ask.body.as_ref().map(|body| body.bytes.clone());
        let body = body.unwrap_or_default();
        builder.body(Full::new(body)).map_err(|error| {
            Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "this cannot be sent to a server",
            )
            .caused_by(error)
        })
    }

    async fn collect(&self, mut body: Incoming, most: usize) -> Heard<Bytes> {
        let mut all = Vec::new();
        while let Some(piece) = next(&self.address(), &mut body).await? {
            if all.len() + piece.len() > most {
                let why = format!("more than {} MiB in one answer", most >> 20);
                return Err(Trouble::Said(refusal::garbled(&self.address(), why)));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}

/// A body in pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    address: String,
    body: Incoming,
    /// The connection lives as long as this.
    _sender: Sender,
}

impl Pieces {
    /// `None` at its proper end.
    pub(super) async fn next(&mut self) -> Heard<Option<Bytes>> {
        next(&self.address, &mut self.body).await
    }
}

async fn next(address: &str, body: &mut Incoming) -> Heard<Option<Bytes>> {
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
                return Err(Trouble::Broken(unanswered(address, &why)));
            }
        }
    }
}

fn broken(address: &str, error: &hyper::Error) -> Trouble {
    let cause = std::error::Error::source(error).map_or(error.to_string(), ToString::to_string);
    Trouble::Broken(
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
