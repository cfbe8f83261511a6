//! What a session's terminal showed, with its times: asciicast, as players of terminals read it.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use glovebox_engine::{Dispatcher, Event, EventKind, EventPage, Seen};
use glovebox_model::{Exec, Result, Stream, TerminalSize};
use jiff::Timestamp;
use serde_json::json;

use super::Path;
use super::sessions::find_session;
use crate::app::App;
use crate::auth::ReadsExecs;
use crate::failure::Answer;
use crate::per_space_limit::Place;

/// Events that are read at once; one holds up to 64 KiB of output.
const AT_ONCE: usize = 16;
/// A piece that has passed this is passed on.
const PIECE_BYTES: usize = 256 << 10;

/// Record a session
///
/// What it put out until now, as asciicast v2: a line with the terminal's size, then one line for each
/// piece with the seconds since its start. Its times are kept for 24 hours after its end, and as much
/// output as of any exec.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/recording", operation_id = "get_session_recording", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 200, description = "The recording.", content_type = "application/x-asciicast", body = String)),
)]
pub(super) async fn recording(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Response> {
    let exec = find_session(&app, &caller, &id).await?;
    let place = app.viewers().enter(caller.space())?;
    let (first, recording) = Recording::of(exec, place)?.next(&app).await?;
    let rest = futures_util::stream::unfold(Some((app, recording)), |left| async {
        let (app, recording) = left.filter(|(_, recording)| !recording.ended)?;
        match recording.next(&app).await {
            Ok((piece, recording)) => Some((Ok(piece), Some((app, recording)))),
            // An error cuts the answer off, so that it is not taken for the whole.
            Err(failure) => Some((Err(std::io::Error::other(failure.0)), None)),
        }
    });
    let first = futures_util::stream::iter([Ok(first)]);
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let kind = HeaderValue::from_static("application/x-asciicast");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

struct Recording {
    exec: Seen<Exec>,
    /// The line with the size, until it was written.
    head: Option<String>,
    lines: Lines,
    after: u64,
    ended: bool,
    _place: Place,
}

impl Recording {
    fn of(exec: Seen<Exec>, place: Place) -> Answer<Self> {
        let terms = glovebox_engine::session_terms(&exec)?;
        let TerminalSize { columns, rows } = terms.terminal.unwrap_or(TerminalSize::USUAL);
        let began = exec.started_at.unwrap_or_else(Timestamp::now);
        let head = json!({
            "version": 2,
            "width": columns,
            "height": rows,
            "timestamp": began.as_second(),
            "title": format!("session {}", exec.exec_id),
            "env": {"TERM": "xterm-256color"},
        });
        Ok(Self {
            exec,
            head: Some(format!("{head}\n")),
            lines: Lines::since(began),
            after: 0,
            ended: false,
            _place: place,
        })
    }

    async fn next(mut self, app: &App) -> Answer<(Bytes, Self)> {
        let read = app.ask("recording", move |dispatcher| {
            let text = self.read(dispatcher)?;
            Ok((Bytes::from(text), self))
        });
        read.await
    }

    /// As much as there is room for; the rest is read again.
    fn read(&mut self, dispatcher: &Dispatcher) -> Result<String> {
        let mut text = self.head.take().unwrap_or_default();
        while !self.ended && text.len() < PIECE_BYTES {
            let EventPage { events, complete } =
                dispatcher.events(&self.exec, self.after, AT_ONCE)?;
            self.ended = complete || events.len() < AT_ONCE;
            for event in &events {
                if text.len() >= PIECE_BYTES {
                    self.ended = false;
                    break;
                }
                self.after = event.seq;
                self.lines.add(event, &mut text);
            }
        }
        Ok(text)
    }
}

/// What was put out, line by line.
struct Lines {
    began: Timestamp,
    /// Of each stream a character that is not whole yet.
    held: [Vec<u8>; 2],
}

impl Lines {
    fn since(began: Timestamp) -> Self {
        let held = [Vec::new(), Vec::new()];
        Self { began, held }
    }

    fn add(&mut self, event: &Event, text: &mut String) {
        match &event.what {
            EventKind::Output { stream, bytes } => {
                let [stdout, stderr] = &mut self.held;
                let held = match stream {
                    Stream::Stdout => stdout,
                    Stream::Stderr => stderr,
                };
                held.extend(bytes);
                let begun = held.split_off(whole_characters(held));
                let shown = std::mem::replace(held, begun);
                self.write(event.at, &shown, text);
            }
            // No more of it comes.
            EventKind::State { status, .. } if status.is_final() => {
                for rest in std::mem::take(&mut self.held) {
                    self.write(event.at, &rest, text);
                }
            }
            EventKind::State { .. } | EventKind::Effect(_) | EventKind::Truncated { .. } => {}
        }
    }

    fn write(&self, at: Timestamp, shown: &[u8], text: &mut String) {
        if shown.is_empty() {
            return;
        }
        let seconds = at.duration_since(self.began).as_secs_f64().max(0.0);
        let line = json!([seconds, "o", String::from_utf8_lossy(shown)]).to_string();
        // It may be printed where it was played.
        text.push_str(&glovebox_api::json::for_terminals(&line));
        text.push('\n');
    }
}

/// How much is left when an unfinished character at the end is taken away.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes
        .utf8_chunks()
        .last()
        .map_or(&[][..], |it| it.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|it| it.error_len().is_none());
    let begun = if is_begun { last.len() } else { 0 };
    bytes.len() - begun
}

#[cfg(test)]
mod tests {
    use glovebox_model::Status;
    use jiff::ToSpan;

    use super::*;

    /// Each at so many seconds.
    fn recorded(events: impl IntoIterator<Item = EventKind>) -> Vec<(f64, String)> {
        let mut lines = Lines::since(Timestamp::UNIX_EPOCH);
        let mut text = String::new();
        for (what, seq) in events.into_iter().zip(1..) {
            let at = Timestamp::UNIX_EPOCH + i64::try_from(seq).unwrap().seconds();
            lines.add(&Event { seq, at, what }, &mut text);
        }
        let parsed = |line| serde_json::from_str::<(f64, String, String)>(line).unwrap();
        let lines = text.lines().map(parsed);
        lines.map(|(at, _, shown)| (at, shown)).collect()
    }

    fn put_out(stream: Stream, bytes: &[u8]) -> EventKind {
        let bytes = bytes.to_vec();
        EventKind::Output { stream, bytes }
    }

    #[test]
    fn a_character_comes_whole_whatever_the_other_stream_says_meanwhile() {
        let (out, err) = (Stream::Stdout, Stream::Stderr);
        let lines = recorded([
            put_out(out, b"a\xff\xc3"),
            put_out(err, b"\xe2\x82"),
            put_out(out, b"\xa4b"),
            put_out(err, b"\xac"),
        ]);
        let expected = [(1.0, "a\u{fffd}"), (3.0, "äb"), (4.0, "€")];
        assert_eq!(lines, expected.map(|(at, shown)| (at, shown.to_owned())));
    }

    #[test]
    fn what_never_became_a_character_is_told_at_the_end() {
        let state = |status| EventKind::State {
            status,
            queue_position: None,
        };
        let lines = recorded([
            put_out(Stream::Stdout, b"\xc3"),
            state(Status::Running),
            put_out(Stream::Stderr, b"b\xe2\x82"),
            state(Status::Succeeded),
        ]);
        let expected = [(3.0, "b"), (4.0, "\u{fffd}"), (4.0, "\u{fffd}")];
        assert_eq!(lines, expected.map(|(at, shown)| (at, shown.to_owned())));
    }
}
