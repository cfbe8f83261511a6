//! What gates said about the output and the effects of an exec, before anything is kept.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Between 0 and 1, in thousandths, so that records can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confidence(u16);

impl Confidence {
    pub const NONE: Self = Self(0);
    pub const FULL: Self = Self(1000);

    /// `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&value) {
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000"
        )]
        let thousandths = (value * 1000.0).round() as u16;
        Some(Self(thousandths))
    }

    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom("must be between 0 and 1"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureCode {
    MissingData,
    Conflict,
    OutOfScope,
    LowConfidence,
    PolicyViolation,
    ToolError,
    NonDeterminism,
}

impl FailureCode {
    pub const ALL: [Self; 7] = [
        Self::MissingData,
        Self::Conflict,
        Self::OutOfScope,
        Self::LowConfidence,
        Self::PolicyViolation,
        Self::ToolError,
        Self::NonDeterminism,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingData => "MISSING_DATA",
            Self::Conflict => "CONFLICT",
            Self::OutOfScope => "OUT_OF_SCOPE",
            Self::LowConfidence => "LOW_CONFIDENCE",
            Self::PolicyViolation => "POLICY_VIOLATION",
            Self::ToolError => "TOOL_ERROR",
            Self::NonDeterminism => "NON_DETERMINISM",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    Passed,
    Blocked,
    /// It failed, and its configuration says that this blocks nothing.
    Warning,
}

impl GateStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Blocked => "blocked",
            Self::Warning => "warning",
        }
    }
}

/// What whoever asked should do after a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    RetryAltTool,
    AskUser,
    Escalate,
    Ignore,
}

impl Recovery {
    pub const ALL: [Self; 4] = [
        Self::RetryAltTool,
        Self::AskUser,
        Self::Escalate,
        Self::Ignore,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryAltTool => "retry_alt_tool",
            Self::AskUser => "ask_user",
            Self::Escalate => "escalate",
            Self::Ignore => "ignore",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Validation {
    /// Which validator of the gate.
    pub validator: String,
    pub valid: bool,
    #[cfg_attr(feature = "openapi", schema(value_type = f64, minimum = 0, maximum = 1))]
    pub confidence: Confidence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GateResult {
    pub gate: String,
    pub status: GateStatus,
    /// Nothing is kept because of this.
    pub blocked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    pub validations: Vec<Validation>,
}

impl GateResult {
    pub fn passed(&self) -> bool {
        self.status == GateStatus::Passed
    }
}
