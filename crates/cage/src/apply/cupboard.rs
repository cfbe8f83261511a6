//! Where secrets lie as files while one payload runs. Programs see a read-only mount; pid 1 holds
//! another mount of the same memory, which is nowhere to be found, and fills and empties it.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Workbench;
use super::mounts::{attribute_bits, copy_of};
use crate::plan::Attribute;
use crate::sys::{self, Result};
use crate::wire::Parcel;

/// Owner only, and the owner is the one user inside.
const MODE: u32 = 0o400;

#[derive(Debug)]
pub(crate) struct Cupboard {
    directory: OwnedFd,
    /// What lies in it.
    names: Vec<CString>,
}

impl Workbench<'_> {
    pub(super) fn cupboard(&mut self, path: &CStr, attributes: &[Attribute]) -> Result<()> {
        self.directory(path, 0o700)?;
        // Not tmpfs: that may be written to the host's swap. Nobody but pid 1 can fill it, and it
        // does so by a list that has its limits.
        self.mount_new(path, c"ramfs", "mode=0700", &[])?;
        let directory = copy_of(self.place(path)?, c"")?;
        let shown = self.place(path)?;
        sys::set_mount_attributes(shown.as_fd(), attribute_bits(attributes), None)?;
        let names = Vec::new();
        self.cupboard = Some(Cupboard { directory, names });
        Ok(())
    }
}

impl Cupboard {
    /// Puts in what lies one after the other in `content`. No byte of it passes through this
    /// process's memory.
    pub(crate) fn fill(&mut self, parcels: &[Parcel], content: &OwnedFd) -> Result<()> {
        let mut offset = 0;
        for Parcel { name, bytes } in parcels {
            let plain = !name.is_empty() && !name.to_bytes().contains(&b'/');
            if !plain || name.to_bytes().starts_with(b".") {
                return Err(Errno::INVAL);
            }
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(MODE);
            let file = rustix::fs::openat(&self.directory, name, flags, mode)?;
            self.names.push(name.clone());
            let end = offset + bytes;
            while offset < end {
                let left = usize::try_from(end - offset).map_err(|_| Errno::FBIG)?;
                if rustix::fs::sendfile(&file, content, Some(&mut offset), left)? == 0 {
                    return Err(Errno::NODATA);
                }
            }
        }
        Ok(())
    }

    /// Nothing of one payload is there for the next.
    pub(crate) fn empty(&mut self) -> Result<()> {
        for name in self.names.drain(..) {
            rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty())?;
        }
        Ok(())
    }
}
