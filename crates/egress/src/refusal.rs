//! Why something was not fetched or dialled.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        /// Stable names: clients may match on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum RefusalCode { $($(#[$doc])* #[serde(rename = $text)] $name,)+ }

        impl RefusalCode {
            pub const ALL: &'static [RefusalCode] = &[$(RefusalCode::$name),+];
            pub const fn as_str(self) -> &'static str {
                match self { $(RefusalCode::$name => $text,)+ }
            }
        }
    };
}

codes! {
    InvalidUrl = "invalid_url";
    UnsupportedScheme = "unsupported_scheme";
    UnsupportedMethod = "unsupported_method";
    UserinfoNotAllowed = "userinfo_not_allowed";
    PortNotAllowed = "port_not_allowed";
    DnsFailed = "dns_failed";
    DestinationBlocked = "destination_blocked";
    RedirectLimitExceeded = "redirect_limit_exceeded";
    RedirectBlocked = "redirect_blocked";
    TlsError = "tls_error";
    /// No connection came about: in time, or at all.
    ConnectionTimeout = "connection_timeout";
    /// The answer did not come whole: in time, or at all.
    ReadTimeout = "read_timeout";
    ResponseTooLarge = "response_too_large";
    UnsupportedContentType = "unsupported_content_type";
    /// The answer is not what its framing, coding or character set says.
    DecodeError = "decode_error";
    ExtractFailed = "extract_failed";
    SuspectedSecretInUrl = "suspected_secret_in_url";
    RateLimited = "rate_limited";
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Never holds a path, a query or a secret: hosts, addresses and limits only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    pub code: RefusalCode,
    /// Lower case, no full stop, literals in backticks.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Refusal {
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            retry_after_ms: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn retry_after_ms(mut self, after: u64) -> Self {
        self.retry_after_ms = Some(after);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Refusal {}

/// A piece of somebody's text, short and without anything that a terminal would obey.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
