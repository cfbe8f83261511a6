//! Where the paths of a workspace really are. Inside a sandbox they are mounts; on the host they are
//! the directories themselves, held by handle.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use glovebox_model::{Access, ByteString, Code, Error, Result, Stage};
use glovebox_workspace::{Dir, RelPath};

use crate::spec::{Place, Spec};

const WORK: &str = "/workspace/work";
const INPUTS: &str = "/workspace/inputs";
const ARTIFACTS: &str = "/workspace/artifacts";

/// The directories of one exec, by the path that it knows them under.
#[derive(Debug)]
pub(super) struct Places(Vec<Held>);

#[derive(Debug)]
struct Held {
    guest: &'static str,
    variable: &'static str,
    directory: Dir,
}

impl Places {
    pub(super) fn new(spec: &Spec<'_>) -> Result<Self> {
        let mut held = Vec::new();
        for (place, guest, variable) in [
            (&spec.work, WORK, "GLOVEBOX_WORK"),
            (&spec.inputs, INPUTS, "GLOVEBOX_INPUTS"),
            (&spec.artifacts, ARTIFACTS, "GLOVEBOX_ARTIFACTS"),
        ] {
            let tree = match place {
                Place::Tree(tree) => tree,
                Place::Empty if guest != WORK => continue,
                Place::Empty | Place::Later(_) => {
                    return Err(
                        refused("a program on the host needs a workspace that is there")
                            .hint("name one: `--project NAME`, or leave out `--scratch`"),
                    );
                }
            };
            if guest == WORK && tree.access != Access::Rw {
                return Err(refused(
                    "nothing keeps a program on the host from writing to its workspace",
                )
                .hint("allow it (`workspace = \"rw\"`), or leave out `--backend host`"));
            }
            let directory = tree.directory.try_clone();
            held.push(Held {
                guest,
                variable,
                directory: directory.map_err(|error| gone(&error))?,
            });
        }
        Ok(Self(held))
    }

    /// The directory that a path of the workspace means. Links in it lead nowhere outside.
    pub(super) fn directory(&self, guest: &ByteString) -> Result<Dir> {
        let refuse = |why: &dyn std::fmt::Display| {
            Error::new(
                Code::CwdNotFound,
                Stage::Run,
                "the working directory cannot be entered",
            )
            .caused_by(why)
            .hint("`--cwd` is relative to the workspace, or absolute below `/workspace`")
        };
        let Some((held, rest)) = self.below(guest.as_bytes()) else {
            return Err(refuse(&"it is not one of the workspace's"));
        };
        if rest.is_empty() {
            return held.directory.try_clone().map_err(|error| refuse(&error));
        }
        let rest = RelPath::new(rest).map_err(|error| refuse(&error))?;
        held.directory
            .open_dir(&rest)
            .map_err(|error| refuse(&error))
    }

    /// A command that is named by its path in the workspace, as the host knows it.
    pub(super) fn command(&self, guest: &[u8]) -> Result<Vec<u8>> {
        match self.below(guest) {
            Some((held, rest)) if !rest.is_empty() => {
                Ok([path_of(&held.directory)?.as_slice(), b"/", rest].concat())
            }
            Some(_) | None => Ok(guest.to_vec()),
        }
    }

    /// For programs, which know the host's paths only: where each directory is.
    pub(super) fn variables(&self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let all = self.0.iter();
        all.map(|held| Ok((held.variable, path_of(&held.directory)?)))
            .collect()
    }

    fn below<'path>(&self, guest: &'path [u8]) -> Option<(&Held, &'path [u8])> {
        self.0.iter().find_map(|held| {
            let rest = guest.strip_prefix(held.guest.as_bytes())?;
            match rest.strip_prefix(b"/") {
                Some(rest) => Some((held, rest)),
                None => rest.is_empty().then_some((held, rest)),
            }
        })
    }
}

/// As a path, which is still the same directory.
fn path_of(directory: &Dir) -> Result<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    let path: PathBuf = std::fs::read_link(link).map_err(|error| gone(&error))?;
    let held = rustix::fs::fstat(directory).map_err(|errno| gone(&errno))?;
    let named = rustix::fs::stat(&path).map_err(|errno| gone(&errno))?;
    if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino) {
        return Err(gone(&"another directory stands at its path"));
    }
    Ok(path.as_os_str().as_bytes().to_vec())
}

fn refused(message: &str) -> Error {
    Error::new(Code::BackendUnavailable, Stage::Admit, message.to_owned())
}

fn gone(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Run,
        "a workspace directory is gone",
    )
    .caused_by(why)
}
