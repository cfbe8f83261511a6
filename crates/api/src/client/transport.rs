//! What is sent and how it is answered, whatever carries it.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt};
use glovebox_model::Error;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use super::refusal;
use crate::Target;

/// For an answer that needs no long work.
pub const SOON: Duration = Duration::from_secs(30);
/// For one that may: verifying or writing out a whole ledger.
pub const LONG: Duration = Duration::from_secs(600);
/// A thousand of the largest records fit.
pub(crate) const ANSWER_MOST: usize = 256 << 20;
/// An error is short; who sends more is no server of ours.
pub(crate) const REFUSAL_MOST: usize = 1 << 20;

/// Everything that is asked may be asked again: it reads, or it has a key.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub method: Method,
    pub target: Target,
    pub accept: &'static str,
    pub content: Content,
    /// Beside those that every request has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub key: Option<HeaderValue>,
    pub patience: Duration,
}

/// What a request holds.
#[derive(Debug, Clone)]
pub enum Content {
    Nothing,
    Json(Bytes),
    Bytes(Bytes),
    /// A file that is read as it is needed, and once: only in this process.
    File(FileContent),
    /// A directory of this machine, which only this process can look into.
    Directory(PathBuf),
}

/// A file that is read as it is sent.
#[derive(Clone)]
pub struct FileContent(Arc<Mutex<Box<dyn ReadSeek>>>);

trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

impl FileContent {
    pub fn new(file: impl Read + Seek + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(file))))
    }

    fn locked(&self) -> MutexGuard<'_, Box<dyn ReadSeek>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileContent")
    }
}

impl Read for FileContent {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.locked().read(into)
    }
}

impl Seek for FileContent {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.locked().seek(to)
    }
}

impl ApiRequest {
    pub fn get(target: Target) -> Self {
        Self {
            method: Method::GET,
            target,
            accept: "application/json",
            content: Content::Nothing,
            headers: Vec::new(),
            key: None,
            patience: SOON,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub enum SendError {
    /// Nothing was sent: no server is there.
    Unreachable(Error),
    /// The server may or may not have received it.
    Broken(Error),
    /// The server's own error.
    Refused(Error),
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Unreachable(error)
            | SendError::Broken(error)
            | SendError::Refused(error) => error,
        }
    }
}

pub type SendResult<T> = std::result::Result<T, SendError>;

/// Carries requests to the API: over a connection, or to the server's router in this process.
pub trait Transport: fmt::Debug + Send + Sync {
    /// For messages.
    fn address(&self) -> String;

    /// An answer that is read as it comes.
    fn open<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, SendResult<Pieces>>;

    /// The whole answer.
    fn ask<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, SendResult<Bytes>> {
        Box::pin(async {
            let pieces = self.open(request).await?;
            pieces.collect(&self.address(), ANSWER_MOST).await
        })
    }
}

/// A body in pieces.
pub struct Pieces {
    content_type: Option<HeaderValue>,
    pieces: Pin<Box<dyn Stream<Item = SendResult<Bytes>> + Send>>,
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pieces")
    }
}

impl Pieces {
    pub fn new(
        content_type: Option<HeaderValue>,
        pieces: impl Stream<Item = SendResult<Bytes>> + Send + 'static,
    ) -> Self {
        Self {
            content_type,
            pieces: Box::pin(pieces),
        }
    }

    pub fn is_json(&self) -> bool {
        let text = self.content_type.as_ref().and_then(|it| it.to_str().ok());
        text.is_some_and(|text| text.starts_with("application/json"))
    }

    /// `None` at its proper end.
    pub async fn next(&mut self) -> SendResult<Option<Bytes>> {
        self.pieces.next().await.transpose()
    }

    /// All of it, up to so many bytes.
    pub async fn collect(mut self, address: &str, most: usize) -> SendResult<Bytes> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            if all.len() + piece.len() > most {
                let why = format!("more than {} MiB in one answer", most >> 20);
                return Err(SendError::Refused(refusal::garbled(address, why)));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}
