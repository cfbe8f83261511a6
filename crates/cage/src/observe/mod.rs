//! Seeing what a sandboxed program asks of the kernel, for whoever wants to tell what it did.
//!
//! It is never a security decision. Every call is let through as if nobody had asked, and what was
//! read of it may be changed by another thread before the kernel reads it. What a program may do is
//! decided by mounts, rules and the filter, which stands above this: a call that it denies is never
//! seen here.

mod table;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::seccomp::{self, Arch};
use crate::sys::{self, Result};

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Watch {
    /// Who becomes another program, and who ends: only then is it known what became of the last try.
    Processes,
    /// Whom a program addresses.
    Network,
    /// Names that are made, changed or removed, and files that are opened to be written.
    Writes,
    /// Files that are opened to be read.
    Reads,
}

/// A path in a call: the argument that holds it, and the one that says where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub directory: Option<u8>,
    pub path: u8,
}

/// How a call says what it acts on. Numbers are of its arguments; a socket is always the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Execute { program: Place, argv: u8 },
    End,
    Address { address: u8, length: u8 },
    Message { header: u8 },
    Messages { vector: u8, count: u8 },
    Open { path: Place, flags: u8 },
    Change(Place),
    Rename { from: Place, to: Place },
    Link { made: Place, existing: Place },
    Symlink { made: Place, text: u8 },
}

/// One call that can be observed.
#[derive(Debug, PartialEq, Eq)]
pub struct Watched {
    pub name: &'static str,
    pub shape: Shape,
}

impl Watched {
    pub(crate) fn all() -> &'static [Self] {
        table::TABLE
    }

    pub(crate) fn number(&self, arch: Arch) -> Option<u32> {
        seccomp::number(self.name, arch)
    }
}

/// Flags of an open file that may change something: `O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC`. The
/// same on both machines.
pub const OPENS_TO_WRITE: u32 = 0o1 | 0o2 | 0o100 | 0o1000;
/// `O_PATH`: nothing of the file is read.
pub(crate) const OPENS_NOTHING: u32 = 0o10_000_000;

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    id: u64,
    /// Of the thread, as this process knows it.
    pub thread: i32,
    pub watched: &'static Watched,
    pub args: [u64; 6],
}

impl Call {
    /// Copies from the caller's memory, which must lie in one page.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        sys::read_memory(self.thread, address, buffer)
    }
}

/// Where observed calls arrive. While it is open each of them waits for its answer; once it is
/// closed they fail as unknown to the kernel.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// By number, in order.
    known: Vec<(u32, &'static Watched)>,
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        // A kernel before 6.6 only takes longer.
        let _ = sys::wake_in_step(fd.as_fd());
        let all = Watched::all().iter();
        let mut known: Vec<(u32, &'static Watched)> = all
            .filter_map(|it| Some((it.number(Arch::HOST)?, it)))
            .collect();
        known.sort_by_key(|(number, _)| *number);
        Self { fd, known }
    }

    /// The next call. Blocks unless the listener is readable; none when its caller is gone.
    pub fn next(&self) -> Result<Option<Call>> {
        let notified = match sys::next_notified(self.fd.as_fd()) {
            Err(Errno::NOENT | Errno::INTR) => return Ok(None),
            other => other?,
        };
        let number = u32::try_from(notified.data.nr).unwrap_or(u32::MAX);
        let known = self
            .known
            .binary_search_by_key(&number, |(known, _)| *known);
        match (known, i32::try_from(notified.pid)) {
            (Ok(at), Ok(thread)) => Ok(Some(Call {
                id: notified.id,
                thread,
                watched: self.known[at].1,
                args: notified.data.args,
            })),
            _ => {
                let _ = sys::resume_notified(self.fd.as_fd(), notified.id);
                Ok(None)
            }
        }
    }

    /// Whether it still waits. If so, whatever was read of its process until now was its own: nobody
    /// else had its number.
    pub fn waits(&self, call: &Call) -> bool {
        sys::is_notified(self.fd.as_fd(), call.id)
    }

    /// Lets the kernel do it. Whoever is gone meanwhile needs no answer.
    pub fn resume(&self, call: &Call) {
        let _ = sys::resume_notified(self.fd.as_fd(), call.id);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Copies from the memory of a process that need not wait.
pub fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> Result<()> {
    sys::read_memory(pid, address, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_number_and_stands_once() {
        let mut names: Vec<&str> = Watched::all().iter().map(|it| it.name).collect();
        assert!(names.is_sorted());
        names.dedup();
        assert_eq!(names.len(), Watched::all().len());
        for watched in Watched::all() {
            assert!(watched.number(Arch::X86_64).is_some(), "{}", watched.name);
        }
    }

    #[test]
    fn memory_of_another_process_is_read_or_nothing_is() {
        let pid = std::process::id().cast_signed();
        let there = *b"something that is there";
        let mut copy = [0; 23];
        sys::read_memory(pid, there.as_ptr() as u64, &mut copy).unwrap();
        assert_eq!(copy, there);
        for nowhere in [0, 1, u64::MAX - 23] {
            assert!(sys::read_memory(pid, nowhere, &mut copy).is_err());
        }
    }
}
