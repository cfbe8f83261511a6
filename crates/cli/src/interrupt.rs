//! Ctrl-C and friends: once asks the run to stop, a second time ends it at once.

use std::os::fd::OwnedFd;

use glovebox_engine::{Cancel, Canceler};
use glovebox_model::{Code, Error, Result, Stage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

pub(crate) fn listen() -> Result<(Cancel, Canceler)> {
    let failed = |error: std::io::Error| {
        Error::new(Code::Internal, Stage::Parse, "cannot listen for signals").caused_by(error)
    };
    let (cancel, canceler) = Cancel::new().map_err(|errno| failed(errno.into()))?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let own = canceler.try_clone().map_err(failed)?;
        pipe::register(signal, OwnedFd::from(own)).map_err(failed)?;
    }
    Ok((cancel, canceler))
}
