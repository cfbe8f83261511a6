//! What somebody asked for, before anything was decided. Every surface only makes one of these.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bytestring::ByteString;
use crate::correlation::{Correlation, Vouched};
use crate::exec::Preview;
use crate::id::{ClientId, EnvKey, ExecId, ProjectId};
use crate::profile::PartialProfile;
use crate::sandbox::Placement;
use crate::secret::SecretUse;
use crate::session::SessionTerms;
use crate::simulation::Simulation;
use crate::skill::SkillCall;
use crate::writes::Writes;

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Program {
    /// Any command, looked up in the sandbox's own PATH.
    Argv {
        command: ByteString,
        args: Vec<ByteString>,
    },
    Shell {
        script: ByteString,
    },
    Python {
        code: ByteString,
    },
    Javascript {
        code: ByteString,
    },
}

impl Program {
    /// It starts as one of the usual shells, by whatever path.
    pub fn starts_shell(&self) -> bool {
        let argv = self.argv();
        let program = argv.first().map(ByteString::display).unwrap_or_default();
        matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash"))
    }

    /// The argv that is really executed.
    pub fn argv(&self) -> Vec<ByteString> {
        let word = |text: &str| ByteString::try_from(text).unwrap_or_default();
        match self {
            Self::Argv { command, args } => std::iter::once(command.clone())
                .chain(args.iter().cloned())
                .collect(),
            Self::Shell { script } => vec![word("bash"), word("-lc"), script.clone()],
            Self::Python { code } => vec![word("python3"), word("-c"), code.clone()],
            Self::Javascript { code } => vec![word("node"), word("-e"), code.clone()],
        }
    }
}

/// Which files the exec works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceRef {
    /// A directory of the caller's own, adopted as the workspace. Only the in-process CLI has this.
    Adopted(PathBuf),
    /// A workspace that Glovebox keeps, by name.
    Project(ProjectId),
    /// An empty one that is gone afterwards.
    Scratch,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    pub key: EnvKey,
    pub value: ByteString,
}

/// A file placed in the read-only inputs before the program starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Relative to the inputs directory; checked when it is placed.
    pub path: ByteString,
    pub content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Run,
    /// Effects are captured, nothing leaves, and nothing is kept before somebody says so.
    Simulate,
    /// As `Run` beside the workspace; what it wrote is kept if the gates agree.
    Transactional,
    /// Policy is asked and nothing is run: the answer is the one that was given beforehand.
    Mock,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Run, Self::Simulate, Self::Transactional, Self::Mock];

    /// Whether gates have a word in it.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::Simulate | Self::Transactional)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Simulate => "simulate",
            Self::Transactional => "transactional",
            Self::Mock => "mock",
        }
    }
}

/// What happens to a request that wants more than policy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnExceed {
    #[default]
    Refuse,
    Cap,
    /// An escalation: a person is asked, up to the operator's ceilings.
    Ask,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub ids: Correlation,
    #[serde(default)]
    pub vouched: Vouched,
    pub client_id: Option<ClientId>,
    pub workspace: WorkspaceRef,
    #[serde(default)]
    pub placement: Placement,
    pub program: Program,
    /// Relative to `/workspace/work`, or absolute below `/workspace`.
    pub cwd: Option<ByteString>,
    pub env: Vec<EnvVar>,
    pub inputs: Vec<Input>,
    /// Directories of the host that the operator would show, by where they stand in the sandbox.
    #[serde(default)]
    pub mounts: Vec<String>,
    /// Secrets that it wants, by name.
    #[serde(default)]
    pub secrets: Vec<SecretUse>,
    pub mode: Mode,
    pub on_exceed: OnExceed,
    /// Why it needs more than policy gives, in the words of whoever asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    #[serde(default)]
    pub writes: Writes,
    /// What a simulated program is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Simulation>,
    /// The exec whose changes wait and are there for this one, as if they had been kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<ExecId>,
    /// The simulation that this does for real: what it did not show is not let out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// The skill that this is a call of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillCall>,
    /// Its program is talked to while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionTerms>,
    /// The request's own layer.
    pub overrides: PartialProfile,
}

impl Call {
    /// A run of this program under what policy gives, and nothing more.
    pub fn new(
        ids: Correlation,
        vouched: Vouched,
        workspace: WorkspaceRef,
        program: Program,
    ) -> Self {
        Self {
            ids,
            vouched,
            client_id: None,
            workspace,
            placement: Placement::default(),
            program,
            cwd: None,
            env: Vec::new(),
            inputs: Vec::new(),
            mounts: Vec::new(),
            secrets: Vec::new(),
            mode: Mode::Run,
            on_exceed: OnExceed::Refuse,
            justification: None,
            writes: Writes::default(),
            simulation: None,
            over: None,
            preview: None,
            skill: None,
            session: None,
            overrides: PartialProfile::default(),
        }
    }
}
