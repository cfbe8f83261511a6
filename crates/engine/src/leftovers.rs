//! What a run makes on the host outside its workspace, written down before it is made, so that
//! whoever finds a dead owner can take it away. One file per owner in the state directory's `run`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_cage::cgroup;
use glovebox_store::StateDir;

/// Removed when the run is over and everything in it is gone.
#[derive(Debug)]
pub(crate) struct Leftovers {
    file: PathBuf,
}

impl Leftovers {
    /// A killed process loses nothing that it wrote; a crashed machine has no control groups left.
    /// So no sync is needed.
    pub(crate) fn note(state: &StateDir, owner: &str, groups: &[PathBuf]) -> io::Result<Self> {
        let file = state.run().join(owner);
        let mut text = Vec::new();
        for group in groups {
            text.extend_from_slice(group.as_os_str().as_bytes());
            text.push(b'\n');
        }
        std::fs::write(&file, text)?;
        Ok(Self { file })
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Takes down what a dead owner noted. Returns the groups that were really still there.
pub(crate) fn clear(state: &StateDir, owner: &str) -> io::Result<Vec<PathBuf>> {
    let file = state.run().join(owner);
    let text = match std::fs::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut cleared = Vec::new();
    for line in text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let group = Path::new(OsStr::from_bytes(line));
        if is_ours(state, owner, group) && cgroup::clear(group)? {
            cleared.push(group.to_owned());
        }
    }
    std::fs::remove_file(file)?;
    Ok(cleared)
}

/// The name that a run's groups have, in any hierarchy.
pub(crate) fn group_name(state: &StateDir, owner: &str) -> String {
    format!("glovebox-{}-{owner}", state.tag())
}

/// A file on disk is not trusted to name any directory: only one that this owner would have made.
fn is_ours(state: &StateDir, owner: &str, group: &Path) -> bool {
    group.starts_with("/sys/fs/cgroup")
        && group.file_name() == Some(OsStr::new(&group_name(state, owner)))
        && !group
            .components()
            .any(|part| part == std::path::Component::ParentDir)
}
