//! What a kept sandbox has on disk: `sandboxes/<sandbox_id>/{home,artifacts}` beside the projects of
//! its space.

use glovebox_model::{Result, SandboxId, Stage};

use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};
use crate::layout::Layout;

const SANDBOXES: &str = "sandboxes";
const HOME: &str = "home";
const ARTIFACTS: &str = "artifacts";

#[derive(Debug)]
pub struct SandboxFiles {
    /// Its home directory, when it outlives the sandbox.
    pub home: Dir,
    /// Where a container puts the artifacts of whichever exec is in it.
    pub artifacts: Dir,
}

impl Layout {
    /// Made when they are not there.
    pub fn sandbox(&self, id: &SandboxId) -> Result<SandboxFiles> {
        let own = self
            .root()
            .ensure_dir(SANDBOXES, 0o700)
            .and_then(|all| all.ensure_dir(id.as_str(), 0o700))
            .map_err(admitting)?;
        Ok(SandboxFiles {
            home: own.ensure_dir(HOME, 0o755).map_err(admitting)?,
            artifacts: own.ensure_dir(ARTIFACTS, 0o755).map_err(admitting)?,
        })
    }

    /// Whatever programs left in them.
    pub fn remove_sandbox(&self, id: &SandboxId) -> Result<()> {
        let removed = self
            .root()
            .open_name(SANDBOXES)
            .and_then(|all| all.remove_entry(id.as_str()));
        match removed {
            Err(error) if error.kind() != FsErrorKind::NotFound => Err(admitting(error)),
            _ => Ok(()),
        }
    }
}

fn admitting(error: FsError) -> glovebox_model::Error {
    error.at(Stage::Admit)
}
