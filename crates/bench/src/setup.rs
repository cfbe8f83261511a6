//! What one measurement works in: temporary directories, the profile that `glovebox run` would have,
//! and the environment inside.

use std::path::{Path, PathBuf};

use glovebox_engine::host_facts;
use glovebox_model::{
    Call, Code, Correlation, Error, Profile, Program, Result, SpaceId, Stage, WorkspaceRef,
};
use glovebox_policy::{Config, Surface, assess, resolve};

/// Its directories are removed with it.
#[derive(Debug)]
pub(crate) struct Setup {
    root: tempfile::TempDir,
    profile: Profile,
}

impl Setup {
    pub(crate) fn new() -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message = "cannot make a temporary directory";
            Error::new(Code::StoreUnavailable, Stage::Parse, message)
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
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn artifacts(&self) -> PathBuf {
        self.root.path().join("artifacts")
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    pub(crate) fn filter(&self) -> PathBuf {
        self.root.path().join("filter.bpf")
    }
}

fn profile(work: &Path) -> Result<Profile> {
    let call = Call::new(
        Correlation::of_space(SpaceId::local()),
        glovebox_model::Vouched::People,
        WorkspaceRef::Adopted(work.to_owned()),
        Program::Argv {
            command: glovebox_model::ByteString::default(),
            args: Vec::new(),
        },
    );
    let system = Config::default().system(Surface::Local, host_facts())?;
    Ok(assess(resolve(call, &system, &[])?).profile().clone())
}

/// The whole environment inside, the same for all contenders.
pub(crate) const ENVIRONMENT: [(&str, &str); 4] = [
    ("HOME", "/home/sandbox"),
    ("LANG", "C.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TERM", "dumb"),
];
