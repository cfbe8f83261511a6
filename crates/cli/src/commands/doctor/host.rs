//! The host around the backends: its kernel, its control groups, who we are, where we write.

use std::path::{Path, PathBuf};

use glovebox_model::{Error, Result};
use glovebox_store::{StateDir, Store};
use rustix::fs::{Access, AtFlags, CWD};

use super::report::Check;

pub(super) fn checks(state: Result<PathBuf>) -> Vec<Check> {
    vec![kernel(), control_groups(), caller(), state_directory(state)]
}

fn kernel() -> Check {
    let host = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let (system, release, machine) = (host.sysname(), host.release(), host.machine());
    Check::ok(
        "kernel",
        format!("{} {} {}", text(system), text(release), text(machine)),
    )
}

/// Which kind is mounted. What can be done with them stands at each limit.
fn control_groups() -> Check {
    const ROOT: &str = "/sys/fs/cgroup";
    let there = |name: &str| Path::new(ROOT).join(name).exists();
    let evidence = if there("cgroup.controllers") {
        format!("version 2 at {ROOT}")
    } else if there("memory") || there("pids") || there("cpu") {
        format!("version 1 at {ROOT}")
    } else {
        format!("none at {ROOT}; limits are supervised")
    };
    Check::ok("control groups", evidence)
}

fn caller() -> Check {
    let uid = rustix::process::geteuid();
    let evidence = if uid.is_root() {
        "root; sandboxes run as an unprivileged id of their own".to_owned()
    } else {
        format!("user {}; sandboxes run as this user", uid.as_raw())
    };
    Check::ok("user", evidence)
}

pub(super) fn bad_config(error: &Error) -> Check {
    let fix = match error.hints.as_slice() {
        [] => "`glovebox policy check FILE` says where".to_owned(),
        hints => hints.join("; "),
    };
    Check::failed("configuration", error.to_string(), fix)
}

const STATE: &str = "state directory";

/// Opened if it is there; not made if it is not.
fn state_directory(path: Result<PathBuf>) -> Check {
    const ANOTHER: &str = "name another with `--state-dir DIR` or `GLOVEBOX_STATE_DIR`";
    let path = match path {
        Ok(path) => path,
        Err(error) => return Check::failed(STATE, error.to_string(), error.hints.join("; ")),
    };
    let shown = path.display();
    if !path.exists() {
        return match nearest_existing(&path) {
            Some(parent) if writable(parent) => {
                Check::ok(STATE, format!("{shown} is made at the first run"))
            }
            _ => Check::failed(STATE, format!("{shown} cannot be made"), ANOTHER),
        };
    }
    let opened = StateDir::open(&path).and_then(|state| {
        // The database too, unless nothing ever ran.
        state
            .database()
            .exists()
            .then(|| Store::open(&state))
            .transpose()
    });
    match opened {
        Ok(_) => Check::ok(STATE, format!("{shown} is ours and can be written")),
        Err(error) => {
            let fix = match error.hints.first() {
                Some(hint) => hint.clone(),
                None => ANOTHER.to_owned(),
            };
            Check::failed(STATE, error.to_string(), fix)
        }
    }
}

fn nearest_existing(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|parent| parent.exists())
}

fn writable(path: &Path) -> bool {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::report::Health;
    use super::*;

    #[test]
    fn a_missing_state_directory_is_looked_for_and_not_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        let check = state_directory(Ok(path.clone()));
        assert_eq!(check.health, Health::Ok);
        assert!(check.evidence.ends_with("a/b is made at the first run"));
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn a_state_directory_that_others_may_write_comes_with_its_fix() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.path(), open).unwrap();
        let check = state_directory(Ok(place.path().to_owned()));
        assert_eq!(check.health, Health::Failed);
        assert!(check.fix.unwrap().contains("chmod 700"));
    }
}
