//! What runs make on the host outside their workspace: control groups. Where they will be is noted
//! in the owner's file before the first is made, so that whoever finds the owner dead can take them
//! away.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_backend::Ground;
use glovebox_cage::cgroup;
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_store::{DeadOwner, Owner, StateDir};

/// One line for each hierarchy, however many runs there will be.
pub(crate) fn note(state: &StateDir, owner: &Owner, ground: &Ground) -> Result<()> {
    let stem = stem(state, owner.id());
    ground
        .group_parents()
        .iter()
        .try_for_each(|parent| owner.note(parent.join(&stem).as_os_str().as_bytes()))
}

/// Takes down what a dead owner left. Returns the groups that were really still there, or `None`
/// when something could not be taken down.
pub(crate) fn clear(state: &StateDir, dead: &DeadOwner) -> Result<Option<Vec<PathBuf>>> {
    let mut cleared = Vec::new();
    for line in dead.notes()? {
        let noted = Path::new(OsStr::from_bytes(&line));
        if !is_ours(state, dead.id(), noted) {
            continue;
        }
        for group in groups(noted)? {
            match cgroup::clear(&group) {
                Ok(true) => cleared.push(group),
                Ok(false) => {}
                Err(_) => return Ok(None),
            }
        }
    }
    Ok(Some(cleared))
}

/// The name that the groups of an owner's run have, in any hierarchy.
pub(crate) fn group_name(state: &StateDir, owner: &str, number: u64) -> String {
    format!("{}-{number}", stem(state, owner))
}

fn stem(state: &StateDir, owner: &str) -> String {
    format!("glovebox-{}-{owner}", state.tag())
}

/// The groups beside the noted name that an owner's runs have made.
fn groups(noted: &Path) -> Result<Vec<PathBuf>> {
    let (Some(parent), Some(stem)) = (noted.parent(), noted.file_name()) else {
        return Ok(Vec::new());
    };
    let entries = match std::fs::read_dir(parent) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut groups = Vec::new();
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name
            .as_bytes()
            .strip_prefix(stem.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"-"));
        if number.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit)) {
            groups.push(parent.join(name));
        }
    }
    Ok(groups)
}

fn unreadable(error: std::io::Error) -> Error {
    Error::new(
        Code::SetupFailed,
        Stage::Open,
        "cannot look for control groups that a crash has left",
    )
    .caused_by(error)
}

/// A file on disk is not trusted to name any directory: only one that this owner would have made.
fn is_ours(state: &StateDir, owner: &str, noted: &Path) -> bool {
    noted.starts_with("/sys/fs/cgroup")
        && noted.file_name() == Some(OsStr::new(&stem(state, owner)))
        && !noted
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
        let name = stem(&state, "0123456789abcdef");
        let ours = |path: String| is_ours(&state, "0123456789abcdef", Path::new(&path));
        assert!(ours(format!("/sys/fs/cgroup/memory/a/{name}")));
        assert!(!ours(format!("/tmp/{name}")));
        assert!(!ours(format!("/sys/fs/cgroup/../../tmp/{name}")));
        assert!(!ours("/sys/fs/cgroup/memory/system.slice".to_owned()));
        assert!(!ours(format!("/sys/fs/cgroup/{}", stem(&state, "other"))));
    }

    #[test]
    fn the_groups_of_an_owner_are_those_with_its_name_and_a_number() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "it-0", "it-17", "it", "it-x", "it-1-2", "other-0", "itself-1",
        ] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut found = groups(&dir.path().join("it")).unwrap();
        found.sort();
        assert_eq!(found, [dir.path().join("it-0"), dir.path().join("it-17")]);
        assert!(groups(Path::new("/nowhere/it")).unwrap().is_empty());
    }
}
