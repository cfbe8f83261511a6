//! Ctrl-C and friends: once asks the run to stop, a second time ends it at once.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use glovebox_engine::{Cancel, Canceler};
use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Asks for the end of a run, one byte for each time, here or on a server.
#[derive(Debug)]
pub(crate) struct Asker(OwnedFd);

impl Asker {
    pub(crate) fn ask(&self) {
        // A full pipe has been asked often enough.
        let _ = rustix::io::write(&self.0, b"c");
    }
}

impl From<Canceler> for Asker {
    fn from(canceler: Canceler) -> Self {
        Self(canceler.into())
    }
}

/// For a run in this process.
pub(crate) fn listen() -> Result<(Cancel, Asker)> {
    let (cancel, canceler) = Cancel::new().map_err(|errno| failed(errno.into()))?;
    let asker = Asker::from(canceler);
    register(&asker)?;
    Ok((cancel, asker))
}

/// For a run elsewhere: the end to be read from, not blocking.
pub(crate) fn presses() -> Result<(OwnedFd, Asker)> {
    let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
    let (presses, asker) = made.map_err(|errno| failed(errno.into()))?;
    let asker = Asker(asker);
    register(&asker)?;
    Ok((presses, asker))
}

/// Whether a signal came. What was pressed stays to be read.
pub(crate) fn is_pressed(presses: &OwnedFd) -> bool {
    is_pressed_within(presses, Duration::ZERO)
}

/// The same, as soon as one comes.
pub(crate) fn is_pressed_within(presses: &OwnedFd, most: Duration) -> bool {
    let mut sources = [PollFd::new(presses, PollFlags::IN)];
    let most = Timespec::try_from(most).unwrap_or_default();
    matches!(poll(&mut sources, Some(&most)), Ok(1..))
}

/// A byte for each time the terminal got another size. Not blocking.
pub(crate) fn resizes() -> Result<OwnedFd> {
    let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
    let (resizes, told) = made.map_err(|errno| failed(errno.into()))?;
    pipe::register(SIGWINCH, told).map_err(failed)?;
    Ok(resizes)
}

/// Set by the first signal, for work that has no run to ask.
pub(crate) fn flag() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&asked)).map_err(failed)?;
    }
    Ok(asked)
}

fn register(asker: &Asker) -> Result<()> {
    for signal in SIGNALS {
        let own = asker.0.try_clone().map_err(failed)?;
        pipe::register(signal, own).map_err(failed)?;
    }
    Ok(())
}

fn failed(error: std::io::Error) -> Error {
    Error::new(Code::Internal, Stage::Parse, "cannot listen for signals").caused_by(error)
}
