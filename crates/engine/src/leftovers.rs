//! What a run makes on the host outside its workspace: control groups. They are noted in the owner's
//! file before they are made, so that whoever finds the owner dead can take them away.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_cage::cgroup;
use glovebox_model::Result;
use glovebox_store::{DeadOwner, Owner, StateDir};

pub(crate) fn note(owner: &Owner, groups: &[PathBuf]) -> Result<()> {
    groups
        .iter()
        .try_for_each(|group| owner.note(group.as_os_str().as_bytes()))
}

/// Takes down what a dead owner noted. Returns the groups that were really still there, or `None`
/// when something could not be taken down.
pub(crate) fn clear(state: &StateDir, dead: &DeadOwner) -> Result<Option<Vec<PathBuf>>> {
    let mut cleared = Vec::new();
    for line in dead.notes()? {
        let group = Path::new(OsStr::from_bytes(&line));
        if !is_ours(state, dead.id(), group) {
            continue;
        }
        match cgroup::clear(group) {
            Ok(true) => cleared.push(group.to_owned()),
            Ok(false) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(cleared))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_that_very_owner_are_taken_down() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let name = group_name(&state, "0123456789abcdef");
        let ours = |path: String| is_ours(&state, "0123456789abcdef", Path::new(&path));
        assert!(ours(format!("/sys/fs/cgroup/memory/a/{name}")));
        assert!(!ours(format!("/tmp/{name}")));
        assert!(!ours(format!("/sys/fs/cgroup/../../tmp/{name}")));
        assert!(!ours("/sys/fs/cgroup/memory/system.slice".to_owned()));
        assert!(!ours(format!(
            "/sys/fs/cgroup/{}",
            group_name(&state, "other")
        )));
    }
}
