//! What a program can hang on a file beside its content: attributes, which no listing shows.

use glovebox_capture::Secrets;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{Mode, OFlags, chmod, fchmod, fgetxattr, flistxattr, fremovexattr, openat};
use rustix::io::Errno;

use crate::dir::{Dir, READING};

/// The kernel's own bound, of one value and of all names together.
const MOST: usize = 64 << 10;

/// Whether a name or a value among them is secret.
pub(super) fn hold_a_secret(file: impl AsFd, masks: &Secrets) -> Result<bool, Errno> {
    if masks.is_empty() {
        return Ok(false);
    }
    let file = file.as_fd();
    let is_secret = |bytes: &[u8]| masks.find(bytes).is_some();
    for name in names(file)? {
        if is_secret(&name) || is_secret(&value(file, &name)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes them off a directory of ours if one is secret, whatever its guest made of its mode.
pub(super) fn clear(directory: &Dir, masks: &Secrets) -> Result<(), Errno> {
    if masks.is_empty() {
        return Ok(());
    }
    let open = || openat(directory, ".", READING | OFlags::DIRECTORY, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            // `fchmod` takes no path-only descriptor; our own entry in `/proc` leads there.
            let own = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
            chmod(own.as_str(), Mode::RWXU)?;
            open()?
        }
        opened => opened?,
    };
    if !hold_a_secret(&opened, masks)? {
        return Ok(());
    }
    fchmod(&opened, Mode::RWXU)?;
    for name in names(opened.as_fd())? {
        match fremovexattr(&opened, &*name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Only those that programs may set.
fn names(file: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut list = vec![0; MOST];
    let length = match flistxattr(file, &mut list) {
        Ok(length) => length,
        // A file system without them.
        Err(Errno::NOTSUP) => 0,
        Err(errno) => return Err(errno),
    };
    let names = list.get(..length).unwrap_or_default();
    let names = names.split(|byte| *byte == 0);
    let names = names.filter(|name| name.starts_with(b"user."));
    Ok(names.map(<[u8]>::to_vec).collect())
}

fn value(file: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; MOST];
    let length = match fgetxattr(file, name, &mut value) {
        Ok(length) => length,
        Err(Errno::NODATA) => 0,
        Err(errno) => return Err(errno),
    };
    value.truncate(length);
    Ok(value)
}
