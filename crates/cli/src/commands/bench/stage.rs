//! What one measurement works in: temporary directories, the profile that `run` would have, and the
//! programs that everybody runs.

use std::path::{Path, PathBuf};

use glovebox_backend::Language;
use glovebox_engine::host_facts;
use glovebox_model::{
    Call, Code, Error, Mode, OnExceed, PartialProfile, Placement, Profile, Program, Result,
    Stage as PathStage, WorkspaceRef, Writes,
};
use glovebox_policy::{Config, Surface, assess, resolve};

use crate::context;

/// Removed with everything in it when the measurement is over.
#[derive(Debug)]
pub(super) struct Stage {
    root: tempfile::TempDir,
    profile: Profile,
}

impl Stage {
    pub(super) fn set() -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message = "cannot make a temporary directory";
            Error::new(Code::StoreUnavailable, PathStage::Parse, message)
                .caused_by(error)
                .hint("set `TMPDIR` to a directory that you may write to")
        };
        let root = tempfile::Builder::new()
            .prefix("glovebox-bench-")
            .tempdir()
            .map_err(failed)?;
        for name in ["state", "work", "artifacts", "bundle"] {
            std::fs::create_dir(root.path().join(name)).map_err(failed)?;
        }
        let profile = profile(&root.path().join("work"))?;
        Ok(Self { root, profile })
    }

    /// Every limit on, as a plain `glovebox run` has them.
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(super) fn artifacts(&self) -> PathBuf {
        self.root.path().join("artifacts")
    }

    pub(super) fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    pub(super) fn filter(&self) -> PathBuf {
        self.root.path().join("filter.bpf")
    }
}

fn profile(work: &Path) -> Result<Profile> {
    let call = Call {
        placement: Placement::Fresh,
        ids: context::local_ids(None),
        client_id: None,
        workspace: WorkspaceRef::Adopted(work.to_owned()),
        program: Program::Argv {
            command: glovebox_model::ByteString::default(),
            args: Vec::new(),
        },
        cwd: None,
        env: Vec::new(),
        inputs: Vec::new(),
        mode: Mode::Run,
        on_exceed: OnExceed::Refuse,
        mounts: Vec::new(),
        secrets: Vec::new(),
        justification: None,
        writes: Writes::Direct,
        simulation: None,
        over: None,
        preview: None,
        skill: None,
        vouched: glovebox_model::Vouched::People,
        overrides: PartialProfile::default(),
    };
    let system = Config::default().system(Surface::Local, host_facts())?;
    Ok(assess(resolve(call, &system, &[])?).profile().clone())
}

/// What everybody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Payload {
    /// Does nothing: what is left is the cost of the sandbox.
    True,
    /// A program as agents start them.
    Python,
    /// Another language that can be started ahead.
    Node,
}

impl Payload {
    pub(super) const ALL: [Self; 3] = [Self::True, Self::Python, Self::Node];

    /// One word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// What can be started ahead of it.
    pub(super) fn language(self) -> Option<Language> {
        match self {
            Self::True => None,
            Self::Python => Some(Language::Python),
            Self::Node => Some(Language::Node),
        }
    }

    pub(super) fn argv(self) -> Vec<&'static str> {
        match self {
            Self::True => vec!["/bin/true"],
            Self::Python => vec!["/usr/bin/python3", "-c", "print(1)"],
            Self::Node => vec!["/usr/bin/node", "-e", "console.log(1)"],
        }
    }

    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::True => "",
            Self::Python | Self::Node => "1\n",
        }
    }

    pub(super) fn is_here(self) -> bool {
        self.argv()
            .first()
            .is_some_and(|path| Path::new(path).exists())
    }
}

/// The whole environment inside, for us and for peers alike.
pub(super) const ENVIRONMENT: [(&str, &str); 4] = [
    ("HOME", "/home/sandbox"),
    ("LANG", "C.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TERM", "dumb"),
];
