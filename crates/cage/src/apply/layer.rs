//! A tree under a layer that takes all writes, and perhaps one between the two that stands before
//! the tree's own entries. The kernel takes them only by path from a namespace that this process has
//! power over, so they are mounted for a moment beside the new root's own directories; nothing of
//! them is left there when the step is done.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, XattrFlags};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount, unmount};

use super::mounts::{attribute_bits, below};
use super::{Workbench, mounts};
use crate::plan::{Attribute, Upper};
use crate::sys::{self, Result};

const STAGING: &CStr = c"/.layer";
const LOWER: &CStr = c"/.layer/lower";
const OVER: &CStr = c"/.layer/over";
const OWN: &CStr = c"/.layer/own";
const OWN_UPPER: &CStr = c"/.layer/own/upper";
const OWN_WORK: &CStr = c"/.layer/own/work";
const OWN_BESIDE: &CStr = c"/.layer/own/beside";

const MARK: &CStr = c"user.glovebox";

/// `userxattr`: without it, marks of this kind would need a power that no user namespace gives, and
/// removing a directory would fail half-way.
const fn options(over: bool, upper: &Upper) -> &'static CStr {
    match (over, upper) {
        (false, Upper::Directory(_) | Upper::Memory { .. }) => {
            c"lowerdir=.layer/lower,upperdir=.layer/own/upper,workdir=.layer/own/work,userxattr"
        }
        (true, Upper::Directory(_) | Upper::Memory { .. }) => {
            c"lowerdir=.layer/over:.layer/lower,upperdir=.layer/own/upper,workdir=.layer/own/work,userxattr"
        }
        // The kernel wants two where none is written to.
        (false, Upper::None) => c"lowerdir=.layer/own:.layer/lower,userxattr",
        (true, Upper::None) => c"lowerdir=.layer/over:.layer/lower,userxattr",
    }
}

impl Workbench<'_> {
    pub(super) fn layer(
        &mut self,
        over: bool,
        upper: &Upper,
        target: &CStr,
        attributes: &[Attribute],
    ) -> Result<()> {
        let facts = self.sealed(LOWER)?;
        if over {
            self.sealed(OVER)?;
        }
        self.directory(OWN, 0o700)?;
        match upper {
            Upper::Directory(_) => {
                let own = self.sources.pop_front().ok_or(Errno::BADF)?;
                let inert = [Attribute::NoSuid, Attribute::NoDev];
                sys::set_mount_attributes(own.as_fd(), attribute_bits(&inert), None)?;
                self.attach(&own, OWN)?;
            }
            Upper::Memory {
                bytes,
                files,
                beside,
            } => {
                self.memory(*bytes, *files, facts.st_mode)?;
                if let Some(target) = beside {
                    self.beside(target, attributes)?;
                }
            }
            Upper::None => {}
        }
        self.directory(target, 0o755)?;
        // The working directory is the new root, and every part of these paths was made here.
        mount(
            c"glovebox",
            below(target),
            c"overlay",
            mounts::flags(attributes),
            options(over, upper),
        )?;
        let is_written = *upper != Upper::None;
        if is_written {
            self.still_writable(target)?;
        }
        let mounted = [(OWN, is_written), (OVER, over), (LOWER, true)];
        for (place, _) in mounted.iter().filter(|(_, is_mounted)| *is_mounted) {
            unmount(below(place), UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
        let over = over.then_some(OVER);
        for place in [OWN, LOWER].into_iter().chain(over).chain([STAGING]) {
            rustix::fs::unlinkat(self.root()?, below(place), AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    /// Attaches the next source, which nothing is written to. What the directory was found to be.
    fn sealed(&mut self, place: &CStr) -> Result<rustix::fs::Stat> {
        let tree = self.sources.pop_front().ok_or(Errno::BADF)?;
        let facts = rustix::fs::fstat(&tree)?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        let sealed = [Attribute::ReadOnly, Attribute::NoSuid, Attribute::NoDev];
        sys::set_mount_attributes(tree.as_fd(), attribute_bits(&sealed), None)?;
        self.directory(place, 0o700)?;
        self.attach(&tree, place)?;
        Ok(facts)
    }

    /// Made in the sandbox's own user namespace, so an ordinary user may too. Nobody can enlarge it
    /// once the capabilities are gone.
    fn memory(&mut self, bytes: u64, files: u64, mode: u32) -> Result<()> {
        let inert = [Attribute::NoSuid, Attribute::NoDev];
        // The root of it, its directories, and one that the kernel makes in the second. To the kernel
        // a size of nothing is no limit at all.
        let options = format!(
            "mode=0700,size={},nr_inodes={}",
            bytes.max(1),
            files.saturating_add(6)
        );
        self.mount_new(OWN, c"tmpfs", &options, &inert)?;
        self.directory(OWN_UPPER, mode & 0o777)?;
        self.directory(OWN_WORK, 0o700)?;
        self.takes_marks()?;
        let handle = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(self.root()?, below(OWN), handle, Mode::empty())?;
        self.memory = Some(own);
        Ok(())
    }

    /// Without attributes of users (before Linux 6.6) the kernel would still mount the layer, and could
    /// not mark in it what was made anew.
    fn takes_marks(&self) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = rustix::fs::openat(self.root()?, below(OWN_UPPER), flags, Mode::empty())?;
        rustix::fs::fsetxattr(&upper, MARK, b"y", XattrFlags::CREATE)?;
        rustix::fs::fremovexattr(&upper, MARK)
    }

    /// A directory of the same memory, at a place of its own.
    fn beside(&self, target: &CStr, attributes: &[Attribute]) -> Result<()> {
        self.directory(OWN_BESIDE, 0o755)?;
        self.directory(target, 0o755)?;
        let tree = mounts::copy_of(self.place(OWN_BESIDE)?, c"")?;
        sys::set_mount_attributes(tree.as_fd(), attribute_bits(attributes), None)?;
        self.attach(&tree, target)
    }

    /// A kernel that cannot use the upper directory mounts it read-only and says nothing.
    fn still_writable(&self, target: &CStr) -> Result<()> {
        let facts = rustix::fs::fstatvfs(self.place(target)?)?;
        match facts.f_flag.contains(StatVfsMountFlags::RDONLY) {
            true => Err(Errno::ROFS),
            false => Ok(()),
        }
    }
}
