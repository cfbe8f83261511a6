//! An exec as workflow engines want to see it: success, data, and what is known about it.

use glovebox_model::{BackendName, Effect, Exec, GateResult, Mode, Status, Validation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Effects from a place in their log on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EffectPage {
    pub effects: Vec<Effect>,
    pub next: u64,
    /// Nothing comes after these.
    pub complete: bool,
}

/// A view of the exec record.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskResult {
    /// The program succeeded, nothing that policy forbids was tried, and no gate blocks.
    pub success: bool,
    /// What it printed: JSON where it is JSON, else text.
    #[schema(value_type = Value)]
    pub data: Value,
    pub error: Option<String>,
    pub metadata: TaskMetadata,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// `none` for what ran without a sandbox.
    pub sandbox_id: String,
    /// Milliseconds.
    pub execution_time: u64,
    pub simulation_mode: bool,
    pub side_effects: Vec<Effect>,
    pub side_effect_count: u64,
    pub crv_validation: Option<CrvValidation>,
    /// The entry of the ledger, `SEQ:HASH`.
    pub hip_cortex_entry_id: Option<String>,
    pub resource_usage: ResourceUsage,
    pub permission_violations: Vec<String>,
    pub resource_limit_exceeded: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrvValidation {
    pub passed: bool,
    pub blocked_commit: bool,
    pub validation_results: Vec<Validation>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourceUsage {
    /// Milliseconds of processor time.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Bytes that were written beside the workspace.
    pub disk: u64,
    /// Bytes in both directions.
    pub network: u64,
}

impl TaskResult {
    pub fn of(exec: Exec) -> Self {
        let violations: Vec<String> = exec
            .effects
            .iter()
            .filter(|it| !it.would_succeed)
            .filter_map(|it| it.failure_reason.clone())
            .collect();
        let forbidden = exec.effect_count.is_some_and(|it| it.violations > 0);
        let blocked = exec.gates.iter().any(|it| it.blocked);
        Self {
            success: exec.status == Status::Succeeded && !forbidden && !blocked,
            data: serde_json::from_str(&exec.stdout).unwrap_or_else(|_| json!(exec.stdout)),
            error: why(&exec),
            metadata: TaskMetadata {
                sandbox_id: match (&exec.sandbox_id, exec.backend) {
                    (_, Some(BackendName::Host)) | (None, _) => "none".to_owned(),
                    (Some(id), _) => id.to_string(),
                },
                execution_time: exec.duration_ms.unwrap_or(0),
                simulation_mode: exec.mode == Mode::Simulate,
                side_effect_count: exec.effect_count.map_or(0, |it| it.total),
                side_effects: exec.effects,
                crv_validation: (!exec.gates.is_empty()).then(|| CrvValidation {
                    passed: exec.gates.iter().all(GateResult::passed),
                    blocked_commit: blocked,
                    validation_results: exec
                        .gates
                        .into_iter()
                        .flat_map(|it| it.validations)
                        .collect(),
                }),
                hip_cortex_entry_id: exec.receipt.map(|it| format!("{}:{}", it.seq, it.hash)),
                resource_usage: ResourceUsage {
                    cpu: exec.usage.cpu_ms,
                    memory: exec.usage.max_memory_bytes,
                    disk: exec.changes.map_or(0, |it| it.bytes),
                    network: exec
                        .traffic
                        .map_or(0, |it| it.sent.saturating_add(it.received)),
                },
                permission_violations: violations,
                resource_limit_exceeded: exec.limit_hit.is_some(),
            },
        }
    }
}

/// All reasons, joined.
fn why(exec: &Exec) -> Option<String> {
    let blocked = exec.gates.iter().filter(|it| it.blocked);
    let failed = blocked.flat_map(|it| it.validations.iter().filter(|it| !it.valid));
    let reasons: Vec<String> = failed.filter_map(|it| it.reason.clone()).collect();
    if !reasons.is_empty() {
        return Some(reasons.join("; "));
    }
    match (&exec.error, exec.status) {
        (Some(error), _) => Some(error.message.clone()),
        (None, Status::Succeeded) => None,
        (None, status) => Some(match exec.exit_code {
            Some(code) => format!("it ended as `{status}` with code {code}"),
            None => format!("it ended as `{status}`"),
        }),
    }
}
