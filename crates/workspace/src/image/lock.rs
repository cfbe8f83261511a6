//! Locks on files: the kernel drops them however their owner ends.

use std::fs::File;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{STAGE, storing};
use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    Alone,
    Shared,
}

impl Lock {
    /// None when somebody else has it.
    pub(super) fn attempt(dir: &Dir, name: &str, sharing: Sharing) -> Result<Option<Self>> {
        let file = open(dir, name)?;
        let operation = match sharing {
            Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
            Sharing::Shared => FlockOperation::NonBlockingLockShared,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(storing(FsError::os("lock", name.as_bytes(), errno))),
        }
    }

    /// Others hold it for moments only, so waiting long means that something is wrong.
    pub(super) fn wait(dir: &Dir, name: &str) -> Result<Self> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(lock) = Self::attempt(dir, name, Sharing::Alone)? {
                return Ok(lock);
            }
            if Instant::now() >= until {
                let message = "another process has been changing the images for a minute";
                return Err(Error::new(Code::Busy, STAGE, message)
                    .hint("wait for its `glovebox image` command to end and try again"));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn open(dir: &Dir, name: &str) -> Result<File> {
    match dir.reopen_name(name) {
        Err(error) if error.kind() == FsErrorKind::NotFound => {}
        opened => return opened.map_err(storing),
    }
    match dir.create_name(name, 0o600) {
        // Somebody else was faster.
        Err(error) if error.kind() == FsErrorKind::Exists => dir.reopen_name(name),
        made => made,
    }
    .map_err(storing)
}
