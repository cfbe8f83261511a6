//! The exec record: one shape in the CLI, the API and the ledger's view.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bytestring::ByteString;
use crate::call::Mode;
use crate::consent::Consent;
use crate::correlation::{Correlation, Vouched};
use crate::effect::{Effect, EffectCount};
use crate::error::Error;
use crate::gate::GateResult;
use crate::id::{ApprovalId, ClientId, EnvKey, ExecId, ProjectId, SandboxId, SnapshotId};
use crate::isolation::Isolation;
use crate::limits::LimitKind;
use crate::network::Traffic;
use crate::permit::Ruling;
use crate::profile::{BackendName, Capped, PartialProfile, Profile, Tier, is_default};
use crate::secret::SecretGiven;
use crate::session::SessionTerms;
use crate::status::Status;
use crate::writes::{ChangeCount, Writes};

/// How much of a stream a record shows at most, its head and its tail together.
pub const SHOWN_BYTES_MAX: u64 = 64 << 10;

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

/// What ties a simulation to what is done after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// The simulation: itself, or the one that is carried out.
    pub exec_id: ExecId,
    /// SHA-256 over its program and its effects.
    pub digest: String,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_version: Option<String>,
    /// `sha256:…` over all files of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_digest: Option<String>,
    /// Of an exec that is a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionTerms>,
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
    /// It says that it runs, and the process that ran it is gone. Told by commands without a server,
    /// not stored: a server writes the end down by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub abandoned: bool,
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
    /// Head and tail with a marker, together no more than the cap; the files keep the head up to it.
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
    /// The container runtime that was asked for or configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    pub isolation: Isolation,
    /// The whole effective policy, not only what was asked.
    pub policy_snapshot: Option<Profile>,
    pub capped: Vec<Capped>,
    pub risk: Risk,
    /// The request's own layer, without the values of variables.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub asked: PartialProfile,
    /// What policy said to it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// What people are asked about it, while it waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// Who agreed that it may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    pub usage: Usage,
    /// What it did with its network, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// What it was given, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretGiven>,
    /// The first of them, of an exec whose effects were captured; `…/effects` has all.
    pub effects: Vec<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_count: Option<EffectCount>,
    /// In the order in which they were asked; the first that blocks is the last.
    pub gates: Vec<GateResult>,
    /// A simulation that this does for real, or the digest of what this one showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    #[serde(default, skip_serializing_if = "Writes::is_direct")]
    pub writes: Writes,
    /// Of an exec whose writes were not direct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
    /// The workspace as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_before: Option<SnapshotId>,
    pub verdict: Option<Verdict>,
    pub error: Option<Error>,
    /// What the caller should know though nothing went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub receipt: Option<ReceiptRef>,
    pub ids: Correlation,
    /// On whose word the ids stand; absent for an agent that is bound to neither user nor conversation.
    #[serde(default, skip_serializing_if = "Vouched::is_unproven")]
    pub vouched: Vouched,
}

impl Exec {
    /// How much of its standard output `stdout` has. The text's length does not tell: a marker
    /// stands for what is left out.
    pub fn stdout_shown_bytes(&self) -> u64 {
        let given = self.policy_snapshot.as_ref();
        let cap = given.map_or(SHOWN_BYTES_MAX, |it| it.limits.stdout_bytes.get());
        self.stdout_bytes.min(cap).min(SHOWN_BYTES_MAX)
    }
}
