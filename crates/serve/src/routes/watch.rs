//! What changes in a workspace, as it happens.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use glovebox_model::Code;
use glovebox_workspace::files::Changes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use utoipa::{IntoParams, ToSchema};

use super::{Path, workspaces};
use crate::app::App;
use crate::auth::{Caller, ReadsFiles};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use crate::watches::Watcher;
use glovebox_engine::watched;

/// Events that are told at once, and pages that wait for a client that reads slowly.
const AT_ONCE: usize = 256;
const AHEAD: usize = 1;
/// How often it is looked whether the server closes.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// Only changes with a larger number; without it, those from now on. A reconnecting
    /// `EventSource` says the same in `Last-Event-ID`.
    #[param(minimum = 0, maximum = 9007199254740991i64)]
    after: Option<u64>,
    /// Ends after so many seconds.
    #[param(minimum = 0, maximum = 86400)]
    seconds: Option<u64>,
}

/// One event of the stream.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "only described; events are written as they happen"
)]
pub(super) struct WatchEvent {
    /// The number to go on with.
    #[schema(pattern = "^[0-9]+$")]
    id: String,
    event: WatchEventName,
    /// JSON. `ready`: `seq`, and `partial` when there are more directories than can be watched.
    /// `change`: `seq`, `kind` (`created`, `modified`, `removed`, `moved`), `path`, `is_dir`, and
    /// `from` when it moved. `overflow`: `seq`; changes before it are lost, so look at everything
    /// anew. `end`: the workspace is gone.
    data: String,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
enum WatchEventName {
    Ready,
    Change,
    Overflow,
    End,
}

/// Watch a workspace
///
/// Server-sent events: `ready` once everything that happens is seen, then a `change` for whatever
/// is made, changed, moved or removed, by whomever. Whoever comes back within half a minute with
/// the number of the last event misses nothing; who comes later, or reads too slowly, is told by
/// `overflow`.
#[utoipa::path(
    get, path = "/v1/workspaces/{project}/watch", operation_id = "watch_workspace", tag = "workspaces",
    params(
        ("project" = String, Path, description = "The project's id."),
        Since,
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,16}$", min_length = 1, max_length = 16,
            description = "As `after`; the larger of the two counts."),
    ),
    responses((status = 200, description = "The changes.",
        content_type = "text/event-stream", body = WatchEvent)),
)]
pub(super) async fn watch(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Query(since): Query<Since>,
    headers: HeaderMap,
) -> Answer<Response> {
    let project = workspaces::project(&caller, &name)?;
    let after = since.after.max(last_event_id(&headers)?);
    let (eyes, watches) = (caller.eyes(), app.watches().clone());
    let entered = app.ask("watch", move |dispatcher| {
        match dispatcher.workspace(&eyes, &project, None) {
            Err(error) if error.code == Code::NotFound => Ok(None),
            workspace => watches
                .enter(eyes.space(), &project, workspace?.work()?)
                .map(Some),
        }
    });
    let watcher = entered.await?.ok_or_else(workspaces::unknown)?;
    let (send, receive) = mpsc::channel(AHEAD);
    let teller = Teller {
        after: after.unwrap_or_else(|| watcher.now()),
        app,
        caller,
        watcher,
        send,
        until: since
            .seconds
            .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
    };
    tokio::spawn(teller.tell());
    let pieces = futures_util::stream::unfold(receive, |mut receive| async {
        let piece: Bytes = receive.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), receive))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn last_event_id(headers: &HeaderMap) -> Answer<Option<u64>> {
    let mut given = headers.get_all("last-event-id").iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    let number = first
        .to_str()
        .ok()
        .filter(|text| (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()));
    match (number.and_then(|text| text.parse().ok()), given.next()) {
        (Some(number), None) => Ok(Some(number)),
        (_, _) => Err(Failure::invalid(
            "`Last-Event-ID` must be the number of an event",
        )),
    }
}

struct Teller {
    app: App,
    caller: Caller,
    watcher: Watcher,
    after: u64,
    send: mpsc::Sender<Bytes>,
    until: Option<Instant>,
}

impl Teller {
    /// Until the end of the workspace, of the token, of the time that was asked for, or of the
    /// client.
    async fn tell(mut self) {
        let times = self.app.times();
        let (mut checked, mut spoke) = (Instant::now(), Instant::now());
        let mut greeted = false;
        loop {
            let changes = self.watcher.after(self.after, AT_ONCE);
            let mut text = String::new();
            if !greeted {
                greeted = true;
                let data = json!({"seq": self.after, "partial": changes.partial});
                event(&mut text, self.after, "ready", &data);
            }
            tell(&mut text, &changes);
            self.after = changes.seq;
            if !text.is_empty() {
                spoke = Instant::now();
                if self.send.send(Bytes::from(text)).await.is_err() {
                    return;
                }
            }
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            if changes.ended || self.app.dispatcher().is_closed() {
                return;
            }
            if changes.events.len() >= AT_ONCE {
                continue;
            }
            if is_over {
                return;
            }
            if checked.elapsed() >= times.recheck {
                checked = Instant::now();
                let auth = self.app.auth();
                if !auth.is_still_good(&self.app, &self.caller).await {
                    return;
                }
            }
            let quiet = spoke + times.keep_alive;
            let look = Instant::now() + LOOK;
            let wake = self.until.unwrap_or(quiet).min(quiet).min(look);
            tokio::select! {
                () = self.watcher.news() => {}
                () = sleep_until(wake) => {
                    if Instant::now() >= quiet {
                        spoke = Instant::now();
                        let alive = Bytes::from_static(b": still here\n\n");
                        if self.send.send(alive).await.is_err() {
                            return;
                        }
                    }
                }
                () = self.send.closed() => return,
            }
        }
    }
}

fn tell(text: &mut String, changes: &Changes) {
    if changes.overflow {
        let before = changes.events.first().map_or(changes.seq, |it| it.seq - 1);
        event(text, before, "overflow", &json!({"seq": before}));
    }
    for change in &changes.events {
        let data = json!(watched(change.clone()));
        event(text, change.seq, "change", &data);
    }
    if changes.ended {
        event(text, changes.seq, "end", &json!({"seq": changes.seq}));
    }
}

fn event(text: &mut String, seq: u64, name: &str, data: &Value) {
    text.push_str(&format!("id: {seq}\nevent: {name}\ndata: {data}\n\n"));
}
