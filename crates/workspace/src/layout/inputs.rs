//! Where the files lie that callers send along. What people send is the workspace's; what an agent
//! sends is that agent's: another one of the space neither reads it nor puts something in its place,
//! though they work on the same files.

use glovebox_model::{ExecId, Result};

use super::{ORDINARY, PROJECTS, Project, WorkKind, opening, reading};
use crate::dir::Dir;
use crate::fault::FsErrorKind;

const INPUTS: &str = "inputs";
/// Followed by a hash: an agent's id is free text.
const OF_AGENT: &str = "inputs-";
const HASH: usize = 32;
const SKILL: &str = "skill";
const CALLED: &str = "called";
/// More agents than work on one workspace.
const MOST: usize = 100_000;

impl Project {
    /// The same for an exec of this agent; none for people. Those of a scratch workspace are apart
    /// already: each is its exec's.
    #[must_use]
    pub fn of_agent(self, agent: Option<&str>) -> Self {
        let agent = agent.filter(|_| self.kind != WorkKind::Scratch);
        Self {
            agent: agent.map(str::to_owned),
            ..self
        }
    }

    /// Whose exec it is opened for.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Where the inputs of its execs lie: all of those that are not an agent's, or of this one's.
    pub fn inputs(&self) -> Result<Dir> {
        self.home
            .ensure_dir(&self.inputs_name(), ORDINARY)
            .map_err(opening)
    }

    /// The inputs that go when it is emptied: an agent's own, or with those of people all.
    pub(crate) fn inputs_to_empty(&self) -> Result<Vec<Dir>> {
        if self.agent.is_some() {
            return Ok(vec![self.inputs()?]);
        }
        let listing = self.home.list(MOST).map_err(reading)?;
        let names = listing.entries.iter().map(|entry| entry.name.display());
        let names = names.filter(|name| name == INPUTS || name.starts_with(OF_AGENT));
        names
            .map(|name| self.home.open_name(&name).map_err(reading))
            .collect()
    }

    /// Whether anything lies there that others sent: people, or another agent.
    pub fn has_inputs_of_others(&self) -> Result<bool> {
        let own = self.inputs_name();
        let listing = self.home.list(MOST).map_err(reading)?;
        let names = listing.entries.iter().map(|entry| entry.name.display());
        let others = names.filter(|name| name == INPUTS || name.starts_with(OF_AGENT));
        for name in others.filter(|name| *name != own) {
            let inputs = self.home.open_name(&name).map_err(reading)?;
            if !inputs.list(1).map_err(reading)?.entries.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Relative to the state directory.
    pub(crate) fn inputs_path(&self) -> String {
        format!("{PROJECTS}/{}/{}", self.id, self.inputs_name())
    }

    fn inputs_name(&self) -> String {
        match &self.agent {
            None => INPUTS.to_owned(),
            Some(agent) => {
                let hash = blake3::hash(agent.as_bytes()).to_hex();
                format!("{OF_AGENT}{}", &hash[..HASH])
            }
        }
    }

    /// Removes the inputs that only this exec had: all of a scratch exec's, and the one that a
    /// skill was called with.
    pub fn forget_inputs(&self, exec: &ExecId) -> Result<()> {
        let inputs = self.home.open_name(&self.inputs_name());
        let removed = match self.kind {
            WorkKind::Scratch => inputs.and_then(|inputs| inputs.remove_entry(exec.as_str())),
            WorkKind::Managed | WorkKind::Adopted => inputs
                .and_then(|inputs| inputs.open_name(SKILL))
                .and_then(|skill| skill.open_name(CALLED))
                .and_then(|called| called.remove_entry(&called_name(exec))),
        };
        match removed {
            Err(error) if error.kind() != FsErrorKind::NotFound => Err(opening(error)),
            _ => Ok(()),
        }
    }
}

fn called_name(exec: &ExecId) -> String {
    format!("{exec}.json")
}

/// Where the input lies that a skill was called with, below the inputs.
pub fn skill_input(exec: &ExecId) -> String {
    format!("{SKILL}/{CALLED}/{}", called_name(exec))
}

/// Whether a path below the inputs is a skill's.
pub fn is_skill_input(path: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').next();
    first == Some(SKILL.as_bytes())
}
