//! What somebody asked for, before anything was decided. Every surface only makes one of these.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bytestring::ByteString;
use crate::correlation::Correlation;
use crate::id::{ClientId, EnvKey, ProjectId};
use crate::profile::PartialProfile;

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
}

/// What happens to a request that wants more than policy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnExceed {
    #[default]
    Refuse,
    Cap,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub ids: Correlation,
    pub client_id: Option<ClientId>,
    pub workspace: WorkspaceRef,
    pub program: Program,
    /// Relative to `/workspace/work`, or absolute below `/workspace`.
    pub cwd: Option<ByteString>,
    pub env: Vec<EnvVar>,
    pub inputs: Vec<Input>,
    pub mode: Mode,
    pub on_exceed: OnExceed,
    /// The request's own layer.
    pub overrides: PartialProfile,
}
