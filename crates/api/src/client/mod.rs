//! A client of the API: requests and answers, each bounded in time. Blocking on the outside; a
//! runtime of one thread inside.

mod address;
mod connect;
mod credential;
mod event;
mod follow;
mod http;
mod local_server;
mod refusal;
mod sse;
#[cfg(test)]
mod tests;
mod transport;
mod watch;

use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Exec, ExecId, Result, Stage};
use hyper::Method;
use hyper::header::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Runtime;

pub use address::{Address, Scheme};
pub use credential::Credential;
pub use follow::{Audience, Backoff, LiveOutput, Parting};
pub use hyper::body::Bytes;
pub use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH, RANGE};
pub use transport::{
    ApiRequest, Content, FileContent, LONG, Pieces, SOON, SendError, SendResult, Transport,
};
pub use watch::WatchEvent;

use connect::Connector;
use http::Http;

use crate::{ExecRequest, SkillCallRequest, Target};

/// How often something that the server may have received is sent again.
const ATTEMPTS: u32 = 4;

#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    transport: Box<dyn Transport>,
    backoff: Backoff,
    /// A connection may break between a request and its answer.
    is_remote: bool,
}

impl Client {
    /// Of a server.
    pub fn connect(
        address: Address,
        authorities: Option<&Path>,
        credential: Credential,
    ) -> Result<Self> {
        let connector = Connector::new(address, authorities)?;
        Self::over(Box::new(Http::new(connector, credential)), true)
    }

    /// Of the API in this process.
    pub fn in_process(transport: Box<dyn Transport>) -> Result<Self> {
        Self::over(transport, false)
    }

