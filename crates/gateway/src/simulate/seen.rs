//! What a simulated program tried, and what it was told.

use glovebox_model::{Approach, NetCode, NetworkRequest, Spoken};
use jiff::Timestamp;
use serde::Serialize;

use super::weather::Injected;
use crate::denial::Denial;
use crate::record::Asked;

/// One question to the DNS, one request, or one connection on which no request was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub at: Timestamp,
    pub approach: Approach,
    pub spoken: Spoken,
    /// The name that was asked for, or the address where there was none.
    pub host: String,
    pub port: u16,
    /// What policy says to it: `Ok` if it would be let through.
    pub code: NetCode,
    /// Why policy would refuse it, and the way out.
    pub why: Option<String>,
    pub hint: Option<String>,
    /// Of a question to the DNS: `A`, `AAAA`, `TXT` and so on.
    pub record_type: Option<String>,
    /// The name in the TLS handshake.
    pub server_name: Option<String>,
    /// Of a request: the method and the path without its query.
    pub method: Option<String>,
    pub path: Option<String>,
    /// Bytes of a request's body, or of all that was sent on a connection without requests.
    pub body_bytes: u64,
    /// BLAKE3 of a body that came whole, in hexadecimal; also of an empty one.
    pub body_digest: Option<String>,
    /// Of a request, and of a connection that a fault was made of.
    pub answer: Option<Answer>,
}

/// What the program was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// None: the connection ended without one.
    pub status: Option<u16>,
    /// Which of the simulation's responses it was.
    pub preset: Option<usize>,
    pub fault: Option<Injected>,
    /// What a fault made it wait, at the least.
    pub delay_ms: u64,
}

impl Seen {
    pub(crate) fn new(asked: &Asked, denial: Option<&Denial>) -> Self {
        let (method, path) = asked.request.clone().unzip();
        Self {
            at: Timestamp::now(),
            approach: asked.approach,
            spoken: asked.spoken,
            host: asked.host.clone(),
            port: asked.port,
            code: denial.map_or(NetCode::Ok, |it| it.code),
            why: denial.map(|it| it.why.clone()),
            hint: denial.and_then(|it| it.hint.clone()),
            record_type: None,
            server_name: None,
            method,
            path,
            body_bytes: 0,
            body_digest: None,
            answer: None,
        }
    }

    /// Whether policy would let it happen.
    pub fn would_succeed(&self) -> bool {
        self.code == NetCode::Ok
    }

    /// As an effect tells it.
    pub fn request(&self) -> NetworkRequest {
        NetworkRequest {
            approach: self.approach,
            spoken: self.spoken,
            host: self.host.clone(),
            port: self.port,
            code: self.code,
            method: self.method.clone(),
            path: self.path.clone(),
            body_bytes: self.body_bytes,
            body_digest: self.body_digest.clone(),
        }
    }
}
