//! A gate, and a chain of them.

use std::sync::Arc;

use glovebox_model::{Confidence, FailureCode, GateResult, GateStatus, Recovery, Validation};

use crate::check::Check;
use crate::command::RunCommand;
use crate::evidence::Evidence;
use crate::kinds::Kinds;
use crate::subject::Subject;

pub const CHECKS_MAX: usize = 32;

/// Checks that must all hold, and what follows when one does not. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    name: Arc<str>,
    checks: Arc<[Check]>,
    because: Option<Arc<str>>,
    block: bool,
    /// None when nobody said.
    required: Option<Confidence>,
    recovery: Option<Recovery>,
}

impl Gate {
    /// The name of the gate that is always there in a simulation.
    pub const VIOLATIONS: &'static str = "violations";

    /// It blocks, and says nothing of confidence. None without checks, or with more than `CHECKS_MAX`.
    pub fn new(name: &str, checks: Vec<Check>) -> Option<Self> {
        let fits = (1..=CHECKS_MAX).contains(&checks.len());
        fits.then(|| Self {
            name: name.into(),
            checks: checks.into(),
            because: None,
            block: true,
            required: None,
            recovery: None,
        })
    }

    /// Nothing that policy would refuse is kept, nor taken for a success.
    pub fn violations() -> Self {
        Self {
            name: Self::VIOLATIONS.into(),
            checks: [Check::NoViolations].into(),
            because: None,
            block: true,
            required: None,
            recovery: Some(Recovery::AskUser),
        }
    }

    /// A reason that people are shown when it fails.
    pub fn because(mut self, because: &str) -> Self {
        self.because = Some(because.into());
        self
    }

    /// Whether a failure blocks, or is only told.
    pub fn blocking(mut self, block: bool) -> Self {
        self.block = block;
        self
    }

    pub fn requiring(mut self, required: Confidence) -> Self {
        self.required = Some(required);
        self
    }

    /// What should be done after a failure. `Ignore` makes the failure a warning.
    pub fn recovering(mut self, recovery: Recovery) -> Self {
        self.recovery = Some(recovery);
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The effects that its checks have to see.
    pub fn asks(&self) -> Kinds {
        let asked = self.checks.iter().map(Check::asks);
        asked.fold(Kinds::NONE, Kinds::with)
    }

    /// Whether nothing is kept when it fails.
    pub fn blocks(&self) -> bool {
        self.block && self.recovery != Some(Recovery::Ignore)
    }

    fn judge(&self, evidence: &Evidence<'_>) -> GateResult {
        let mut validations: Vec<Validation> = Vec::with_capacity(self.checks.len());
        for check in self.checks.iter() {
            // All that is wrong is told at once, but no program is run for what has failed already.
            let failed = validations.iter().any(|it| !it.valid);
            if failed && matches!(check, Check::Command(_)) {
                continue;
            }
            let found = check.try_on(evidence).requiring(self.required);
            validations.push(found.into_validation(check.name().as_str()));
        }
        let failed = validations.iter().find(|it| !it.valid);
        let status = match failed {
            None => GateStatus::Passed,
            Some(_) if self.blocks() => GateStatus::Blocked,
            Some(_) => GateStatus::Warning,
        };
        GateResult {
            gate: self.name.to_string(),
            status,
            blocked: status == GateStatus::Blocked,
            failure_code: failed.map(|it| it.failure_code.unwrap_or(FailureCode::ToolError)),
            remediation: failed.and_then(|it| self.remediation(it)),
            recovery: failed.and(self.recovery),
            validations,
        }
    }

    fn remediation(&self, failed: &Validation) -> Option<String> {
        match (&self.because, &failed.remediation) {
            (Some(because), Some(way_out)) => Some(format!("{because}: {way_out}")),
            (Some(because), None) => Some(because.to_string()),
            (None, way_out) => way_out.clone(),
        }
    }
}

/// Asks the gates in their order. The first that blocks is the last of the results.
pub fn judge(gates: &[Gate], subject: &Subject<'_>, runner: &dyn RunCommand) -> Vec<GateResult> {
    let evidence = Evidence::new(subject, runner);
    let mut results = Vec::with_capacity(gates.len());
    for gate in gates {
        let result = gate.judge(&evidence);
        let blocked = result.blocked;
        results.push(result);
        if blocked {
            break;
        }
    }
    results
}
