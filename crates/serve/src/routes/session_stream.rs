//! A session's output as it comes.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use glovebox_engine::{Seen, SessionRead};
use glovebox_model::Exec;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use super::Path;
use super::sessions::{PIECE, find_session, read};
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use crate::per_space_limit::Place;
use glovebox_api::SessionOutput;

/// Pieces that wait for a client that reads slowly; what it misses then it reads from where it was.
const AHEAD: usize = 1;
/// How long a keeper is waited for at a time: as soon is it seen that the server closes.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// The first byte of the standard output, or of what a terminal shows. A reconnecting
    /// `EventSource` says the same in `Last-Event-ID`.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    stdout: Option<u64>,
    /// The first byte of the standard error.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    stderr: Option<u64>,
}

impl From {
    pub(super) fn offsets(&self) -> (u64, u64) {
        (self.stdout.unwrap_or(0), self.stderr.unwrap_or(0))
    }
}

/// One event of the stream.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "only described; events are written as they are read"
)]
pub(super) struct SessionEvent {
    /// Where to go on: the offsets of both streams, with `-` between them.
    #[schema(pattern = "^[0-9]+-[0-9]+$")]
    id: String,
    event: SessionEventName,
    /// JSON. `output`: `stream`, and a piece of it with `offset`, `next`, `content` and `encoding`.
    /// `end`: the session as it ended.
    data: String,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
enum SessionEventName {
    Output,
    End,
}

/// Follow a session
///
/// Server-sent events: `output`, and at the end `end`. A client that reads slowly finds a larger
/// `offset` than the `next` before where it missed something. `GET /v1/sessions/{id}/ws` is the same
/// as a WebSocket, on which it can be typed too.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/stream", operation_id = "stream_session", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id, or its client id."),
        From,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}-[0-9]{1,15}$",
            description = "The id of the last event that was received: it counts more than the parameters."),
    ),
    responses((status = 200, description = "Its output.",
        content_type = "text/event-stream", body = SessionEvent)),
)]
pub(super) async fn stream(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Answer<Response> {
    let offsets = last_event_id(&headers)?.unwrap_or_else(|| from.offsets());
    let exec = find_session(&app, &caller, &id).await?;
    let place = app.viewers().enter(caller.space())?;
    let receive = pieces(app, caller, exec, offsets, place).await?;
    let pieces = futures_util::stream::unfold(receive, |mut receive| async {
        let piece = receive.recv().await?.as_sse();
        Some((Ok::<_, std::convert::Infallible>(piece), receive))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn last_event_id(headers: &HeaderMap) -> Answer<Option<(u64, u64)>> {
    let mut given = headers.get_all("last-event-id").iter();
    // An empty one is that of a client which has received nothing yet.
    let Some(first) = given.next().filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let number = |text: &str| {
        let is_plain = (1..=15).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let both = first.to_str().ok().and_then(|it| it.split_once('-'));
    let both = both.and_then(|(out, err)| number(out).zip(number(err)));
    match (both, given.next()) {
        (Some(both), None) => Ok(Some(both)),
        (_, _) => Err(Failure::invalid(
            "`Last-Event-ID` must be the id of an event",
        )),
    }
}

/// What is passed on at once.
#[derive(Debug)]
pub(super) enum Piece {
    Events(Vec<Happened>),
    /// Nothing happened for a while.
    Quiet,
}

/// One of them, and where to go on after it.
#[derive(Debug)]
pub(super) struct Happened {
    id: String,
    pub(super) name: &'static str,
    pub(super) data: Value,
}

impl Piece {
    fn as_sse(&self) -> Bytes {
        let Self::Events(events) = self else {
            return Bytes::from_static(b": still here\n\n");
        };
        let mut text = String::new();
        for Happened { id, name, data } in events {
            text.push_str(&format!("id: {id}\nevent: {name}\ndata: {data}\n\n"));
        }
        Bytes::from(text)
    }

    fn of(output: SessionOutput) -> Option<Self> {
        let SessionOutput {
            session,
            stdout,
            stderr,
            complete,
            retry_after_ms: _,
        } = output;
        // Who is cut off after the first of two has not seen the second.
        let half = format!("{}-{}", stdout.next, stderr.offset);
        let whole = format!("{}-{}", stdout.next, stderr.next);
        let mut events = Vec::new();
        for (id, stream, piece) in [(half, "stdout", stdout), (whole.clone(), "stderr", stderr)] {
            if piece.content.is_empty() {
                continue;
            }
            let mut data = json!(piece);
            data["stream"] = json!(stream);
            let name = "output";
            events.push(Happened { id, name, data });
        }
        if complete {
            let (name, data) = ("end", json!(session));
            let id = whole;
            events.push(Happened { id, name, data });
        }
        (!events.is_empty()).then_some(Self::Events(events))
    }
}

/// Everything from these offsets on, until the end. The first is read before this returns: its failure
/// can still be an answer.
pub(super) async fn pieces(
    app: App,
    caller: Caller,
    exec: Seen<Exec>,
    offsets: (u64, u64),
    place: Place,
) -> Answer<mpsc::Receiver<Piece>> {
    let first = read(&app, exec.clone(), since(offsets, Duration::ZERO)).await?;
    let (send, receive) = mpsc::channel(AHEAD);
    let follower = Follower {
        app,
        caller,
        exec,
        send,
        _place: place,
    };
    tokio::spawn(follower.follow(first));
    Ok(receive)
}

fn since((stdout, stderr): (u64, u64), wait: Duration) -> SessionRead {
    SessionRead {
        stdout,
        stderr,
        most: PIECE,
        wait,
    }
}

struct Follower {
    app: App,
    caller: Caller,
    exec: Seen<Exec>,
    send: mpsc::Sender<Piece>,
    _place: Place,
}

impl Follower {
    /// Until the end of the session, of the token, of the server or of the client.
    async fn follow(self, mut output: SessionOutput) {
        let times = self.app.times();
        let (mut spoke, mut checked) = (Instant::now(), Instant::now());
        loop {
            let (offsets, complete) = ((output.stdout.next, output.stderr.next), output.complete);
            let piece = match Piece::of(output) {
                None if spoke.elapsed() >= times.keep_alive => Some(Piece::Quiet),
                piece => piece,
            };
            if let Some(piece) = piece {
                spoke = Instant::now();
                if self.send.send(piece).await.is_err() {
                    return;
                }
            }
            if complete || self.app.dispatcher().is_closed() {
                return;
            }
            if checked.elapsed() >= times.recheck {
                checked = Instant::now();
                let auth = self.app.auth();
                if !auth.is_still_good(&self.app, &self.caller).await {
                    return;
                }
            }
            let asked = Instant::now();
            let next = read(&self.app, self.exec.clone(), since(offsets, LOOK));
            let next = tokio::select! {
                next = next => next,
                () = self.send.closed() => return,
            };
            // Where too many wait the keeper answers at once.
            if next.as_ref().is_ok_and(|it| it.has_nothing_since(offsets)) {
                let rest = LOOK.saturating_sub(asked.elapsed());
                tokio::select! {
                    () = tokio::time::sleep(rest) => {}
                    () = self.send.closed() => return,
                }
            }
            output = match next {
                Ok(output) => output,
                // A client that comes back is told why.
                Err(_) => return,
            };
        }
    }
}
