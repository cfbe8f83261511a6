//! What a sandbox did to get out, and what was said to it.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::host::HostPort;

/// The answer to one attempt, as the record and the log name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NetCode {
    Ok,
    /// The sandbox has no network at all.
    NetModeNone,
    NotInAllowlist,
    /// The name is on the list, with other ports.
    PortNotAllowed,
    /// An address instead of a name, or a name that leads to an address nobody may reach.
    InvalidDestination,
    /// Something that only the proxy can carry was tried without it.
    ProxyRequired,
    /// The name in the handshake or the request is not the name that was asked for.
    SniMismatch,
    DnsDenied,
    /// The time for which the network was granted is over.
    PolicyExpired,
    /// A person would have to agree first.
    ApprovalRequired,
    /// The simulation that was agreed to did not show it.
    NotPreviewed,
    InternalError,
    Other,
}

impl NetCode {
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::NetModeNone,
        Self::NotInAllowlist,
        Self::PortNotAllowed,
        Self::InvalidDestination,
        Self::ProxyRequired,
        Self::SniMismatch,
        Self::DnsDenied,
        Self::PolicyExpired,
        Self::ApprovalRequired,
        Self::NotPreviewed,
        Self::InternalError,
        Self::Other,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::NetModeNone => "NET_MODE_NONE",
            Self::NotInAllowlist => "NOT_IN_ALLOWLIST",
            Self::PortNotAllowed => "PORT_NOT_ALLOWED",
            Self::InvalidDestination => "INVALID_DESTINATION",
            Self::ProxyRequired => "PROXY_REQUIRED",
            Self::SniMismatch => "SNI_MISMATCH",
            Self::DnsDenied => "DNS_DENIED",
            Self::PolicyExpired => "POLICY_EXPIRED",
            Self::ApprovalRequired => "APPROVAL_REQUIRED",
            Self::NotPreviewed => "NOT_PREVIEWED",
            Self::InternalError => "INTERNAL_ERROR",
            Self::Other => "OTHER",
        }
    }
}

impl fmt::Display for NetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How the program tried it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Approach {
    /// A plain connection, by a program that knows of no proxy.
    Direct,
    Connect,
    Socks,
    /// A request in absolute form to the proxy.
    Proxied,
    Dns,
}

/// What was spoken, as far as it could be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spoken {
    Dns,
    /// Datagrams to anything but the DNS: they never leave.
    Udp,
    Tcp,
    Tls,
    Http,
    /// TLS that was opened on the way, by policy.
    Https,
}

/// One attempt to get out, told when it was decided and, if it was let through, again at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// Counts within the sandbox's log.
    pub seq: u64,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    pub code: NetCode,
    pub approach: Approach,
    pub spoken: Spoken,
    /// The name that was asked for, or the address where there was none.
    pub host: String,
    pub port: u16,
    /// The entry of the list that let it through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<HostPort>,
    /// Where it really went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub address: Option<IpAddr>,
    /// Of a request that could be read: the method and the path without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Bytes the sandbox sent and got, at the end.
    #[serde(default)]
    pub sent: u64,
    #[serde(default)]
    pub received: u64,
    /// Whether the connection is over.
    #[serde(default)]
    pub ended: bool,
    /// What is missing and how to ask for it, of an attempt that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A destination that was refused, however often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refused {
    pub host: String,
    pub port: u16,
    pub code: NetCode,
    pub times: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What an exec did with its network, in its record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Traffic {
    pub connections: u64,
    pub sent: u64,
    pub received: u64,
    /// The first few destinations that were refused; `refused_more` counts the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    #[serde(default)]
    pub refused_more: u64,
    /// What it tried that its simulation had not shown; nothing got out from there on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strayed: Option<String>,
}
