//! Trees for a sandbox: opened by root in the host's mount namespace, with their owner on disk shown
//! as the sandbox's user.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::errno;
use crate::apply::{copy_of, open_source};
use crate::plan::{Ids, Namespace, Source};
use crate::sys::{self, Cloned, Result};
use crate::wire::{At, Failure};

/// One user namespace for each owner that was met.
pub(super) struct IdMaps {
    ids: Ids,
    made: Vec<((u32, u32), OwnedFd)>,
    spare: Option<Holder>,
}

impl IdMaps {
    pub(super) fn new(ids: Ids, spare: Option<Holder>) -> Self {
        let made = Vec::new();
        Self { ids, made, spare }
    }

    /// Makes the one for this process's own user ahead of its need.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        self.position(uid, gid)?;
        self.forget_holder();
        Ok(())
    }

    pub(super) fn forget_holder(&mut self) {
        self.spare = None;
    }

    /// A detached copy of a source, with `attributes` set on it.
    pub(super) fn open(
        &mut self,
        source: &Source,
        target: &CStr,
        handles: &[OwnedFd],
        attributes: u64,
    ) -> Result<OwnedFd, Failure> {
        let target = target.to_string_lossy();
        match source {
            Source::Path { path, identity } => {
                let name = format!("open {}", path.to_string_lossy());
                let tree = open_source(path, *identity).at(&name)?;
                if attributes != 0 {
                    sys::set_mount_attributes(tree.as_fd(), attributes, None).at(&name)?;
                }
                Ok(tree)
            }
            Source::Below { index, path } => {
                let name = format!("open {} for {target}", path.to_string_lossy());
                let handle = handles.get(*index).ok_or(Errno::BADF).at(&name)?;
                let tree = below(handle, path).at(&name)?;
                if attributes != 0 {
                    sys::set_mount_attributes(tree.as_fd(), attributes, None).at(&name)?;
                }
                Ok(tree)
            }
            Source::Handle { index, uid, gid } => {
                let name = format!("id-map {target}");
                let handle = handles.get(*index).ok_or(Errno::BADF).at(&name)?;
                let position = self.position(*uid, *gid).at("id-map holder")?;
                let tree = copy_of(handle, c"").at(&name)?;
                let map = self.made[position].1.as_fd();
                sys::set_mount_attributes(tree.as_fd(), attributes, Some(map)).at(&name)?;
                Ok(tree)
            }
        }
    }

    fn position(&mut self, uid: u32, gid: u32) -> Result<usize> {
        let known = self.made.iter().position(|(owner, _)| *owner == (uid, gid));
        if let Some(position) = known {
            return Ok(position);
        }
        let holder = self.spare.take().map_or_else(Holder::new, Ok)?;
        let map = holder.map(uid, gid, &self.ids)?;
        self.made.push(((uid, gid), map));
        Ok(self.made.len() - 1)
    }
}

/// What lies there itself: a link on the way or at the end is refused, and so is leaving the tree.
fn below(handle: &OwnedFd, path: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let place = rustix::fs::openat2(handle, path, flags, Mode::empty(), beneath)?;
    copy_of(&place, c"")
}

/// A process that only keeps a user namespace alive until it is mapped and opened.
pub(super) struct Holder {
    pid: Pid,
    release: OwnedFd,
}

impl Holder {
    pub(super) fn new() -> Result<Self> {
        let (hold, release) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        match sys::clone_into(Namespace::User.flag(), None)? {
            Cloned::Child => {
                drop(release);
                let _ = rustix::io::read(&hold, &mut [0u8; 1]);
                sys::exit(0)
            }
            Cloned::Parent(pid, _pidfd) => Ok(Self { pid, release }),
        }
    }

    /// Shows the owner on disk as the sandbox's user and nobody else as anybody.
    fn map(self, uid: u32, gid: u32, ids: &Ids) -> Result<OwnedFd> {
        let pid = self.pid.as_raw_nonzero();
        let line = |inside: u32, outside: u32| format!("{inside} {outside} 1");
        let write = |file: &str, line: String| {
            std::fs::write(format!("/proc/{pid}/{file}"), line).map_err(errno)
        };
        write("uid_map", line(uid, ids.outer_uid))?;
        write("gid_map", line(gid, ids.outer_gid))?;
        let namespace = format!("/proc/{pid}/ns/user");
        rustix::fs::open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends by itself when its pipe closes with this value, and is buried with the rest.
        let _ = rustix::io::write(&self.release, b"r");
    }
}
