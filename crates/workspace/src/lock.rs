//! Who is in a workspace: any number of execs at once, or one who changes it as a whole. The lock is
//! the kernel's, on the project's own directory, so that it holds between processes and ends with
//! whoever had it.

use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::dir::single;
use crate::fault::FsError;
use crate::layout::Project;

/// A restore of a large workspace takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(5);

/// Given back when dropped.
#[derive(Debug)]
pub struct Occupied {
    _lock: OwnedFd,
}

impl Project {
    /// For an exec. Waits while somebody changes the whole of it, for as long as it is wanted.
    pub fn enter(&self, is_wanted: &dyn Fn() -> bool) -> Result<Occupied> {
        let lock = self.lock_file()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(Occupied { _lock: lock }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => {
                    let message = "the workspace is being restored or reset";
                    return Err(Error::new(Code::Busy, Stage::Open, message)
                        .hint("wait for its end, and ask again"));
                }
                Err(Errno::WOULDBLOCK) if !is_wanted() => {
                    let message = "canceled before its workspace was free";
                    return Err(Error::new(Code::Canceled, Stage::Open, message));
                }
                Err(Errno::WOULDBLOCK) => std::thread::sleep(AGAIN),
                Err(errno) => return Err(locking(errno)),
            }
        }
    }

    /// For a change of the whole. Refused at once while an exec, or another such change, is there.
    pub fn occupy(&self) -> Result<Occupied> {
        let lock = self.lock_file()?;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Occupied { _lock: lock }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let message = format!(
                        "execs of workspace `{}` run, or it is being changed",
                        self.id()
                    );
                    return Err(Error::new(Code::Conflict, Stage::Open, message).hint(
                        "wait for their end, or cancel them: `glovebox ps`, `glovebox cancel EXEC`",
                    ));
                }
                Err(errno) => return Err(locking(errno)),
            }
        }
    }

    /// The same with some patience: those who are there may be about to leave.
    pub fn occupy_within(&self, patience: Duration) -> Result<Occupied> {
        let deadline = Instant::now() + patience;
        loop {
            match self.occupy() {
                Err(error) if error.code == Code::Conflict && Instant::now() < deadline => {
                    std::thread::sleep(AGAIN);
                }
                occupied => return occupied,
            }
        }
    }

    /// A lock belongs to an opening, so each has one of its own.
    fn lock_file(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        single(self.home().as_fd(), b".", flags)
            .map_err(|kind| FsError::new("lock the workspace", b"", kind).at(Stage::Open))
    }
}

fn locking(errno: Errno) -> Error {
    FsError::os("lock the workspace", b"", errno).at(Stage::Open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::Dir;
    use crate::layout::Layout;

    #[test]
    fn many_may_be_in_it_or_one_alone() {
        let place = tempfile::tempdir().unwrap();
        let layout = Layout::open(Dir::open_trusted(place.path()).unwrap()).unwrap();
        let project = || layout.project(&"a".parse().unwrap()).unwrap();
        let (one, two) = (project(), project());
        let first = one.enter(&|| true).unwrap();
        let second = two.enter(&|| true).unwrap();
        assert_eq!(one.occupy().unwrap_err().code, Code::Conflict);
        drop(first);
        assert_eq!(one.occupy().unwrap_err().code, Code::Conflict);
        drop(second);
        let alone = one.occupy().unwrap();
        assert_eq!(two.occupy().unwrap_err().code, Code::Conflict);
        assert_eq!(two.enter(&|| false).unwrap_err().code, Code::Canceled);
        drop(alone);
        two.enter(&|| false).unwrap();
        let other = layout.project(&"b".parse().unwrap()).unwrap();
        let _alone = other.occupy().unwrap();
        two.occupy().unwrap();
    }
}
