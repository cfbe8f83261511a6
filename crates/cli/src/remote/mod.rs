//! A server, as this command sees it: questions and answers, each bounded in time. Blocking on the
//! outside; a small runtime inside.

mod address;
mod client;
mod connect;
mod credential;
mod follow;
mod happening;
mod neighbour;
mod refusal;
mod request;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod watch;

use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Exec, ExecId, Result, Stage};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Runtime;

pub(crate) use address::Address;
pub(crate) use credential::Credential;
pub(crate) use follow::{Audience, Backoff, Parting};
pub(crate) use request::{BODY_MOST, ExecRequest, Overrides, ProgramSpec, SkillRequest};
pub(crate) use target::Target;
pub(crate) use watch::Told;

use client::{Ask, Client, Heard, LONG, Payload, SOON, Trouble};
use connect::Connector;

/// How often something that may have been heard is said again.
const ATTEMPTS: u32 = 4;

#[derive(Debug)]
pub(crate) struct Remote {
    runtime: Runtime,
    client: Client,
    backoff: Backoff,
}

impl Remote {
    pub(crate) fn new(
        address: Address,
        authorities: Option<&Path>,
        credential: Credential,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| {
                Error::new(Code::Internal, Stage::Parse, "cannot start a runtime").caused_by(error)
            })?;
        let connector = Connector::new(address, authorities)?;
        Ok(Self {
            runtime,
            client: Client::new(connector, credential),
            backoff: Backoff::default(),
        })
    }

    /// As it was named.
    pub(crate) fn address(&self) -> String {
        self.client.address()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.answer(&Ask::get(target))?)
    }

    /// For an answer that takes long.
    pub(crate) fn get_slowly<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        let ask = Ask {
            patience: LONG,
            ..Ask::get(target)
        };
        self.read(&self.answer(&ask)?)
    }

    /// As it is, whatever it is.
    pub(crate) fn bytes(&self, target: Target) -> Result<Bytes> {
        let ask = Ask {
            accept: "*/*",
            ..Ask::get(target)
        };
        self.answer(&ask)
    }

    /// Done once, however often it must be said.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T> {
        self.read(&self.change(Method::POST, target, Some(json(body)?), SOON)?)
    }

    /// For work that takes long there.
    pub(crate) fn post_slowly<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T> {
        self.read(&self.change(Method::POST, target, Some(json(body)?), LONG)?)
    }

    /// The same without a body.
    pub(crate) fn post_nothing<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::POST, target, None, LONG)?)
    }

    pub(crate) fn patch<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T> {
        self.read(&self.change(Method::PATCH, target, Some(json(body)?), SOON)?)
    }

    pub(crate) fn put_json<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T> {
        self.read(&self.change(Method::PUT, target, Some(json(body)?), SOON)?)
    }

    pub(crate) fn delete<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::DELETE, target, None, SOON)?)
    }

    pub(crate) fn delete_slowly<T: DeserializeOwned>(&self, target: Target) -> Result<T> {
        self.read(&self.change(Method::DELETE, target, None, LONG)?)
    }

    /// For what is answered with nothing.
    pub(crate) fn delete_quietly(&self, target: Target) -> Result<()> {
        self.change(Method::DELETE, target, None, LONG).map(drop)
    }

    /// Bytes as they are.
    pub(crate) fn put<T: DeserializeOwned>(
        &self,
        target: Target,
        bytes: Vec<u8>,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<T> {
        let ask = Ask {
            method: Method::PUT,
            body: Some(Payload {
                bytes: bytes.into(),
                kind: "application/octet-stream",
            }),
            headers,
            key: Some(key()?),
            patience: LONG,
            ..Ask::get(target)
        };
        self.read(&self.runtime.block_on(self.insist(&ask))?)
    }

    /// A new exec. Who does not want to wait until the server answers need not: whether it was
    /// taken on is not known then.
    pub(crate) fn submit(&self, request: &ExecRequest, presses: &OwnedFd) -> Result<Exec> {
        self.begin(Target::new("/v1/execs"), request, presses)
    }

    /// The same for a call of a skill.
    pub(crate) fn invoke<T: DeserializeOwned>(
        &self,
        id: &str,
        request: &SkillRequest,
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
        let ask = Ask {
            method: Method::POST,
            body: Some(json(request)?),
            key: Some(key()?),
            ..Ask::get(target)
        };
        let heard = self.runtime.block_on(async {
            let presses = presses.try_clone().and_then(Receiver::from_owned_fd);
            let presses = presses.map_err(|error| {
                Error::new(Code::Internal, Stage::Parse, "cannot listen for signals")
                    .caused_by(error)
            })?;
            tokio::select! {
                heard = self.insist(&ask) => Ok(heard?),
                // Left to be read: should the answer be there at once, it counts then.
                _ = presses.readable() => Err(Error::new(
                    Code::Canceled,
                    Stage::Admit,
                    "canceled before the server had answered",
                )
                .hint("it may have been taken on all the same: `glovebox ps` lists what runs")),
            }
        });
        self.read(&heard?)
    }

    /// For as long as a server that was there before may need to come back.
    pub(crate) fn insistently<T>(&self, ask: impl Fn() -> Result<T>) -> Result<T> {
        let since = Instant::now();
        let mut pause = self.backoff.first;
        loop {
            let error = match ask() {
                Err(error) if error.retry.allowed => error,
                heard => return heard,
            };
            if since.elapsed() + pause > self.backoff.total {
                return Err(error);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(self.backoff.most);
        }
    }

    pub(crate) fn cancel(&self, exec: &ExecId) -> Result<Exec> {
        let heard = self
            .runtime
            .block_on(follow::cancel(&self.client, exec, SOON));
        self.read(&heard?)
    }

    /// Piece by piece.
    pub(crate) fn copy(&self, target: Target, out: &mut dyn Write) -> Result<()> {
        self.copy_with(target, Vec::new(), out)
    }

    pub(crate) fn copy_with(
        &self,
        target: Target,
        headers: Vec<(HeaderName, HeaderValue)>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let ask = Ask {
            accept: "*/*",
            headers,
            patience: LONG,
            ..Ask::get(target)
        };
        self.runtime.block_on(async {
            let mut pieces = self.client.open(&ask).await?;
            while let Some(piece) = pieces.next().await? {
                out.write_all(&piece).map_err(|error| {
                    let code = match error.kind() {
                        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
                        _ => Code::Internal,
                    };
                    Error::new(code, Stage::Close, "cannot write what the server sent")
                        .caused_by(error)
                })?;
            }
            Ok(())
        })
    }

    pub(crate) fn follow(&self, exec: &ExecId, audience: Audience<'_>) -> Result<Parting> {
        let following = follow::follow(&self.client, exec, audience, self.backoff);
        self.runtime.block_on(following)
    }

    /// What happens in a workspace, until the listener wants no more; a connection that breaks is
    /// made again.
    pub(crate) fn watch(
        &self,
        target: &Target,
        listener: &mut dyn FnMut(Told) -> Result<bool>,
    ) -> Result<()> {
        let watching = watch::watch(&self.client, target, listener, self.backoff);
        self.runtime.block_on(watching)
    }

    fn answer(&self, ask: &Ask) -> Result<Bytes> {
        Ok(self.runtime.block_on(self.client.ask(ask))?)
    }

    fn change(
        &self,
        method: Method,
        target: Target,
        body: Option<Payload>,
        patience: Duration,
    ) -> Result<Bytes> {
        let ask = Ask {
            method,
            body,
            key: Some(key()?),
            patience,
            ..Ask::get(target)
        };
        Ok(self.runtime.block_on(self.insist(&ask))?)
    }

    /// Until it is known whether the server heard it. With its key it is done once.
    async fn insist(&self, ask: &Ask) -> Heard<Bytes> {
        let mut pause = self.backoff.first;
        let mut heard = self.client.ask(ask).await;
        if matches!(heard, Err(Trouble::Unreachable(_))) {
            return heard;
        }
        for _ in 1..ATTEMPTS {
            let wait = match &heard {
                Err(Trouble::Broken(_) | Trouble::Unreachable(_)) => pause,
                // Our own first try is still at work there.
                Err(Trouble::Said(error)) if error.code == Code::Busy => error
                    .retry
                    .after_ms
                    .map_or(pause, |ms| Duration::from_millis(ms).min(self.backoff.most)),
                _ => break,
            };
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(self.backoff.most);
            heard = self.client.ask(ask).await;
        }
        heard
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        serde_json::from_slice(body)
            .map_err(|error| refusal::garbled(&self.client.address(), error))
    }
}

fn json(body: &impl Serialize) -> Result<Payload> {
    let bytes = serde_json::to_vec(body).map_err(|error| {
        Error::new(Code::Internal, Stage::Parse, "cannot write JSON").caused_by(error)
    })?;
    Ok(Payload {
        bytes: bytes.into(),
        kind: "application/json",
    })
}

/// 128 random bits: no two requests have the same.
fn key() -> Result<HeaderValue> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        Error::new(Code::Internal, Stage::Parse, "no random numbers").caused_by(error)
    })?;
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(digits).map_err(|error| {
        Error::new(Code::Internal, Stage::Parse, "cannot make a key").caused_by(error)
    })
}
