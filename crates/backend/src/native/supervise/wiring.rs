//! How a run is connected: its streams, and whoever waits for its message.

use std::os::fd::{AsFd, OwnedFd};

use glovebox_model::{Result, Stream};
use rustix::io::Errno;

use super::cage_order;
use crate::native::parcels::Parcels;
use crate::native::preload::Interpreter;
use crate::native::pump::{Inlet, Outlet};
use crate::native::sandbox::{Seat, broken};
use crate::spec::Order;

/// An interpreter's part in a run.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) interpreter: Interpreter,
    /// Until the directories are there.
    pub(super) message: Option<Vec<u8>>,
}

/// What a run is given.
pub(super) struct Feed {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) parcels: Parcels,
}

/// The streams of a run and whoever waits for its message.
pub(super) struct Wiring {
    pub(super) inlet: Inlet,
    pub(super) outlets: [Outlet; 2],
    pub(super) listener: Option<Listener>,
}

impl Wiring {
    /// Pipes of its own, and an order to pid 1.
    pub(super) fn by_order(seat: &Seat, order: &Order, stands: bool, feed: Feed) -> Result<Self> {
        let Feed { stdin, mut parcels } = feed;
        let no_pipe = |errno: Errno| broken(&errno);
        let (inlet, input) = Inlet::new(stdin).map_err(no_pipe)?;
        let (stdout, output) = Outlet::new(Stream::Stdout).map_err(no_pipe)?;
        let (stderr, error) = Outlet::new(Stream::Stderr).map_err(no_pipe)?;
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        let order = cage_order(order);
        let further = parcels.deliver(&seat.handle)?;
        let sent = match stands {
            true => seat.handle.execute_attached(order, stdio, &further),
            false => seat.handle.execute(order, stdio, &further),
        };
        sent.map_err(|errno| broken(&errno))?;
        Ok(Self {
            inlet,
            outlets: [stdout, stderr],
            listener: None,
        })
    }

    /// The interpreter has its pipes, and hears the rest itself.
    pub(super) fn by_message(
        mut interpreter: Interpreter,
        order: &Order,
        feed: Feed,
    ) -> Result<Self> {
        let Feed { stdin, parcels } = feed;
        if !parcels.is_empty() {
            return Err(broken(
                &"a language that was started ahead takes no secrets",
            ));
        }
        let message = Some(interpreter.message(order, stdin.is_some())?);
        let (input, outlets) = interpreter.take_streams()?;
        let inlet = Inlet::over(stdin, input).map_err(|errno| broken(&errno))?;
        Ok(Self {
            inlet,
            outlets,
            listener: Some(Listener {
                interpreter,
                message,
            }),
        })
    }
}
