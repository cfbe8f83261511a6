//! Reading one directory's entries as they lie on disk.

use std::ffi::CStr;
use std::ops::ControlFlow;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::open;
use crate::fault::FsErrorKind;

/// Some hundred entries for each system call.
const BUFFER: usize = 32 << 10;

/// Calls `each` with every entry but `.` and `..`; the kind is the directory's hint and may be
/// unknown. `dir` must be open for reading.
pub(crate) fn entries(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> ControlFlow<()>,
) -> Result<(), Errno> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut raw = RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = raw.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if each(name, entry.file_type()).is_break() {
            break;
        }
    }
    Ok(())
}

/// A handle does not read; its entries are read through a second opening of the same directory.
pub(super) fn reader(dir: impl AsFd) -> Result<OwnedFd, FsErrorKind> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open::beneath(dir.as_fd(), b".", flags, Mode::empty())
}
