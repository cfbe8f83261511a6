//! What a simulated program is told instead of the truth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::profile::is_default;

/// Of one exec that is simulated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The first that fits answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 256))]
    pub responses: Vec<PresetResponse>,
    /// How the world fails. The first that fits holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 256))]
    pub faults: Vec<Fault>,
    /// What tools that know of the simulation are given, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub data: BTreeMap<String, serde_json::Value>,
    /// Whether reads are effects too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reads: bool,
    /// Makes what is random the same each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 0, maximum = 9007199254740991i64)
    )]
    pub seed: Option<u64>,
}

/// An answer to requests, over TLS or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PresetResponse {
    /// A name; `*.x` is every name below `x`, `*` every name.
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
    pub port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A glob over the path without its query: `*` stays within a segment, `**` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    #[cfg_attr(feature = "openapi", schema(minimum = 200, maximum = 599))]
    pub status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// Sent as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub json: Option<serde_json::Value>,
}

const fn ok() -> u16 {
    200
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_ok(status: &u16) -> bool {
    *status == 200
}

/// What goes wrong, and how often, for whoever tries an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// As in a response. One of `host` and `tool` must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The name of a tool that asks by itself, a glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of a hundred tries so many succeed.
    #[serde(default = "always")]
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub success_percent: u8,
    #[serde(default)]
    pub pattern: FaultPattern,
    #[serde(default)]
    pub failure: Failure,
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 3600000))]
    pub latency_ms: u64,
    /// Up to so much more, at random.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 3600000))]
    pub jitter_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

const fn always() -> u8 {
    100
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultPattern {
    #[default]
    Random,
    /// Every second one fails, whatever the percentage.
    Alternating,
    /// Those that fail come together.
    Burst,
}

/// What a try that fails looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// 500.
    #[default]
    Error,
    /// No answer comes.
    Timeout,
    /// The connection is cut.
    Crash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000000))]
    pub requests: u32,
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86400000))]
    pub per_ms: u64,
}
