//! Until when the sandboxes of a server may go on. The server writes one moment into a file in
//! memory each time it has renewed its lease; its keepers read it, each by its own clock. A server
//! that is stopped or cut off writes nothing, and that is what its keepers go by.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::moment::Moment;
use crate::sys::Result;

/// Why a keeper ended its sandbox by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Over {
    /// The time of the run was up, and its server had not ended it.
    Deadline,
    /// The server had not renewed its lease in time: another may take the run for lost soon.
    Lease,
}

/// One end of it: the server's may be written, a keeper's only read.
#[derive(Debug)]
pub(crate) struct Lease(OwnedFd);

impl Lease {
    /// The server's end and the keepers'. Without a word there is no lease to lose.
    pub(crate) fn ends() -> Result<(Self, Self)> {
        let writer = rustix::fs::memfd_create(c"glovebox-lease", MemfdFlags::CLOEXEC)?;
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let reader = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let writer = Self(writer);
        writer.set(Moment::NEVER)?;
        Ok((writer, Self(reader)))
    }

    pub(crate) fn set(&self, end: Moment) -> Result<()> {
        let once = end.to_bytes();
        let twice = [once, once].concat();
        match rustix::io::pwrite(&self.0, &twice, 0)? == twice.len() {
            true => Ok(()),
            false => Err(Errno::IO),
        }
    }

    /// What cannot be read is over. It is written twice, so that half of a new moment beside half
    /// of an old one is not taken for one.
    pub(crate) fn end(&self) -> Moment {
        for _ in 0..100 {
            let mut twice = [[0u8; 8]; 2];
            match rustix::io::pread(&self.0, twice.as_flattened_mut(), 0) {
                Ok(16) if twice[0] == twice[1] => return Moment::from_bytes(twice[0]),
                Ok(16) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return Moment::PAST,
            }
        }
        Moment::PAST
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_the_server_wrote_is_read_and_a_keeper_can_write_nothing() {
        let (server, keeper) = Lease::ends().unwrap();
        assert_eq!(keeper.end(), Moment::NEVER);
        let soon = Moment::now().after(Duration::from_secs(5));
        server.set(soon).unwrap();
        assert_eq!(keeper.end(), soon);
        assert_eq!(keeper.set(Moment::NEVER), Err(Errno::BADF));
        rustix::fs::ftruncate(&server.0, 0).unwrap();
        assert!(keeper.end().is_over());
    }
}
