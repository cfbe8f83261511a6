//! The exec record: one shape in the CLI, the API and the ledger's view.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bytestring::ByteString;
use crate::call::Mode;
use crate::correlation::Correlation;
use crate::error::Error;
use crate::id::{ClientId, EnvKey, ExecId, ProjectId, SandboxId};
use crate::isolation::Isolation;
use crate::limits::LimitKind;
use crate::profile::{BackendName, Capped, Profile, Tier};
use crate::status::Status;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Artifact {
    pub path: ByteString,
    pub size: u64,
    /// SHA-256, hexadecimal.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RiskSignal {
    pub name: String,
    pub tier: Tier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Risk {
    pub tier: Tier,
    pub signals: Vec<RiskSignal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    pub cpu_ms: u64,
    pub max_memory_bytes: u64,
    pub max_pids: u64,
}

/// The end of the path's `judge` stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Keep,
    Hold,
    Discard,
}

/// Proof that the outcome is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptRef {
    pub seq: u64,
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exec {
    pub exec_id: ExecId,
    pub client_id: Option<ClientId>,
    pub project_id: ProjectId,
    pub mode: Mode,
    pub skill_id: Option<String>,
    pub cmd: ByteString,
    pub args: Vec<ByteString>,
    pub cwd: ByteString,
    /// Names only: values are never stored.
    pub env_keys: Vec<EnvKey>,
    pub image: Option<String>,
    pub sandbox_id: Option<SandboxId>,
    pub status: Status,
    /// How many of its space are before it, while it waits. Known to the server alone, not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub killed: bool,
    pub limit_hit: Option<LimitKind>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    /// Head and tail with a marker; the files keep the head up to the cap.
    pub stdout: String,
    pub stderr: String,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub stdout_truncated: bool,
    pub stderr_truncated: bool,
    /// Relative to the state directory, like every path here.
    pub stdout_path: Option<String>,
    pub stderr_path: Option<String>,
    pub artifacts_dir: Option<String>,
    pub artifacts: Vec<Artifact>,
    /// How many were not kept, for their size or their kind; `manifest.json` names them.
    #[serde(default)]
    pub artifacts_dropped: u64,
    pub backend: Option<BackendName>,
    pub isolation: Isolation,
    /// The whole effective policy, not only what was asked.
    pub policy_snapshot: Option<Profile>,
    pub capped: Vec<Capped>,
    pub risk: Risk,
    pub usage: Usage,
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, max_items = 0))]
    pub effects: Vec<Never>,
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, max_items = 0))]
    pub gates: Vec<Never>,
    pub verdict: Option<Verdict>,
    pub error: Option<Error>,
    pub receipt: Option<ReceiptRef>,
    pub ids: Correlation,
}

/// No value exists, so a list of it is always `[]`: `effects` and `gates` are part of the record's
/// shape before simulation fills them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Never {}
