//! The directories of a sandbox as mounts of a container: where they lie for the engine, and whose
//! they are.
//!
//! Programs run as the workspace's owner, so that what they make belongs to whoever the rest belongs
//! to. Only when that is root, who no program may be, the directories themselves (nothing in them or
//! above them) are given to the user of the settings.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

use glovebox_model::{Access, Code, Error, Result, Stage};
use glovebox_workspace::adapter::EngineView;
use glovebox_workspace::{Dir, RelPath};
use rustix::fs::{AtFlags, Gid, Uid};

use super::binds::plain;
use super::mount::{Mount, on_host};
use super::settings::{Settings, Tmpfs, User};
use crate::spec::{Place, Spec};

pub(super) const WORK: &str = "/workspace/work";
pub(super) const INPUTS: &str = "/workspace/inputs";
pub(super) const ARTIFACTS: &str = "/workspace/artifacts";
const HOME: &str = "/home/sandbox";

/// What of a sandbox comes from the host, and who programs are.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) mounts: Vec<Mount>,
    pub(super) scratch: Vec<Tmpfs>,
    pub(super) user: User,
    /// To look below, where a directory inside is a directory of ours.
    trees: Vec<(&'static str, Dir)>,
}

impl Places {
    pub(super) fn new(spec: &Spec<'_>, settings: &Settings, seen: &EngineView) -> Result<Self> {
        let user = owner(spec, settings)?;
        let mut places = Self {
            mounts: Vec::new(),
            scratch: Vec::new(),
            user,
            trees: Vec::new(),
        };
        for (place, target) in [
            (&spec.work, WORK),
            (&spec.inputs, INPUTS),
            (&spec.artifacts, ARTIFACTS),
        ] {
            match place {
                Place::Tree(tree) => match tree.access {
                    Access::None => {}
                    access @ (Access::Ro | Access::Rw) => {
                        places.mount(tree.directory, target, access, seen)?;
                    }
                },
                Place::Empty if target == WORK => places.in_memory(WORK),
                Place::Empty => {}
                Place::Later(_) => {
                    return Err(Error::new(
                        Code::BackendUnavailable,
                        Stage::Open,
                        "a container's directories must be known when it is made",
                    )
                    .hint("use the `native` backend for sandboxes that are made ahead"));
                }
            }
        }
        match spec.home {
            Some(home) => places.mount(home, HOME, Access::Rw, seen)?,
            None if settings.config.read_only_root => places.in_memory(HOME),
            None => {}
        }
        for mount in &spec.mounts {
            let source = seen.translate(&path_of(mount.directory())?)?;
            let target = mount.guest().to_string_lossy();
            let mount = Mount::new(&source, &target, mount.access())?;
            places.mounts.extend(mount);
        }
        for bind in &settings.binds {
            let refuse = |why: &dyn std::fmt::Display| {
                Error::new(
                    Code::InvalidConfig,
                    Stage::Open,
                    format!("the bind of `{}` {why}", bind.source.display()),
                )
                .hint("it was accepted when Glovebox started; what it leads to has changed")
            };
            let rules = &settings.bind_rules;
            let source = rules.resolve(bind).map_err(|why| refuse(&why))?;
            let source = on_host(&source).map_err(|fault| refuse(&fault))?;
            let target = bind.target.to_string_lossy();
            let access = match bind.writable {
                true => Access::Rw,
                false => Access::Ro,
            };
            places.mounts.extend(Mount::new(&source, &target, access)?);
        }
        Ok(places)
    }

    fn mount(
        &mut self,
        directory: &Dir,
        target: &'static str,
        access: Access,
        seen: &EngineView,
    ) -> Result<()> {
        let path = path_of(directory)?;
        if access == Access::Rw {
            give(directory, self.user)?;
        }
        let source = seen.translate(&path)?;
        self.mounts.extend(Mount::new(&source, target, access)?);
        let copy = directory.try_clone().map_err(|error| gone(&error))?;
        self.trees.push((target, copy));
        Ok(())
    }

    /// Programs are built and installed there, unlike in `/tmp`.
    fn in_memory(&mut self, path: &str) {
        let User { uid, gid } = self.user;
        // Some runtimes give it the mode of the image's directory, whatever is asked for.
        self.scratch.push(Tmpfs {
            path: path.to_owned(),
            options: vec![
                "exec".to_owned(),
                format!("uid={uid}"),
                format!("gid={gid}"),
            ],
        });
    }

