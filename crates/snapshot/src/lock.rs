//! Who may touch a store at the same time. The kernel drops these locks however their owner ends.

use std::fs::File;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result};
use glovebox_workspace::{Dir, FsErrorKind, RelPath};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::fault::{STAGE, os, storing};
use crate::progress::{Progress, Watch, tell};

const PATIENCE: Duration = Duration::from_secs(30);
const RETRY_MS: u64 = 5000;
const PAUSE: Duration = Duration::from_millis(5);

/// Whoever uses chunks shares it; whoever deletes chunks has it alone.
pub(crate) const CHUNKS: &str = "lock";
/// Whoever takes a snapshot within a quota has it alone, so that two who measure at the same moment
/// do not pass it together. Without one, all take at once.
pub(crate) const TAKING: &str = "taking";

#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn shared(dir: &Dir, name: &str, watch: &mut dyn Watch) -> Result<Self> {
        Self::wait(dir, name, FlockOperation::NonBlockingLockShared, watch)
    }

    pub(crate) fn alone(dir: &Dir, name: &str, watch: &mut dyn Watch) -> Result<Self> {
        Self::wait(dir, name, FlockOperation::NonBlockingLockExclusive, watch)
    }

    /// Whoever is not wanted any more does not wait.
    fn wait(
        dir: &Dir,
        name: &str,
        operation: FlockOperation,
        watch: &mut dyn Watch,
    ) -> Result<Self> {
        let file = open(dir, name)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(os("lock", name.as_bytes(), errno)),
            }
            if Instant::now() >= until {
                return Err(busy());
            }
            tell(watch, Progress::default())?;
            std::thread::sleep(PAUSE);
        }
    }
}

fn busy() -> Error {
    let message = "the snapshots of this space have been in use for half a minute";
    let mut error = Error::new(Code::Busy, STAGE, message)
        .hint("another snapshot of this space is being taken, or chunks are collected: try again");
    error.retry.after_ms = Some(RETRY_MS);
    error
}

fn open(dir: &Dir, name: &str) -> Result<File> {
    let existing = || {
        dir.open_plain(name.as_bytes(), OFlags::RDWR)
            .map(File::from)
    };
    match existing() {
        Err(error) if error.kind() == FsErrorKind::NotFound => {}
        opened => return opened.map_err(storing),
    }
    let path = RelPath::new(name).map_err(|error| error.at(STAGE, name.as_bytes()))?;
    match dir.create(&path, 0o600) {
        // Somebody else was faster.
        Err(error) if error.kind() == FsErrorKind::Exists => existing(),
        made => made,
    }
    .map_err(storing)
}
