//! `exit`: the program ended as it should.

use std::collections::BTreeSet;

use glovebox_model::{FailureCode, Status};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;

/// Empty: only success will do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    pub codes: BTreeSet<i32>,
}

impl Exit {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let (status, code) = (evidence.subject.status, evidence.subject.exit_code);
        let good = match status {
            Status::Succeeded | Status::Failed if !self.codes.is_empty() => {
                code.is_some_and(|it| self.codes.contains(&it))
            }
            Status::Succeeded => true,
            // Whatever else ended it was not the program's own decision.
            Status::Failed
            | Status::Queued
            | Status::AwaitingApproval
            | Status::Running
            | Status::TimedOut
            | Status::Killed
            | Status::Canceled
            | Status::PolicyDenied
            | Status::Held
            | Status::Lost
            | Status::Error => false,
        };
        if good {
            return Ok(Finding::good());
        }
        let code = code.map(|it| format!(" with exit code {it}"));
        Err(Finding::bad(
            FailureCode::ToolError,
            format!("it ended as `{status}`{}", code.unwrap_or_default()),
            "look at what it printed, and try again",
        ))
    }
}
