//! Files of the root's own.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Workbench;
use super::mounts::{attribute_bits, copy_of};
use crate::plan::Attribute;
use crate::sys::{self, Result};

const INERT: [Attribute; 4] = [
    Attribute::ReadOnly,
    Attribute::NoSuid,
    Attribute::NoDev,
    Attribute::NoExec,
];

impl Workbench<'_> {
    /// Anybody inside may read it; the sealed root lets nobody write it.
    pub(super) fn file(&self, path: &CStr, content: &[u8]) -> Result<()> {
        self.make(path, |root, relative| {
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::openat(root, relative, flags, Mode::from_raw_mode(0o444))?;
            let mut rest = content;
            while !rest.is_empty() {
                let written = rustix::io::write(&file, rest)?;
                rest = rest.get(written..).ok_or(Errno::IO)?;
            }
            Ok(())
        })
    }

    /// A place that is not there, is a link or no file is somebody's choice, and is left alone.
    pub(super) fn cover(&self, path: &CStr, with: &CStr) -> Result<()> {
        let target = match self.place(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            other => other?,
        };
        let facts = rustix::fs::fstat(&target)?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let copy = copy_of(self.place(with)?, c"")?;
        sys::set_mount_attributes(copy.as_fd(), attribute_bits(&INERT), None)?;
        self.attach(&copy, path)
    }
}
