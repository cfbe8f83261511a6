//! What a freshly forked process lets go of before it does anything else.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::sys::{Result, close_range};

/// Lets go of everything inherited but `kept`, standard streams and directory included: a pipe that
/// is held here would never end.
pub(crate) fn detach(kept: &[BorrowedFd<'_>]) -> Result<()> {
    use rustix::fs::{Mode, OFlags};
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    rustix::process::chdir(c"/")?;
    close_all_but(kept)
}

/// Closes what this process was started with beside its standard streams. To be called before
/// anything is opened.
pub fn close_inherited() -> Result<()> {
    close_all_but(&[])
}

/// Closes every descriptor but standard ones and `kept`.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<()> {
    let mut kept: Vec<u32> = kept
        .iter()
        .map(|fd| fd.as_raw_fd().unsigned_abs())
        .collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = first.max(fd + 1);
    }
    close_range(first, u32::MAX)
}
