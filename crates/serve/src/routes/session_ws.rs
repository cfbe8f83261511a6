//! A session over a WebSocket: its output, one message each, and what is typed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Version};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use glovebox_capture::Secrets;
use glovebox_engine::{Seen, SessionOrder};
use glovebox_model::{Exec, Scope};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Path;
use super::session_stream::{From, Happened, Piece, pieces};
use super::sessions::{find_session, order};
use super::websocket::{Opening, Socket, part, socket};
use crate::app::App;
use crate::auth::{Caller, ReadsExecs, unauthenticated};
use crate::body::{Query, parse};
use crate::failure::{Answer, Failure, discreet};
use crate::listen::Line;
use crate::mask;
use glovebox_api::{SessionMessage, SessionSignal};

/// Of one message of a client: a large text that is pasted, in JSON.
const MESSAGE_BYTES: usize = 8 << 20;

pub(super) async fn open(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(from): Query<From>,
    method: Method,
    version: Version,
    headers: HeaderMap,
) -> Answer<Response> {
    let opening = Opening {
        method,
        version,
        headers,
        instead: "GET /v1/sessions/{id}/stream",
    };
    opening.check()?;
    let exec = find_session(&app, &caller, &id).await?;
    let place = app.viewers().enter(caller.space())?;
    // As in `trace`: where a key is missing, what is there is still told.
    let secrets = app.secrets_of(&mask::whose(&caller)).await;
    let client = Client {
        app: app.clone(),
        caller: caller.clone(),
        exec: exec.clone(),
        secrets: secrets.unwrap_or_default(),
    };
    let output = pieces(app, caller, exec, from.offsets(), place).await?;
    opening.answer(move |line| client.attend(line, output))
}

struct Client {
    app: App,
    caller: Caller,
    exec: Seen<Exec>,
    secrets: Arc<Secrets>,
}

impl Client {
    async fn attend(self, line: Line, mut output: Receiver<Piece>) {
        let mut socket = socket(line, MESSAGE_BYTES).await;
        let (code, reason) = loop {
            tokio::select! {
                piece = output.recv() => {
                    let Some(piece) = piece else {
                        break (CloseCode::Normal, "that is all");
                    };
                    if !self.pass_on(&mut socket, piece).await {
                        return;
                    }
                }
                heard = socket.next() => {
                    let bytes = match heard {
                        Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
                        Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
                        // A close is answered by the socket itself, on the way to its end.
                        Some(Ok(_)) => continue,
                        Some(Err(Error::Capacity(_))) => {
                            break (CloseCode::Size, "a message has at most 8 MiB");
                        }
                        Some(Err(_)) | None => return,
                    };
                    if let Err(failure) = self.obey(&bytes).await {
                        let error = json!(discreet(*failure.0));
                        if !self.say(&mut socket, "error", error).await {
                            return;
                        }
                    }
                }
            }
        };
        part(socket, code, reason).await;
    }

    async fn obey(&self, bytes: &[u8]) -> Answer<()> {
        if !self.caller.token().may(Scope::ExecsWrite) {
            let message = "this token may read sessions, and not type into them";
            return Err(Failure::new(glovebox_model::Code::Forbidden, message));
        }
        let what = match parse(bytes)? {
            SessionMessage::Input(input) => SessionOrder::Type { input, once: None },
            SessionMessage::Resize(size) => SessionOrder::Resize(size),
            SessionMessage::Signal(signal) => SessionOrder::Signal(SessionSignal { signal }),
            SessionMessage::CloseInput(true) => SessionOrder::CloseInput,
            SessionMessage::CloseInput(false) => {
                let message = "`close_input` closes the input, which cannot be taken back";
                return Err(Failure::invalid(message).hint("say `true`, or leave it out"));
            }
        };
        // A token that was revoked a moment ago types nothing.
        if !self.app.auth().is_still_good(&self.app, &self.caller).await {
            return Err(unauthenticated());
        }
        let ordered = order(&self.app, &self.caller, self.exec.clone(), what);
        ordered.await.map(drop)
    }

    async fn pass_on(&self, socket: &mut Socket, piece: Piece) -> bool {
        let Piece::Events(events) = piece else {
            return socket.send(Message::Ping(Vec::new().into())).await.is_ok();
        };
        for Happened { name, data, .. } in events {
            if !self.say(socket, name, data).await {
                return false;
            }
        }
        true
    }

    async fn say(&self, socket: &mut Socket, event: &'static str, data: Value) -> bool {
        let mut said = json!({"event": event, "data": data});
        self.secrets.redact_json(&mut said);
        socket.send(Message::text(said.to_string())).await.is_ok()
    }
}