    fn over(transport: Box<dyn Transport>, is_remote: bool) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| internal("cannot start a runtime").caused_by(error))?;
        Ok(Self {
            runtime,
            transport,
            backoff: Backoff::default(),
            is_remote,
        })
    }

    /// Whether a server is asked, and not this process itself.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// As it was named.
    pub fn address(&self) -> String {
        self.transport.address()
    }

    pub fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.answer(&ApiRequest::get(target))?)
    }

    /// For an answer that takes long.
    pub fn get_slowly<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        let request = ApiRequest {
            patience: LONG,
            ..ApiRequest::get(target)
        };
        self.read(&self.answer(&request)?)
    }

    /// As it is, whatever it is.
    pub fn bytes(&self, target: Target) -> Result<Bytes> {
        let request = ApiRequest {
            accept: "*/*",
            ..ApiRequest::get(target)
        };
        self.answer(&request)
    }

    /// Done once, however often it must be sent.
    pub fn post<T: DeserializeOwned>(&self, target: Target, body: &impl Serialize) -> Result<T> {
        self.read(&self.change(Method::POST, target, json(body)?, SOON)?)
    }

    /// For work that takes long there.
    pub fn post_slowly<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T> {
        self.read(&self.change(Method::POST, target, json(body)?, LONG)?)
    }

    /// The same, tried again as long as that may help and `goes_on` says so. It is one request, however
    /// often it is sent.
    pub fn post_insistently<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
        goes_on: impl Fn() -> bool,
    ) -> Result<T> {
        let request = ApiRequest {
            method: Method::POST,
            content: json(body)?,
            key: self.key()?,
            ..ApiRequest::get(target)
        };
        let mut pause = self.backoff.first;
        loop {
            let error: Error = match self.runtime.block_on(self.insist(&request)) {
                Ok(answer) => return self.read(&answer),
                Err(error) => error.into(),
            };
            if !error.retry.allowed || !goes_on() {
                return Err(error);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(self.backoff.most);
        }
    }

    /// The same without a body.
    pub fn post_nothing<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::POST, target, Content::Nothing, LONG)?)
    }

    /// The same with a directory of this machine.
    pub fn post_directory<T: DeserializeOwned>(&self, target: Target, dir: PathBuf) -> Result<T> {
        self.read(&self.change(Method::POST, target, Content::Directory(dir), LONG)?)
    }

    pub fn patch<T: DeserializeOwned>(&self, target: Target, body: &impl Serialize) -> Result<T> {
        self.read(&self.change(Method::PATCH, target, json(body)?, SOON)?)
    }

    pub fn put<T: DeserializeOwned>(&self, target: Target, body: &impl Serialize) -> Result<T> {
        self.read(&self.change(Method::PUT, target, json(body)?, SOON)?)
    }

    pub fn delete<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::DELETE, target, Content::Nothing, SOON)?)
    }

    pub fn delete_slowly<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::DELETE, target, Content::Nothing, LONG)?)
    }

    /// For what is answered with nothing.
    pub fn delete_quietly(&self, target: Target) -> Result<()> {
        self.change(Method::DELETE, target, Content::Nothing, LONG)
            .map(drop)
    }

    /// The bytes of a file as they are.
    pub fn put_file<T: DeserializeOwned>(
        &self,
        target: Target,
        file: FileContent,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<T> {
        // Once: it may be sent several times, and a pipe cannot be read again.
        let content = match self.is_remote {
            true => Content::Bytes(http::whole_file(file)?),
            false => Content::File(file),
        };
        let request = ApiRequest {
            method: Method::PUT,
            content,
            headers,
            key: self.key()?,
            patience: LONG,
            ..ApiRequest::get(target)
        };
        self.read(&self.runtime.block_on(self.insist(&request))?)
    }

    /// A new exec. `presses` ends the wait for the server's answer: whether the exec was taken on
    /// is not known then.
    pub fn submit(&self, request: &ExecRequest, presses: &OwnedFd) -> Result<Exec> {
        self.begin(Target::new("/v1/execs"), request, presses)
    }

    /// The same for a call of a skill.
    pub fn invoke<T: DeserializeOwned>(
        &self,
        id: &str,
        request: &SkillCallRequest,
        presses: &OwnedFd,
    ) -> Result<T> {
        let target = Target::new("/v1/skills").segment(id).segment("invoke");
        self.begin(target, request, presses)
    }

    fn begin<T: DeserializeOwned>(
        &self,
        target: Target,
        request: &impl Serialize,
        presses: &OwnedFd,
    ) -> Result<T> {
        let request = ApiRequest {
            method: Method::POST,
            content: json(request)?,
            key: self.key()?,
            ..ApiRequest::get(target)
        };
        let answer = self.runtime.block_on(async {
            let presses = presses.try_clone().and_then(Receiver::from_owned_fd);
            let presses =
                presses.map_err(|error| internal("cannot listen for signals").caused_by(error))?;
            tokio::select! {
                answer = self.insist(&request) => Ok(answer?),
                // Left to be read: should the answer be there at once, it counts then.
                _ = presses.readable() => Err(Error::new(
                    Code::Canceled,
                    Stage::Admit,
                    "canceled before the server had answered",
                )
                .hint("it may have been taken on all the same: `glovebox ps` lists what runs")),
            }
        });
        self.read(&answer?)
    }

    /// For as long as a server that was there before may need to come back.
    pub fn insistently<T>(&self, ask: impl Fn() -> Result<T>) -> Result<T> {
        let since = Instant::now();
        let mut pause = self.backoff.first;
        loop {
            let error = match ask() {
                Err(error) if error.retry.allowed && self.is_remote => error,
                answer => return answer,
            };
            if since.elapsed() + pause > self.backoff.total {
                return Err(error);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(self.backoff.most);
        }
    }

    pub fn cancel(&self, exec: &ExecId) -> Result<Exec> {
        let canceled = follow::cancel(&*self.transport, exec, SOON);
        self.read(&self.runtime.block_on(canceled)?)
    }

    /// The bytes of a file or an archive, piece by piece.
    pub fn copy(&self, target: Target, out: &mut dyn Write) -> Result<()> {
        self.copy_with(target, Vec::new(), out)
    }

    pub fn copy_with(
        &self,
        target: Target,
        headers: Vec<(HeaderName, HeaderValue)>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let request = ApiRequest {
            accept: "*/*",
            headers,
            patience: LONG,
            ..ApiRequest::get(target)
        };
        self.runtime.block_on(async {
            let mut pieces = self.transport.open(&request).await?;
            if pieces.is_json() {
                let message = "this is a directory";
                return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                    .hint("`glovebox file ls` lists one"));
            }
            while let Some(piece) = pieces.next().await? {
                out.write_all(&piece).map_err(|error| {
                    let code = match error.kind() {
                        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
                        _ => Code::Internal,
                    };
                    Error::new(code, Stage::Close, "cannot write the answer").caused_by(error)
                })?;
            }
            Ok(())
        })
    }

    pub fn follow(&self, exec: &ExecId, audience: Audience<'_>) -> Result<Parting> {
        let following = follow::follow(&*self.transport, exec, audience, self.backoff);
        self.runtime.block_on(following)
    }

    /// What happens in a workspace, until the listener returns false; a connection that breaks is
    /// made again.
    pub fn watch(
        &self,
        target: &Target,
        listener: &mut dyn FnMut(WatchEvent) -> Result<bool>,
    ) -> Result<()> {
        let watching = watch::watch(&*self.transport, target, listener, self.backoff);
        self.runtime.block_on(watching)
    }

    fn answer(&self, request: &ApiRequest) -> Result<Bytes> {
        Ok(self.runtime.block_on(self.transport.ask(request))?)
    }

    fn change(
        &self,
        method: Method,
        target: Target,
        content: Content,
        patience: Duration,
    ) -> Result<Bytes> {
        let request = ApiRequest {
            method,
            content,
            key: self.key()?,
            patience,
            ..ApiRequest::get(target)
        };
        Ok(self.runtime.block_on(self.insist(&request))?)
    }

    /// Until it is known whether the server received it. With its key it is done once.
    async fn insist(&self, request: &ApiRequest) -> SendResult<Bytes> {
        let mut pause = self.backoff.first;
        let mut answer = self.transport.ask(request).await;
        if !self.is_remote || matches!(answer, Err(SendError::Unreachable(_))) {
            return answer;
        }
        for _ in 1..ATTEMPTS {
            let wait = match &answer {
                Err(SendError::Broken(_) | SendError::Unreachable(_)) => pause,
                // Our own first try is still at work there.
                Err(SendError::Refused(error)) if error.code == Code::Busy => error
                    .retry
                    .after_ms
                    .map_or(pause, |ms| Duration::from_millis(ms).min(self.backoff.most)),
                _ => break,
            };
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(self.backoff.most);
            answer = self.transport.ask(request).await;
        }
        answer
    }

    /// Nothing is sent twice inside one process, so nothing needs a key there.
    fn key(&self) -> Result<Option<HeaderValue>> {
        self.is_remote.then(key).transpose()
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        serde_json::from_slice(body).map_err(|error| refusal::garbled(&self.address(), error))
    }
}

fn json(body: &impl Serialize) -> Result<Content> {
    let bytes =
        serde_json::to_vec(body).map_err(|error| internal("cannot write JSON").caused_by(error))?;
    Ok(Content::Json(bytes.into()))
}

/// 128 random bits: no two requests have the same.
fn key() -> Result<HeaderValue> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| internal("no random numbers").caused_by(error))?;
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(digits).map_err(|error| internal("cannot make a key").caused_by(error))
}

fn internal(message: &str) -> Error {
    Error::new(Code::Internal, Stage::Parse, message)
}
