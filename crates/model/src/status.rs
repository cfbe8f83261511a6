//! Where an exec stands.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A program that ran and returned non-zero is `Failed`; `Error` is ours, never the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    AwaitingApproval,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Killed,
    Canceled,
    PolicyDenied,
    Held,
    Lost,
    Error,
}

impl Status {
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::AwaitingApproval,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Killed,
        Self::Canceled,
        Self::PolicyDenied,
        Self::Held,
        Self::Lost,
        Self::Error,
    ];

    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::AwaitingApproval | Self::Running => false,
            Self::Succeeded
            | Self::Failed
            | Self::TimedOut
            | Self::Killed
            | Self::Canceled
            | Self::PolicyDenied
            | Self::Held
            | Self::Lost
            | Self::Error => true,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::Canceled => "canceled",
            Self::PolicyDenied => "policy_denied",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_wire_form() {
        for status in Status::ALL {
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{status}\""));
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
    }
}
