//! Building the root: every target is found below the new root without following a link.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::Result;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, move_mount, open_tree, unmount,
};

use super::Workbench;
use crate::plan::{Attribute, Source, Step};
use crate::sys;

/// Where the new root is put together; any directory that every host has.
const STAGES: [&CStr; 4] = [c"/tmp", c"/run", c"/mnt", c"/var"];

/// Where an empty directory is for a moment.
const MASK: &CStr = c"/.mask";

pub(super) fn detach_host() -> Result<()> {
    // After pivot_root(".", ".") the old root lies on top of the new one.
    unmount(c".", UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")
}

pub(super) fn seal_root(attributes: &[Attribute]) -> Result<()> {
    // A remount of this one mount: the writable places below stay writable.
    rustix::mount::mount_remount(c"/", MountFlags::BIND | flags(attributes), c"")
}

pub(super) fn flags(attributes: &[Attribute]) -> MountFlags {
    attributes
        .iter()
        .fold(MountFlags::empty(), |flags, attribute| {
            flags
                | match attribute {
                    Attribute::ReadOnly => MountFlags::RDONLY,
                    Attribute::NoSuid => MountFlags::NOSUID,
                    Attribute::NoDev => MountFlags::NODEV,
                    Attribute::NoExec => MountFlags::NOEXEC,
                }
        })
}

pub(crate) fn attribute_bits(attributes: &[Attribute]) -> u64 {
    attributes.iter().fold(0, |bits, attribute| {
        bits | match attribute {
            Attribute::ReadOnly => libc::MOUNT_ATTR_RDONLY,
            Attribute::NoSuid => libc::MOUNT_ATTR_NOSUID,
            Attribute::NoDev => libc::MOUNT_ATTR_NODEV,
            Attribute::NoExec => libc::MOUNT_ATTR_NOEXEC,
        }
    })
}

pub(crate) fn copy_of(directory: impl AsFd, path: &CStr) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(directory, path, flags)
}

/// Plan paths are absolute; the work happens below a directory handle.
pub(super) fn below(path: &CStr) -> &[u8] {
    path.to_bytes()
        .strip_prefix(b"/")
        .unwrap_or(path.to_bytes())
}

