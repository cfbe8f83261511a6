//! What policy says about one action: allow it, ask a person, or deny it, and why.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::RuleRef;

/// Ordered: the strictest of two is their maximum.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permit {
    #[default]
    Allow,
    Ask,
    Deny,
}

impl Permit {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How much is done without asking a person. Ordered: over layers, the strictest wins.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// As `Cowork`, and an allow rule covers an upgrade too.
    Evolution,
    /// Asks for a declared high tier and for whatever goes beyond policy.
    #[default]
    Cowork,
    /// Asks for everything but reads.
    Manual,
}

impl ApprovalMode {
    pub const ALL: [Self; 3] = [Self::Evolution, Self::Cowork, Self::Manual];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Evolution => "evolution",
            Self::Cowork => "cowork",
            Self::Manual => "manual",
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ApprovalMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| "is not one of `evolution`, `cowork`, `manual`".to_owned())
    }
}

/// Which part of policy a reason comes from, in the order in which they decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// A bound that nothing opens: a ceiling, strict security, a switch of the operator's.
    HardLimit,
    ToolPolicy,
    /// The tier reaches the operator's `deny_from`.
    DenyFrom,
    Rule,
    Grant,
    /// Something beyond what policy gives is wanted.
    Upgrade,
    /// The declared tier.
    Tier,
    /// Signals that were found, not declared.
    Assessed,
    /// What the approval mode says when nothing else does.
    Mode,
    /// A simulation has no effects to ask about.
    Simulation,
}

/// What is wanted of the network beyond policy, for programs that read reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReasonCode {
    NetUnrestrictedRequested,
    /// Neither 80 nor 443.
    NetNonDefaultPortRequested,
    NetWildcardDomainRequested,
    NetPrivateDestinationRequested,
    /// More than policy gives, in no special way.
    NetCustomPolicyRequested,
}

impl ReasonCode {
    pub const ALL: [Self; 5] = [
        Self::NetUnrestrictedRequested,
        Self::NetNonDefaultPortRequested,
        Self::NetWildcardDomainRequested,
        Self::NetPrivateDestinationRequested,
        Self::NetCustomPolicyRequested,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NetUnrestrictedRequested => "NET_UNRESTRICTED_REQUESTED",
            Self::NetNonDefaultPortRequested => "NET_NON_DEFAULT_PORT_REQUESTED",
            Self::NetWildcardDomainRequested => "NET_WILDCARD_DOMAIN_REQUESTED",
            Self::NetPrivateDestinationRequested => "NET_PRIVATE_DESTINATION_REQUESTED",
            Self::NetCustomPolicyRequested => "NET_CUSTOM_POLICY_REQUESTED",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One reason of a ruling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reason {
    pub permit: Permit,
    pub kind: ReasonKind,
    /// A sentence for people: lower case, no full stop.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ReasonCode>,
    /// What it is about: the segment of a command, a field, a path, a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_name: Option<String>,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

/// A field that is wanted beyond what policy gives. A person may give it, up to the ceilings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Upgrade {
    pub field: String,
    pub asked: String,
    /// What policy gives without anybody's approval.
    pub given: String,
    pub layer: String,
}

/// A permit with its reasons, the strictest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ruling {
    pub permit: Permit,
    pub reasons: Vec<Reason>,
    pub upgrades: Vec<Upgrade>,
    /// The workspace is to be kept as it is now before this runs.
    pub snapshot_before: bool,
    pub mode: ApprovalMode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_is_the_maximum() {
        assert!(Permit::Deny > Permit::Ask && Permit::Ask > Permit::Allow);
        assert!(ApprovalMode::Manual > ApprovalMode::Cowork);
        assert!(ApprovalMode::Cowork > ApprovalMode::Evolution);
    }

    #[test]
    fn codes_are_the_wire_form() {
        for code in ReasonCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn words_read_back() {
        for mode in ApprovalMode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert!("none".parse::<ApprovalMode>().is_err());
    }
}
