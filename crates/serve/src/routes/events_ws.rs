//! What happens to an exec, over a WebSocket: the same events, one message each.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Version};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::Path;
use super::events::{From, Piece, pieces};
use super::websocket::Opening;
use crate::app::App;
use crate::auth::ReadsExecs;
use crate::body::Query;
use crate::failure::Answer;
use crate::listen::{Line, Wire};
use crate::places::Place;

/// A client has nothing to say here but its pongs and its goodbye.
const MESSAGE_BYTES: usize = 4 << 10;
const PARTING: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<Box<dyn Wire>>;

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
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES));
    let (wire, early, role) = (line.wire, line.early.to_vec(), Role::Server);
    let mut socket = Socket::from_partially_read(wire, early, role, Some(config)).await;
    loop {
        tokio::select! {
            piece = events.recv() => {
                let Some(piece) = piece else { break };
                if !say(&mut socket, piece).await {
                    return;
                }
            }
            heard = socket.next() => match heard {
                // A close is answered by the socket itself, on the way to its end.
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
    let frame = CloseFrame {
        code: CloseCode::Normal,
        reason: "that is all".into(),
    };
    // Who does not take it, or does not answer it, is left.
    let _ = tokio::time::timeout(PARTING, async {
        if socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
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