impl Workbench<'_> {
    /// Before the stage is covered: it may hold one of them.
    pub(super) fn open_sources(&mut self) -> Result<()> {
        for (source, _) in self.plan.steps.iter().flat_map(Step::sources) {
            let Source::Path { path, identity } = source else {
                return Err(Errno::PERM);
            };
            self.sources.push_back(open_source(path, *identity)?);
        }
        Ok(())
    }

    pub(super) fn new_root(
        &mut self,
        bytes: Option<u64>,
        files: Option<u64>,
        attributes: &[Attribute],
    ) -> Result<()> {
        let mut options = String::from("mode=0755");
        if let Some(bytes) = bytes {
            options.push_str(&format!(",size={bytes}"));
        }
        if let Some(files) = files {
            options.push_str(&format!(",nr_inodes={files}"));
        }
        let options = CString::new(options).map_err(|_| Errno::INVAL)?;
        let flags = flags(attributes);
        for stage in STAGES {
            match mount(c"glovebox", stage, c"tmpfs", flags, options.as_c_str()) {
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => return Err(errno),
                Ok(()) => {
                    let path = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    let root = rustix::fs::open(stage, path, Mode::empty())?;
                    rustix::process::fchdir(&root)?;
                    self.root = Some(root);
                    return Ok(());
                }
            }
        }
        Err(Errno::NOENT)
    }

    pub(super) fn root(&self) -> Result<BorrowedFd<'_>> {
        self.root.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    /// A place below the new root; a link anywhere on the way is refused.
    pub(super) fn place(&self, path: &CStr) -> Result<OwnedFd> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let relative = below(path);
        let relative = if relative.is_empty() { b"." } else { relative };
        rustix::fs::openat2(self.root()?, relative, flags, Mode::empty(), beneath)
    }

    /// Makes something at `path`, and the directories above it if they are missing. What is made
    /// is only ever reached again through `place`, which follows no link.
    pub(super) fn make(
        &self,
        path: &CStr,
        make: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (root, relative) = (self.root()?, below(path));
        match make(root, relative) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        for (slash, _) in relative
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
        {
            make_directory(root, &relative[..slash], 0o755)?;
        }
        make(root, relative)
    }

    pub(super) fn directory(&self, path: &CStr, mode: u32) -> Result<()> {
        self.make(path, |root, relative| make_directory(root, relative, mode))
    }

    pub(super) fn symlink(&self, path: &CStr, target: &CStr) -> Result<()> {
        self.make(path, |root, relative| {
            rustix::fs::symlinkat(target, root, relative)
        })
    }

    pub(super) fn mount(&mut self, target: &CStr, attributes: &[Attribute]) -> Result<()> {
        let tree = self.sources.pop_front().ok_or(Errno::BADF)?;
        sys::set_mount_attributes(tree.as_fd(), attribute_bits(attributes), None)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&tree)?.st_mode);
        if kind == FileType::Directory {
            self.directory(target, 0o755)?;
        } else {
            self.make(target, |root, relative| make_file(root, relative))?;
        }
        self.attach(&tree, target)
    }

    pub(super) fn attach(&self, tree: &OwnedFd, target: &CStr) -> Result<()> {
        let place = self.place(target)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(tree, c"", place, c"", flags)
    }

    pub(super) fn scratch(&mut self, places: &[(CString, u32)]) -> Result<()> {
        for (place, mode) in places {
            self.directory(place, *mode)?;
            let tree = copy_of(self.place(place)?, c"")?;
            self.attach(&tree, place)?;
        }
        Ok(())
    }

    pub(super) fn proc(&self, hide_others: bool, attributes: &[Attribute]) -> Result<()> {
        self.directory(c"/proc", 0o555)?;
        if !hide_others {
            return self.mount_new(c"/proc", c"proc", "", attributes);
        }
        // 4: only what may be traced is shown, so never pid 1; older kernels know 2.
        match self.mount_new(c"/proc", c"proc", "hidepid=4", attributes) {
            Err(Errno::INVAL) => self.mount_new(c"/proc", c"proc", "hidepid=2", attributes),
            other => other,
        }
    }

    pub(super) fn terminals(&self, attributes: &[Attribute]) -> Result<()> {
        self.directory(c"/dev/pts", 0o755)?;
        let options = "newinstance,ptmxmode=0666,mode=620";
        self.mount_new(c"/dev/pts", c"devpts", options, attributes)?;
        self.symlink(c"/dev/ptmx", c"pts/ptmx")
    }

    pub(super) fn mount_new(
        &self,
        target: &CStr,
        kind: &CStr,
        options: &str,
        attributes: &[Attribute],
    ) -> Result<()> {
        let options = CString::new(options).map_err(|_| Errno::INVAL)?;
        // The working directory is the new root, and no link lies on the way: every component of
        // these targets was made here.
        mount(
            c"glovebox",
            below(target),
            kind,
            flags(attributes),
            options.as_c_str(),
        )
    }

    pub(super) fn mask(&self, path: &CStr) -> Result<()> {
        // Through the links of the new root: what is named by one is hidden as well.
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(self.root()?, below(path), flags, Mode::empty(), within);
        let target = match found {
            // It is not there, so there is nothing to hide.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            other => other?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&target)?.st_mode);
        if kind == FileType::Directory {
            return self.mask_directory(&target);
        }
        let null = copy_of(self.root()?, c"dev/null")?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(null, c"", target, c"", flags)
    }

    /// With an empty one that cannot be entered.
    fn mask_directory(&self, target: &OwnedFd) -> Result<()> {
        self.directory(MASK, 0)?;
        let empty = copy_of(self.place(MASK)?, c"")?;
        let inert = [Attribute::ReadOnly, Attribute::NoSuid, Attribute::NoDev];
        sys::set_mount_attributes(empty.as_fd(), attribute_bits(&inert), None)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(empty, c"", target, c"", flags)?;
        rustix::fs::unlinkat(self.root()?, below(MASK), AtFlags::REMOVEDIR)
    }

    pub(super) fn enter(&mut self) -> Result<()> {
        drop(self.root.take());
        rustix::process::pivot_root(c".", c".")
    }
}

pub(crate) fn open_source(path: &CStr, identity: Option<(u64, u64)>) -> Result<OwnedFd> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if let Some(expected) = identity {
        let found = rustix::fs::fstat(&place)?;
        if (found.st_dev, found.st_ino) != expected {
            // Somebody put another directory in its place after it was checked.
            return Err(Errno::STALE);
        }
    }
    copy_of(&place, c"")
}

fn make_directory(parent: impl AsFd, name: &[u8], mode: u32) -> Result<()> {
    match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

fn make_file(parent: impl AsFd, name: &[u8]) -> Result<()> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}
