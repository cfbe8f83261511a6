//! A terminal: the end that controls it stays with the caller, and its peer is all that a payload gets.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};

use crate::sys::{self, Result};

/// In characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

/// The controlling end. When it is closed, the terminal hangs up.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

/// In a sandbox, by its own devpts: the host's terminals have no name there.
const INSIDE: &CStr = c"/dev/pts/ptmx";
const OUTSIDE: &CStr = c"/dev/ptmx";

impl Terminal {
    /// One of the host's, with its peer.
    pub fn of_host(size: WindowSize) -> Result<(Self, OwnedFd)> {
        Self::open(OUTSIDE, size, None)
    }

    /// One of the sandbox that the calling pid 1 stands in. Where calls are observed nobody answers
    /// pid 1, so it is opened under its seal.
    pub(crate) fn inside(size: WindowSize, seal: Option<u64>) -> Result<(Self, OwnedFd)> {
        Self::open(INSIDE, size, seal)
    }

    fn open(path: &CStr, size: WindowSize, seal: Option<u64>) -> Result<(Self, OwnedFd)> {
        let controlling = Self(sys::open_terminal(path, seal.unwrap_or(0))?);
        rustix::pty::unlockpt(&controlling.0)?;
        // By its other end and never by a name, under which something else may lie.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let peer = rustix::pty::ioctl_tiocgptpeer(&controlling.0, flags)?;
        controlling.resize(size)?;
        Ok((controlling, peer))
    }

    pub(crate) fn of(handed: OwnedFd) -> Self {
        Self(handed)
    }

    /// Whoever runs in the foreground is told of it.
    pub fn resize(&self, size: WindowSize) -> Result<()> {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.0, size)
    }

    /// Sends `SIGINT`, `SIGQUIT` or `SIGTSTP` to the foreground process group, as their keys do. The
    /// kernel takes no other.
    pub fn signal(&self, signal: i32) -> Result<()> {
        sys::signal_foreground(self.0.as_fd(), signal)
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes it the controlling terminal of the calling process, which has just begun a session.
pub(crate) fn control(peer: &OwnedFd) -> Result<()> {
    rustix::process::ioctl_tiocsctty(peer)
}
