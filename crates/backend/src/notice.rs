//! What is told of a program while it is observed. It says what was asked of the kernel, never what
//! may be done: nothing here decides anything, and a program that wants to can mislead it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use glovebox_model::ByteString;

/// What one process did or tried. Processes are numbered as the sandbox sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub pid: u32,
    /// 0 when it is outside or gone.
    pub parent: u32,
    pub what: Noticed,
}

/// Paths are absolute, inside, and tidied up as text; links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// It became another program.
    Exec {
        program: ByteString,
        argv: Vec<ByteString>,
        /// There were more arguments, or longer ones.
        argv_truncated: bool,
        cwd: Option<ByteString>,
    },
    /// It addressed somebody outside: by connecting, or with one datagram. The sandbox's own
    /// addresses are left out.
    Connect { address: SocketAddr, datagram: bool },
    /// It tried to change what is at this path. Whether it was let, nobody waited to see.
    Write {
        call: &'static str,
        path: ByteString,
        /// Of a rename the new name, of a link what it leads to.
        second: Option<ByteString>,
    },
    /// It tried to open it to be read.
    Read { path: ByteString },
}

/// What comes out of an observed sandbox beside its notices.
#[derive(Debug)]
pub struct Observation {
    /// Where programs inside connect to tell of themselves: a listening stream socket that does not
    /// block. Unserved it keeps them waiting until it is dropped.
    pub effects: OwnedFd,
}