    pub(super) fn check_cwd(&self, cwd: &str) -> Result<()> {
        Self::check_below(self.trees.iter().map(|(target, tree)| (*target, tree)), cwd)
    }

    /// The engine would make a working directory that is not there, as root, in the workspace.
    pub(super) fn check_below<'a>(
        mut trees: impl Iterator<Item = (&'static str, &'a Dir)>,
        cwd: &str,
    ) -> Result<()> {
        let path = Path::new(cwd);
        let refuse = |why: &dyn std::fmt::Display| {
            Error::new(
                Code::CwdNotFound,
                Stage::Run,
                "the working directory cannot be entered",
            )
            .caused_by(why)
            .hint("`--cwd` is relative to the workspace, or absolute below `/workspace`")
        };
        let mut steps = path.components().skip(1);
        if !path.is_absolute() || !steps.all(|it| matches!(it, Component::Normal(_))) {
            return Err(refuse(&"it is not a plain absolute path"));
        }
        let below = trees.find_map(|(target, tree)| Some((path.strip_prefix(target).ok()?, tree)));
        match below {
            Some((rest, tree)) if !rest.as_os_str().is_empty() => {
                let rest = rest.to_string_lossy();
                let rest = RelPath::new(rest.as_bytes()).map_err(|error| refuse(&error))?;
                tree.open_dir(&rest)
                    .map(drop)
                    .map_err(|error| refuse(&error))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// As a path, which is still the same directory.
pub(super) fn path_of(directory: &Dir) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    let path = std::fs::read_link(link).map_err(|error| gone(&error))?;
    plain(&path).map_err(|why| {
        Error::new(
            Code::WorkspaceRefused,
            Stage::Open,
            "the workspace cannot be given to a container",
        )
        .caused_by(format!("its path {why}"))
        .hint("rename the directory, or use the `native` backend")
    })?;
    let held = rustix::fs::fstat(directory).map_err(|errno| gone(&errno))?;
    let named = rustix::fs::stat(&path).map_err(|errno| gone(&errno))?;
    if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino) {
        return Err(gone(&"another directory stands at its path"));
    }
    Ok(path)
}

fn gone(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Open,
        "a workspace directory is gone",
    )
    .caused_by(why)
}

fn owner(spec: &Spec<'_>, settings: &Settings) -> Result<User> {
    let us = (rustix::process::geteuid(), rustix::process::getegid());
    if !us.0.is_root() {
        // Without privilege nothing can be given away; our own files are ours inside as well.
        return Ok(User {
            uid: us.0.as_raw(),
            gid: us.1.as_raw(),
        });
    }
    let Place::Tree(work) = &spec.work else {
        return Ok(settings.user);
    };
    if work.access != Access::Rw {
        return Ok(settings.user);
    }
    let facts = rustix::fs::fstat(work.directory).map_err(|errno| gone(&errno))?;
    if facts.st_uid == 0 || facts.st_gid == 0 {
        return Ok(settings.user);
    }
    Ok(User {
        uid: facts.st_uid,
        gid: facts.st_gid,
    })
}

pub(super) fn give(directory: &Dir, user: User) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let facts = rustix::fs::fstat(directory).map_err(|errno| gone(&errno))?;
    if (facts.st_uid, facts.st_gid) == (user.uid, user.gid) {
        return Ok(());
    }
    let ids = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::fs::chownat(
        directory,
        c"",
        Some(ids.0),
        Some(ids.1),
        AtFlags::EMPTY_PATH,
    )
    .map_err(|errno| {
        Error::new(
            Code::SetupFailed,
            Stage::Open,
            "cannot give a directory to the user inside",
        )
        .caused_by(errno)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_exchanged_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        let scratch = tempfile::tempdir()?;
        let path = scratch.path().join("work");
        std::fs::create_dir(&path)?;
        let held = Dir::open_trusted(&path)?;
        assert_eq!(path_of(&held)?, path.canonicalize()?);
        std::fs::remove_dir(&path)?;
        assert!(path_of(&held).is_err());
        std::fs::create_dir(&path)?;
        assert!(path_of(&held).is_err());
        std::fs::create_dir(scratch.path().join("two\nlines"))?;
        assert!(path_of(&Dir::open_trusted(&scratch.path().join("two\nlines"))?).is_err());
        Ok(())
    }
}
