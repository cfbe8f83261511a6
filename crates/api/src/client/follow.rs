//! Following an exec to its end, over as many connections as it takes. Events are numbered, so
//! that nothing is lost or shown twice when one breaks.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use glovebox_model::{Error, ExecId, Result, Stream};
use tokio::net::unix::pipe::Receiver;

use super::event::{self, Event};
use super::refusal;
use super::sse::Parser;
use super::transport::{ApiRequest, Pieces, SOON, SendError, SendResult, Transport};
use crate::Target;

/// How a broken connection is made again.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub most: Duration,
    /// With nothing new for so long, we give up.
    pub total: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(5),
            total: Duration::from_secs(60),
        }
    }
}

/// Receives output as it comes.
pub trait LiveOutput {
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// While there is none, nothing more is read from the server.
    fn has_room(&self) -> bool {
        true
    }
}

/// The person, or the program, in front of a run elsewhere.
#[expect(
    missing_debug_implementations,
    reason = "an output has nothing to show"
)]
pub struct Audience<'a> {
    pub live: &'a mut dyn LiveOutput,
    /// Told each time that it waits, with the number of those before it.
    pub waits: &'a mut dyn FnMut(Option<u64>),
    /// A byte for each time somebody wants it to end.
    pub presses: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    Ended,
    /// We were told to go; it goes on without us.
    Left,
}

/// How often the end was asked for before we go without it: once asks, a second time kills.
const PRESSES_MOST: usize = 3;
/// Until the sink has room again.
const MOMENT: Duration = Duration::from_millis(5);
const CANCEL: Duration = Duration::from_secs(5);

pub(crate) async fn follow(
    client: &dyn Transport,
    exec: &ExecId,
    audience: Audience<'_>,
    backoff: Backoff,
) -> Result<Parting> {
    let presses = Receiver::from_owned_fd(audience.presses)
        .map_err(|error| refusal::garbled(&client.address(), error))?;
    let mut follower = Follower {
        client,
        exec,
        live: audience.live,
        waits: audience.waits,
        presses,
        pressed: 0,
        after: 0,
    };
    follower.run(backoff).await
}

struct Follower<'a> {
    client: &'a dyn Transport,
    exec: &'a ExecId,
    live: &'a mut dyn LiveOutput,
    waits: &'a mut dyn FnMut(Option<u64>),
    presses: Receiver,
    pressed: usize,
    /// The number of the last event that was taken.
    after: u64,
}

impl Follower<'_> {
    async fn run(&mut self, backoff: Backoff) -> Result<Parting> {
        let mut pause = backoff.first;
        let mut progress = Instant::now();
        loop {
            let before = self.after;
            let trouble = match self.listen().await {
                Ok(parting) => return Ok(parting),
                // Its words are final: no token, no such exec, kept no longer.
                Err(SendError::Refused(error)) if !error.retry.allowed => {
                    return Err(error.of_exec(self.exec.clone()));
                }
                Err(trouble) => trouble,
            };
            if self.after > before {
                pause = backoff.first;
                progress = Instant::now();
            }
            if progress.elapsed() + pause > backoff.total {
                return Err(self.given_up(trouble));
            }
            if self.wait(pause).await? == Some(Parting::Left) {
                return Ok(Parting::Left);
            }
            pause = (pause * 2).min(backoff.most);
        }
    }

    /// Over one connection, until it ends or breaks.
    async fn listen(&mut self) -> SendResult<Parting> {
        let target = Target::new("/v1/execs")
            .segment(self.exec.as_str())
            .segment("events");
        let ask = ApiRequest {
            accept: "text/event-stream",
            ..ApiRequest::get(target.query("after", self.after))
        };
        let mut pieces = self.client.open(&ask).await?;
        let mut parser = Parser::default();
        loop {
            let Some(piece) = self.next(&mut pieces).await? else {
                return Ok(Parting::Left);
            };
            let garbled = |why| SendError::Broken(refusal::garbled(&self.client.address(), why));
            for raw in parser.push(&piece).map_err(|error| garbled(error.0))? {
                let (seq, event) = event::read(&raw).map_err(|error| garbled(error.0))?;
                if seq <= self.after {
                    continue;
                }
                if seq != self.after + 1 {
                    // What lies between is still there: ask for it.
                    return Err(garbled("an event is missing"));
                }
                self.after = seq;
                if self.take(event) {
                    return Ok(Parting::Ended);
                }
            }
        }
    }

    /// Whether that was the end.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::State {
                status,
                queue_position,
            } => {
                if status == glovebox_model::Status::Queued {
                    (self.waits)(queue_position);
                }
                status.is_final()
            }
            Event::Output { stream, bytes } => {
                self.live.output(stream, &bytes);
                false
            }
            Event::Other => false,
        }
    }

    /// The next piece; `None` when we shall go.
    async fn next(&mut self, pieces: &mut Pieces) -> SendResult<Option<hyper::body::Bytes>> {
        loop {
            if !self.live.has_room() {
                match self.wait(MOMENT).await.map_err(SendError::Refused)? {
                    Some(Parting::Left) => return Ok(None),
                    Some(Parting::Ended) | None => continue,
                }
            }
            tokio::select! {
                piece = pieces.next() => {
                    let cut = || SendError::Broken(refusal::garbled(
                        &self.client.address(),
                        "the events ended before the exec did",
                    ));
                    return piece?.map(Some).ok_or_else(cut);
                }
                ready = self.presses.readable() => {
                    if ready.is_err() || self.pressed().await == Some(Parting::Left) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// For so long, unless somebody wants it to end.
    async fn wait(&mut self, pause: Duration) -> Result<Option<Parting>> {
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(None),
            ready = self.presses.readable() => match ready {
                Ok(()) => Ok(self.pressed().await),
                Err(_) => Ok(Some(Parting::Left)),
            },
        }
    }

    async fn pressed(&mut self) -> Option<Parting> {
        let mut bytes = [0; 16];
        let count = match self.presses.try_read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
            Err(_) => return Some(Parting::Left),
        };
        for _ in 0..count {
            self.pressed += 1;
            if self.pressed >= PRESSES_MOST {
                return Some(Parting::Left);
            }
            // Who asked twice and cannot be heard need not stay.
            if cancel(self.client, self.exec, CANCEL).await.is_err() && self.pressed > 1 {
                return Some(Parting::Left);
            }
        }
        None
    }

    fn given_up(&self, trouble: SendError) -> Error {
        let id = self.exec;
        let mut error = Error::from(trouble).of_exec(id.clone());
        error.hints = vec![format!(
            "it may go on without us: `glovebox show {id}` says so when the server is back"
        )];
        error
    }
}

/// Asks for the end of an exec; its record as it is now.
pub(crate) async fn cancel(
    client: &dyn Transport,
    exec: &ExecId,
    patience: Duration,
) -> SendResult<hyper::body::Bytes> {
    let target = Target::new("/v1/execs")
        .segment(exec.as_str())
        .segment("cancel");
    let ask = ApiRequest {
        method: hyper::Method::POST,
        key: Some(super::key().map_err(SendError::Refused)?),
        patience: patience.min(SOON),
        ..ApiRequest::get(target)
    };
    client.ask(&ask).await
}
