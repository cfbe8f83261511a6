//! Whether a directory of the caller's own may be a workspace: a sandbox can write it, so nothing
//! may be adopted that the machine, the account or Glovebox itself lives in.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, ProjectId, Result, Stage};
use rustix::fd::{AsFd, AsRawFd};
use sha2::{Digest, Sha256};

use crate::dir::Dir;
use crate::fault::FsErrorKind;
use crate::hex::hex;
use crate::relpath::shown;

/// Refused with everything below.
const SYSTEM_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
];

/// Below these people do keep work of their own, although they lie in a system tree.
const ALLOWED_BELOW: &[&str] = &["/dev/shm", "/run/user"];

/// Refused themselves; directories below them are fine.
const SYSTEM_ROOTS: &[&str] = &[
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/usr",
    "/usr/local",
    "/usr/src",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
];

pub(crate) struct Adopted {
    pub(crate) dir: Dir,
    pub(crate) project_id: ProjectId,
}

/// Resolves `path` once. The checks are about the directory that is held afterwards, so a link that
/// is changed later changes nothing.
pub(crate) fn adopt(path: &Path, homes: &[&Path], state: &Dir) -> Result<Adopted> {
    let dir = Dir::open_trusted(path).map_err(|error| match error.kind() {
        FsErrorKind::NotFound => missing(path, "does not exist"),
        FsErrorKind::NotADirectory => missing(path, "is not a directory"),
        _ => error.at(Stage::Resolve),
    })?;
    let real = host_path(&dir)?;
    if let Some(reason) = refusal(&dir, &real, homes, state)? {
        return Err(refused(&real, &reason));
    }
    let digest = Sha256::digest(real.as_os_str().as_bytes());
    let project_id = format!("{ADOPTED_PREFIX}{}", hex(&digest[..8]))
        .parse()
        .map_err(|error| Error::new(Code::Internal, Stage::Resolve, format!("{error}")))?;
    Ok(Adopted { dir, project_id })
}

const ADOPTED_PREFIX: &str = "cwd-";

/// Whether it is the id of a directory of somebody's own.
pub fn is_adopted(id: &ProjectId) -> bool {
    id.as_str().starts_with(ADOPTED_PREFIX)
}

fn refusal(dir: &Dir, real: &Path, homes: &[&Path], state: &Dir) -> Result<Option<String>> {
    let id = dir.id().map_err(|error| error.at(Stage::Resolve))?;
    // By identity too: a second mount of the same directory has another path.
    let is = |other: &Dir| other.id().is_ok_and(|other| other == id);
    if real == Path::new("/") || Dir::open_trusted(Path::new("/")).is_ok_and(|root| is(&root)) {
        return Ok(Some("it is the whole machine".to_owned()));
    }
    for home in homes {
        let Ok(home) = Dir::open_trusted(home) else {
            continue;
        };
        if is(&home) {
            return Ok(Some("it is the home directory itself".to_owned()));
        }
        if host_path(&home)?.starts_with(real) {
            return Ok(Some("the home directory is inside it".to_owned()));
        }
    }
    let state_path = host_path(state)?;
    if is(state) || state_path.starts_with(real) {
        return Ok(Some("Glovebox keeps its own state in it".to_owned()));
    }
    if real.starts_with(&state_path) {
        return Ok(Some("it is inside Glovebox's state directory".to_owned()));
    }
    Ok(system_directory(real).map(|tree| format!("`{tree}` belongs to the system")))
}

fn system_directory(real: &Path) -> Option<&'static str> {
    let allowed = ALLOWED_BELOW
        .iter()
        .any(|tree| real.starts_with(tree) && real != Path::new(tree));
    if allowed {
        return None;
    }
    let tree = SYSTEM_TREES.iter().find(|tree| real.starts_with(tree));
    let root = SYSTEM_ROOTS.iter().find(|root| real == Path::new(root));
    tree.or(root).copied()
}

/// Where the held directory is now, by the kernel's own account.
pub(crate) fn host_path(dir: &Dir) -> Result<PathBuf> {
    let fault = |why: &str| {
        Error::new(
            Code::WorkspaceRefused,
            Stage::Resolve,
            format!("cannot tell where the workspace directory is: {why}"),
        )
        .hint("check that `/proc` is mounted and that the directory was not deleted")
    };
    let stat = dir.stat_self().map_err(|error| error.at(Stage::Resolve))?;
    if stat.links == 0 {
        return Err(fault("it was deleted"));
    }
    let own = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    let target = rustix::fs::readlink(own.as_str(), Vec::new())
        .map_err(|errno| fault(&errno.to_string()))?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes()));
    match path.is_absolute() {
        true => Ok(path),
        false => Err(fault("it is outside the root of this process")),
    }
}

fn missing(path: &Path, why: &str) -> Error {
    let path = shown(path.as_os_str().as_bytes());
    Error::new(
        Code::WorkspaceRefused,
        Stage::Resolve,
        format!("workspace `{path}` {why}"),
    )
    .hint("change into the directory to work in, or use `--project ID` for a workspace that Glovebox keeps")
    .hint("`glovebox run` also takes `--scratch`, for an empty one")
}

fn refused(real: &Path, reason: &str) -> Error {
    let path = shown(real.as_os_str().as_bytes());
    Error::new(
        Code::WorkspaceRefused,
        Stage::Resolve,
        format!("`{path}` cannot be a workspace: {reason}"),
    )
    .hint("change into a project directory below it")
    .hint("or use `--project ID` for a workspace that Glovebox keeps")
    .hint("`glovebox run` also takes `--scratch`, for an empty one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_directories_are_known_by_place() {
        for path in [
            "/etc",
            "/etc/ssl",
            "/usr",
            "/usr/bin",
            "/proc/1",
            "/var",
            "/run/lock",
            "/dev/shm",
        ] {
            assert!(system_directory(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/usr/local/src/app",
            "/var/lib/ci/job",
            "/srv/app",
            "/root/app",
            "/etcetera",
            "/dev/shm/app",
            "/run/user/1000/app",
            "/home/me/usr/bin",
            "/tmp/a",
        ] {
            assert_eq!(system_directory(Path::new(path)), None, "{path}");
        }
    }
}
