//! What a simulated program tried, and what it was told.

use glovebox_model::{Approach, NetCode, NetworkRequest, Spoken};
use jiff::Timestamp;
use serde::Serialize;

use super::fault_injection::Injected;
use crate::denial::Denial;
use crate::head::{Head, Unmasked};
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
    pub query: Option<Unmasked>,
    /// BLAKE3 of the query, and of the headers that a rerun is held to.
    pub query_digest: Option<String>,
    pub header_names: Vec<String>,
    pub headers_digest: Option<String>,
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
            query: None,
            query_digest: None,
            header_names: Vec::new(),
            headers_digest: None,
            body_bytes: 0,
            body_digest: None,
            answer: None,
        }
    }

    /// Whether policy would let it happen.
    pub fn would_succeed(&self) -> bool {
        self.code == NetCode::Ok
    }

    pub(crate) fn told_head(&mut self, head: &Head) {
        self.query.clone_from(&head.query);
        self.query_digest.clone_from(&head.query_digest);
        self.header_names.clone_from(&head.header_names);
        self.headers_digest = Some(head.headers_digest.clone());
    }

    /// As an effect tells it, but for the query, which is not masked yet.
    pub fn request(&self) -> NetworkRequest {
        let at = (self.host.clone(), self.port);
        NetworkRequest {
            method: self.method.clone(),
            path: self.path.clone(),
            query_digest: self.query_digest.clone(),
            header_names: self.header_names.clone(),
            headers_digest: self.headers_digest.clone(),
            body_bytes: self.body_bytes,
            body_digest: self.body_digest.clone(),
            ..NetworkRequest::bare(self.approach, self.spoken, at, self.code)
        }
    }
}
