//! The way into the mount namespace of a sandbox that stands, and back. Root only, and only for as
//! long as a few mounts are moved.
//!
//! Targets lie on the sandbox's sealed root, so nobody inside can have put anything else there; they
//! are found without following a link all the same.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::Pid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;

use crate::sys::Result;
use crate::wire::{At, Failure};

/// Why something was not attached.
pub(super) enum Trouble {
    /// The sandbox must not be used any more; this process is where it was.
    Inside(Failure),
    /// This process did not come back: it can do nothing by path any more and must end.
    Astray(Failure),
}

pub(super) struct Door {
    inside: OwnedFd,
    home: OwnedFd,
    /// Changing the namespace changes the root too, which need not be the namespace's own.
    root: OwnedFd,
}

impl Door {
    /// None when pid 1 is gone already.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        let open = |path: &str, flags: OFlags| {
            rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        Some(Self {
            inside: open(
                &format!("/proc/{}/ns/mnt", pid.as_raw_nonzero()),
                OFlags::RDONLY,
            )?,
            home: open("/proc/self/ns/mnt", OFlags::RDONLY)?,
            root: open("/", OFlags::PATH | OFlags::DIRECTORY)?,
        })
    }

    pub(super) fn attach<'tree>(
        &self,
        trees: impl Iterator<Item = (&'tree CStr, &'tree OwnedFd)>,
    ) -> Result<(), Trouble> {
        self.within(|| {
            for (target, tree) in trees {
                attach(target, tree).at(&format!("attach {}", target.to_string_lossy()))?;
            }
            Ok(())
        })
    }

    pub(super) fn detach(&self, targets: &[CString]) -> Result<(), Trouble> {
        self.within(|| {
            for target in targets {
                detach(target).at(&format!("detach {}", target.to_string_lossy()))?;
            }
            Ok(())
        })
    }

    fn within(&self, act: impl FnOnce() -> Result<(), Failure>) -> Result<(), Trouble> {
        enter(&self.inside)
            .at("enter the sandbox's mounts")
            .map_err(Trouble::Inside)?;
        let acted = act();
        self.come_back()
            .at("come back from the sandbox's mounts")
            .map_err(Trouble::Astray)?;
        acted.map_err(Trouble::Inside)
    }

    fn come_back(&self) -> Result<()> {
        enter(&self.home)?;
        rustix::process::fchdir(&self.root)?;
        rustix::process::chroot(c".")
    }
}

fn enter(namespace: &OwnedFd) -> Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
}

/// Entering the namespace made its root ours.
fn place(path: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let straight = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), straight)
}

fn attach(target: &CStr, tree: &OwnedFd) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, c"", place(target)?, c"", flags)
}

fn detach(target: &CStr) -> Result<()> {
    let bytes = target.to_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = slash.map_or((&b"/"[..], bytes), |at| {
        (if at == 0 { b"/" } else { &bytes[..at] }, &bytes[at + 1..])
    });
    let parent = CString::new(parent).map_err(|_| Errno::INVAL)?;
    // By its last name from its directory, so that no other name can lead elsewhere.
    rustix::process::fchdir(place(&parent)?)?;
    unmount(name, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}
