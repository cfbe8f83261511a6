//! What happens to an exec, over a WebSocket: the same events, one message each.

use axum::extract::State;
use axum::http::{HeaderMap, Method, Version};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
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
use crate::places::Place;

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
    let events = pieces(app, caller, &id, &from).await?;
    opening.answer(|line| attend(line, events, place))
}

async fn attend(line: Line, mut events: Receiver<Piece>, _place: Place) {
    let mut socket = socket(line, MESSAGE_BYTES).await;
    let (code, reason) = loop {
        tokio::select! {
            piece = events.recv() => {
                let Some(piece) = piece else {
                    break (CloseCode::Normal, "that is all");
                };
                if !say(&mut socket, piece).await {
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

async fn say(socket: &mut Socket, piece: Piece) -> bool {
    let Piece::Events(events) = piece else {
        return socket.send(Message::Ping(Vec::new().into())).await.is_ok();
    };
    for event in events {
        let text = json!({"event": event.name, "data": event.data}).to_string();
        if socket.feed(Message::text(text)).await.is_err() {
            return false;
        }
    }
    socket.flush().await.is_ok()
}
