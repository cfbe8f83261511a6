//! Opening a WebSocket and taking leave of it, whoever speaks on it in between.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::failure::{Answer, Failure};
use crate::listen::{Handover, Line, Wire, linger};

pub(super) type Socket = WebSocketStream<Box<dyn Wire>>;

/// Who does not take the goodbye by then, or does not answer it, is left.
const PARTING: Duration = Duration::from_secs(1);

/// What is spoken. A token in `bearer.TOKEN` beside it is read by `auth` and never said back.
const PROTOCOL: &str = "glovebox.v1";

/// The part of a request that opens one.
pub(super) struct Opening {
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    /// Where the same can be had without one.
    pub(super) instead: &'static str,
}

impl Opening {
    /// `attend` is given the line once the client has the answer.
    pub(super) fn answer<F, T>(self, attend: F) -> Answer<Response>
    where
        F: FnOnce(Line) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let key = key(&self)?;
        let protocol = protocol(&self.headers)?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let accept = derive_accept_key(key.as_bytes());
        let accept = HeaderValue::from_str(&accept).map_err(|_| Failure::internal())?;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        if protocol {
            let spoken = HeaderValue::from_static(PROTOCOL);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, spoken);
        }
        response.extensions_mut().insert(Handover::new(attend));
        Ok(response)
    }

    /// A place is taken only for who opens one.
    pub(super) fn check(&self) -> Answer<()> {
        key(self)?;
        protocol(&self.headers).map(drop)
    }
}

/// The server's end of it. A message of the client's has at most so many bytes.
pub(super) async fn socket(line: Line, message_bytes: usize) -> Socket {
    let config = WebSocketConfig::default()
        .max_message_size(Some(message_bytes))
        .max_frame_size(Some(message_bytes));
    let early = line.early.to_vec();
    Socket::from_partially_read(line.wire, early, Role::Server, Some(config)).await
}

/// Says why, and waits for the client to have heard it.
pub(super) async fn part(mut socket: Socket, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let said = tokio::time::timeout(PARTING, async {
        socket.close(Some(frame)).await?;
        while let Some(Ok(_)) = socket.next().await {}
        Ok::<_, Error>(())
    });
    // After a message that was too large its rest is still on the way.
    if let Ok(Ok(())) = said.await {
        linger(socket.get_mut()).await;
    }
}

/// The client's part of the opening, RFC 6455.
fn key(opening: &Opening) -> Answer<String> {
    let Opening {
        method,
        version,
        headers,
        instead,
    } = opening;
    let said = |name, word: &str| {
        let all = headers.get_all(name).iter();
        let all = all.filter_map(|value| value.to_str().ok());
        all.flat_map(|text| text.split(','))
            .any(|text| text.trim().eq_ignore_ascii_case(word))
    };
    let opens = *method == Method::GET
        && *version == Version::HTTP_11
        && said(header::CONNECTION, "upgrade")
        && said(header::UPGRADE, "websocket")
        && said(header::SEC_WEBSOCKET_VERSION, "13")
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING);
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().and_then(|value| value.to_str().ok());
    let key = key.filter(|_| keys.next().is_none());
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
    match key {
        Some(key) if opens => Ok(key.to_owned()),
        _ => Err(Failure::invalid("this route is a WebSocket").hint(format!(
            "open it as one (version 13); `{instead}` tells the same"
        ))),
    }
}

/// Whether the client names what is spoken; who names only others speaks something else.
fn protocol(headers: &HeaderMap) -> Answer<bool> {
    let named = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let named: Vec<&str> = named
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .map(str::trim)
        .collect();
    match (named.is_empty(), named.contains(&PROTOCOL)) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Err(Failure::invalid(format!(
            "the protocol that is spoken here is `{PROTOCOL}`"
        ))
        .hint(format!(
            "name `{PROTOCOL}`, beside `bearer.TOKEN` where there is no header for it"
        ))),
    }
}
