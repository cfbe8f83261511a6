//! What happens to an exec, as it happens or as often as anybody asks again.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use glovebox_engine::{Event, EventKind, EventPage, Progress, Seen};
use glovebox_model::{Deed, Effect, Exec, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use super::Path;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::body::Query;
use crate::failure::{Answer, Failure};

/// Events that are read at once; one holds up to 64 KiB of output.
const AT_ONCE: usize = 16;
/// A page that has passed this is passed on.
const PAGE_BYTES: usize = 256 << 10;
/// About what an event without output takes.
const SMALL_BYTES: usize = 200;
/// Pages that wait for a client that reads slowly; the rest stays on disk.
const AHEAD: usize = 1;
/// How often the store is asked about an exec that another server runs.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// Only events with a larger number. A reconnecting `EventSource` says the same in
    /// `Last-Event-ID`.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    after: Option<u64>,
}

/// One event of the stream.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "only described; events are written as they are read"
)]
pub(super) struct StreamedEvent {
    /// The event's number.
    #[schema(pattern = "^[1-9][0-9]*$")]
    id: String,
    event: EventName,
    /// JSON. `state`: `seq`, `at`, `status`, `queue_position` while it waits, and at the end
    /// `exit_code`, `signal`, `limit_hit` and `receipt`. `output`: `seq`, `at`, `stream`, and
    /// `text`, `base64` or `truncated`. `effect`: `seq`, `at` and `effect`, without differences.
    data: String,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
enum EventName {
    State,
    Output,
    Effect,
}

/// Follow an exec
///
/// Server-sent events with numbers from 1 and without gaps: `state`, `output` and, of a simulation,
/// `effect`; `GET /v1/execs/{id}/ws` is the same as a WebSocket. The last one is the final state, exactly once, with `exit_code`, `signal`, `limit_hit` and `receipt`. Output is
/// `text`, or `base64` where a piece is not UTF-8 by itself. The same events can be read again
/// until 24 hours after the end, also from another server.
#[utoipa::path(
    get, path = "/v1/execs/{id}/events", operation_id = "get_exec_events", tag = "execs",
    params(
        ("id" = String, Path, description = "The exec's id, or its client id."),
        From,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,15}$", min_length = 1, max_length = 15,
            description = "As `after`; the larger of the two counts."),
    ),
    responses((status = 200, description = "The events.",
        content_type = "text/event-stream", body = StreamedEvent)),
)]
pub(super) async fn events(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Answer<Response> {
    follow(app, caller, &id, from, &headers).await
}

pub(super) async fn follow(
    app: App,
    caller: Caller,
    id: &str,
    from: From,
    headers: &HeaderMap,
) -> Answer<Response> {
    let after = from.after.unwrap_or(0).max(last_event_id(headers)?);
    let exec = find(&app, &caller.eyes(), id).await?;
    let live = app.dispatcher().watch(&exec);
    // The first page before the answer begins: its failure can still be an answer.
    let page = read(&app, &caller, &exec, after).await?;
    let receive = begin(app, caller, exec, live, page);
    let pieces = futures_util::stream::unfold(receive, |mut receive| async {
        let piece = receive.recv().await?.as_sse();
        Some((Ok::<_, std::convert::Infallible>(piece), receive))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Tells everything from the first page on, until its end.
fn begin(
    app: App,
    caller: Caller,
    exec: Seen<Exec>,
    live: Option<watch::Receiver<Progress>>,
    page: Page,
) -> mpsc::Receiver<Piece> {
    let (send, receive) = mpsc::channel(AHEAD);
    let teller = Teller {
        app,
        caller,
        exec,
        after: page.after,
        live,
        send,
        spoke: Instant::now(),
    };
    tokio::spawn(teller.tell(page));
    receive
}

/// As `follow`, for whoever sends the pieces on in another form.
pub(super) async fn pieces(
    app: App,
    caller: Caller,
    id: &str,
    from: &From,
) -> Answer<mpsc::Receiver<Piece>> {
    let exec = find(&app, &caller.eyes(), id).await?;
    let live = app.dispatcher().watch(&exec);
    let page = read(&app, &caller, &exec, from.after.unwrap_or(0)).await?;
    Ok(begin(app, caller, exec, live, page))
}

/// What is passed on at once.
#[derive(Debug)]
pub(super) enum Piece {
    Events(Vec<Told>),
    /// Nothing happened for a while.
    Quiet,
}

/// One event as it is told.
#[derive(Debug)]
pub(super) struct Told {
    seq: u64,
    pub(super) name: &'static str,
    pub(super) data: Value,
}

impl Piece {
    fn as_sse(&self) -> Bytes {
        let Self::Events(events) = self else {
            return Bytes::from_static(b": still here\n\n");
        };
        let mut text = String::new();
        for Told { seq, name, data } in events {
            text.push_str(&format!("id: {seq}\nevent: {name}\ndata: {data}\n\n"));
        }
        Bytes::from(text)
    }
}

fn last_event_id(headers: &HeaderMap) -> Answer<u64> {
    let mut given = headers.get_all("last-event-id").iter();
    let Some(first) = given.next() else {
        return Ok(0);
    };
    let number = first
        .to_str()
        .ok()
        .filter(|text| (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()));
    match (number.and_then(|text| text.parse().ok()), given.next()) {
        (Some(number), None) => Ok(number),
        (_, _) => Err(Failure::invalid(
            "`Last-Event-ID` must be the number of an event",
        )),
    }
}

/// Events as they are sent.
struct Page {
    events: Vec<Told>,
    /// Of these, as far as it is known without writing them.
    bytes: usize,
    /// The number of the last.
    after: u64,
    /// Whether there may be more already.
    more: bool,
    /// Nothing comes after the last of these.
    complete: bool,
}

async fn read(app: &App, caller: &Caller, exec: &Seen<Exec>, after: u64) -> Answer<Page> {
    let (eyes, id) = (caller.eyes(), exec.exec_id.clone());
    let asked = app.ask("events", move |dispatcher| {
        // The record first, so that what it says about the end is true of the events that follow.
        let exec = dispatcher.find(&eyes, id.as_str())?;
        let mut page = Page {
            events: Vec::new(),
            bytes: 0,
            after,
            more: true,
            complete: false,
        };
        while page.more && page.bytes < PAGE_BYTES {
            let read = dispatcher.events(&exec, page.after, AT_ONCE)?;
            page.add(&read, &exec);
        }
        Ok(page)
    });
    asked.await
}

impl Page {
    /// As many as there is room for; the others are read again.
    fn add(&mut self, read: &EventPage, exec: &Exec) {
        for (index, event) in read.events.iter().enumerate() {
            if self.bytes >= PAGE_BYTES {
                return;
            }
            self.after = event.seq;
            let last = read.complete && index + 1 == read.events.len();
            let (name, data) = told(event, last.then_some(exec));
            self.bytes += match &event.what {
                EventKind::Output { bytes, .. } => bytes.len(),
                EventKind::Effect(_) => data.to_string().len(),
                EventKind::State { .. } | EventKind::Truncated { .. } => SMALL_BYTES,
            };
            self.events.push(Told {
                seq: event.seq,
                name,
                data,
            });
        }
        self.complete = read.complete;
        self.more = !read.complete && read.events.len() >= AT_ONCE;
    }
}

struct Teller {
    app: App,
    caller: Caller,
    exec: Seen<Exec>,
    after: u64,
    live: Option<watch::Receiver<Progress>>,
    send: mpsc::Sender<Piece>,
    /// When something was last sent.
    spoke: Instant,
}

impl Teller {
    /// Until the end of the exec, of the token, or of the client.
    async fn tell(mut self, mut page: Page) {
        let times = self.app.times();
        let mut checked = Instant::now();
        loop {
            self.after = page.after;
            let events = page.events;
            if !(events.is_empty() || self.say(Piece::Events(events)).await) || page.complete {
                return;
            }
            if !page.more && !self.wait(times.keep_alive, checked + times.recheck).await {
                return;
            }
            if checked.elapsed() >= times.recheck {
                checked = Instant::now();
                let auth = self.app.auth();
                if !auth.is_still_good(&self.app, &self.caller).await {
                    return;
                }
            }
            if let Some(live) = &mut self.live {
                live.borrow_and_update();
            }
            page = match read(&self.app, &self.caller, &self.exec, self.after).await {
                Ok(page) => page,
                Err(_) => return,
            };
        }
    }

    async fn say(&mut self, piece: Piece) -> bool {
        self.spoke = Instant::now();
        self.send.send(piece).await.is_ok()
    }

    /// Until there may be something new. False when the client is gone, or the server closes with
    /// the exec still waiting.
    async fn wait(&mut self, keep_alive: Duration, recheck: Instant) -> bool {
        let quiet = self.spoke + keep_alive;
        let look = match &self.live {
            Some(_) => recheck,
            None => recheck.min(Instant::now() + LOOK),
        };
        let news = async {
            match &mut self.live {
                Some(live) => live.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            still = news => {
                if !still {
                    self.live = None;
                }
            }
            () = tokio::time::sleep_until(look) => {}
            () = tokio::time::sleep_until(quiet) => {
                return self.say(Piece::Quiet).await;
            }
            () = self.send.closed() => return false,
        }
        !(self.live.is_none() && self.app.dispatcher().is_closed())
    }
}

fn told(event: &Event, end: Option<&Exec>) -> (&'static str, Value) {
    let (seq, at) = (event.seq, event.at);
    match &event.what {
        EventKind::State {
            status,
            queue_position,
        } => {
            let mut data = json!({"seq": seq, "at": at, "status": status});
            if let Some(position) = queue_position {
                data["queue_position"] = json!(position);
            }
            if let Some(exec) = end {
                data["exit_code"] = json!(exec.exit_code);
                data["signal"] = json!(exec.signal);
                data["limit_hit"] = json!(exec.limit_hit);
                data["receipt"] = json!(exec.receipt);
            }
            ("state", data)
        }
        EventKind::Output { stream, bytes } => {
            let mut data = json!({"seq": seq, "at": at, "stream": name(*stream)});
            match std::str::from_utf8(bytes) {
                Ok(text) => data["text"] = json!(text),
                Err(_) => data["base64"] = json!(STANDARD.encode(bytes)),
            }
            ("output", data)
        }
        EventKind::Effect(effect) => {
            let effect = effect.as_deref().map(without_contents);
            ("effect", json!({"seq": seq, "at": at, "effect": effect}))
        }
        EventKind::Truncated { stream } => {
            let stream = name(*stream);
            (
                "output",
                json!({"seq": seq, "at": at, "stream": stream, "truncated": true}),
            )
        }
    }
}

/// Who follows an exec need not be somebody who may read files.
fn without_contents(effect: &Effect) -> Effect {
    let mut effect = effect.clone();
    if let Deed::FilesystemWrite(write) = &mut effect.deed {
        write.diff = None;
    }
    effect
}

fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}
