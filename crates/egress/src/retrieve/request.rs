//! What is asked of retrieval, and what it answers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use glovebox_model::HostPort;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::client::Trail;
use crate::refusal::{Refusal, RefusalCode};

/// There is no place for a header or a body.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RetrieveRequest {
    pub url: String,
    /// `GET`, which is also what is meant without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Of the body, after decoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Of the text; what is longer is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_text_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Where given, only these may be reached, at every hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<HostPort>>,
}

impl RetrieveRequest {
    pub fn of(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: None,
            max_bytes: None,
            max_text_bytes: None,
            timeout_ms: None,
            allow: None,
        }
    }

    pub(super) fn check_method(&self) -> Result<(), Refusal> {
        match self.method.as_deref() {
            None | Some("GET") => Ok(()),
            Some(_) => Err(Refusal::new(
                RefusalCode::UnsupportedMethod,
                "retrieval knows `GET` only",
            )
            .hint("a program in a sandbox with a network can send other requests")),
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.timeout_ms.map_or(Duration::MAX, Duration::from_millis)
    }

    pub(super) fn bytes(&self) -> usize {
        saturated(self.max_bytes)
    }

    pub(super) fn text_bytes(&self) -> usize {
        saturated(self.max_text_bytes)
    }
}

fn saturated(bytes: Option<u64>) -> usize {
    bytes.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX))
}

/// The URL may hold a secret, which is one of the reasons to refuse it.
impl fmt::Debug for RetrieveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrieveRequest").finish_non_exhaustive()
    }
}

/// Either `text` or `error_code` is there. What is known when it is refused is told all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retrieved {
    /// Where the answer came from, after redirects.
    pub final_url: Option<String>,
    pub status_code: Option<u16>,
    /// As the server declares it.
    pub content_type: Option<String>,
    /// As its bytes look.
    pub sniffed_type: Option<String>,
    pub charset: Option<String>,
    pub title: Option<String>,
    /// A file name that is safe to use.
    pub suggested_name: Option<String>,
    /// After decoding.
    pub bytes_read: u64,
    pub wire_bytes: u64,
    pub elapsed_ms: u64,
    pub text: Option<String>,
    pub truncated: bool,
    pub redirects: u32,
    /// All that the last name led to.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub addresses: Vec<IpAddr>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub peer: Option<SocketAddr>,
    /// SHA-256 of the server's certificate, in hex.
    pub certificate_sha256: Option<String>,
    /// SHA-256 of the decoded body, in hex.
    pub content_sha256: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub retrieved_at: Timestamp,
    pub error_code: Option<RefusalCode>,
    pub error: Option<Refusal>,
}

impl Retrieved {
    pub(super) fn begun(retrieved_at: Timestamp) -> Self {
        Self {
            final_url: None,
            status_code: None,
            content_type: None,
            sniffed_type: None,
            charset: None,
            title: None,
            suggested_name: None,
            bytes_read: 0,
            wire_bytes: 0,
            elapsed_ms: 0,
            text: None,
            truncated: false,
            redirects: 0,
            addresses: Vec::new(),
            peer: None,
            certificate_sha256: None,
            content_sha256: None,
            retrieved_at,
            error_code: None,
            error: None,
        }
    }

    pub(super) fn travelled(&mut self, trail: &Trail) {
        self.redirects = u32::try_from(trail.redirects()).unwrap_or(u32::MAX);
        self.status_code = trail.status;
        if let Some(via) = &trail.via {
            self.final_url = trail.hops.last().cloned();
            self.addresses.clone_from(&via.addresses);
            self.peer = Some(via.peer);
            self.certificate_sha256.clone_from(&via.certificate_sha256);
        }
    }

    /// Of a request that was not even begun.
    pub fn refusal(refusal: Refusal) -> Self {
        let mut retrieved = Self::begun(Timestamp::now());
        retrieved.refused(refusal);
        retrieved
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.text = None;
        self.error_code = Some(refusal.code);
        self.error = Some(refusal);
    }

    pub fn is_ok(&self) -> bool {
        self.error_code.is_none()
    }
}
