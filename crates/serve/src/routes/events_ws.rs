//! What happens to an exec, over a WebSocket: the same events, one message each.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Version};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use glovebox_capture::Secrets;
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Path;
use super::events::{From, Piece, pieces};
use super::websocket::{Opening, Socket, part, socket};
use crate::app::App;
use crate::auth::ReadsExecs;
use crate::body::Query;
use crate::failure::Answer;
use crate::listen::Line;
use crate::mask;
use crate::per_space_limit::Place;

/// A client has nothing to say here but its pongs and its goodbye.
const MESSAGE_BYTES: usize = 4 << 10;

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
        instead: "GET /v1/execs/{id}/events",
    };
    opening.check()?;
    let place = app.listeners().enter(caller.space())?;
    // As in `trace`: where a key is missing, what is there is still told.
    let secrets = app.secrets_of(&mask::whose(&caller)).await;
    let secrets = secrets.unwrap_or_default();
    let events = pieces(app, caller, &id, &from).await?;
    opening.answer(move |line| attend(line, events, place, secrets))
}

async fn attend(line: Line, mut events: Receiver<Piece>, _place: Place, secrets: Arc<Secrets>) {
    let mut socket = socket(line, MESSAGE_BYTES).await;
    let (code, reason) = loop {
        tokio::select! {
            piece = events.recv() => {
                let Some(piece) = piece else {
                    break (CloseCode::Normal, "that is all");
                };
                if !say(&mut socket, piece, &secrets).await {
                    return;
                }
            }
            heard = socket.next() => match heard {
                // A close is answered by the socket itself, on the way to its end.
                Some(Ok(_)) => {}
                Some(Err(Error::Capacity(_))) => {
                    break (CloseCode::Size, "a message has at most 4 KiB");
                }
                Some(Err(_)) | None => return,
            },
        }
    };
    part(socket, code, reason).await;
}

async fn say(socket: &mut Socket, piece: Piece, secrets: &Secrets) -> bool {
    let Piece::Events(events) = piece else {
        return socket.send(Message::Ping(Vec::new().into())).await.is_ok();
    };
    for event in events {
        let mut said = json!({"event": event.name, "data": event.data});
        secrets.redact_json(&mut said);
        if socket.feed(Message::text(said.to_string())).await.is_err() {
            return false;
        }
    }
    socket.flush().await.is_ok()
}
