//! A client of the WebSocket of approvals.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::handshake::HandshakeError;
use tungstenite::http::Request;
use tungstenite::{Message, WebSocket};

use crate::Client;

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Ears {
    socket: WebSocket<TcpStream>,
    pub protocol: Option<String>,
}

impl Ears {
    pub fn at(address: SocketAddr, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let opened = Self::open(
            &Client::new(address, None),
            address,
            &[("Authorization", &bearer)],
        );
        opened.unwrap_or_else(|(status, body)| panic!("{status} {body}"))
    }

    /// The status and the body of the answer when it is no 101.
    pub fn open(
        client: &Client,
        address: SocketAddr,
        headers: &[(&str, &str)],
    ) -> Result<Self, (u16, String)> {
        Self::open_at(client, address, "/v1/approvals/ws", headers)
    }

    /// Of another path.
    pub fn open_at(
        client: &Client,
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, (u16, String)> {
        let stream = client.connect().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut request = Request::builder()
            .uri(format!("ws://{address}{path}"))
            .header("Host", address.to_string())
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let mut shaken = tungstenite::client(request, stream);
        let until = Instant::now() + PATIENCE;
        loop {
            match shaken {
                Ok((socket, answer)) => {
                    let protocol = answer.headers().get("sec-websocket-protocol");
                    let protocol = protocol.map(|it| it.to_str().unwrap().to_owned());
                    return Ok(Self { socket, protocol });
                }
                Err(HandshakeError::Interrupted(middle)) => {
                    assert!(Instant::now() < until, "no answer to the opening");
                    shaken = middle.handshake();
                }
                Err(HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                    let body = answer.body().clone().unwrap_or_default();
                    let body = String::from_utf8_lossy(&body).into_owned();
                    return Err((answer.status().as_u16(), body));
                }
                Err(HandshakeError::Failure(error)) => panic!("{error}"),
            }
        }
    }

    pub fn send(&mut self, message: &str) {
        self.socket.send(Message::text(message)).unwrap();
    }

    pub fn say(&mut self, message: &Value) {
        self.send(&message.to_string());
    }

    /// The next message, or why there is none.
    pub fn message(&mut self) -> Result<Value, String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => return Err(format!("{frame:?}")),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("nothing came".to_owned())
    }

    /// Goes on to the first that fits.
    #[track_caller]
    pub fn hear(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut others = Vec::new();
        loop {
            match self.message() {
                Ok(message) if fits(&message) => return message,
                Ok(message) => others.push(message),
                Err(end) => panic!("{end}; heard {others:?}"),
            }
        }
    }

    #[track_caller]
    pub fn required(&mut self, approval: &str) -> Value {
        self.hear(|it| it["type"] == "confirmation_required" && it["request_id"] == approval)
    }

    #[track_caller]
    pub fn resolved(&mut self, approval: &str) -> Value {
        self.hear(|it| it["type"] == "confirmation_resolved" && it["request_id"] == approval)
    }

    #[track_caller]
    pub fn error(&mut self) -> Value {
        self.hear(|it| it["type"] == "error")
    }
}
