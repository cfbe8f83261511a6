//! How a run is connected: its streams, and whoever waits for its message.

use std::os::fd::{AsFd, OwnedFd};

use glovebox_model::{Result, Stream, TerminalSize};

use crate::native::parcels::Parcels;
use crate::native::preload::Interpreter;
use crate::native::pump::{Inlet, Outlet};
use crate::native::sandbox::{Seat, broken};
use crate::spec::{Order, c_string};
use crate::streams::window_size;

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
    pub(super) terminal: Option<TerminalSize>,
    pub(super) parcels: Parcels,
}

/// The streams of a run and whoever waits for its message.
pub(super) struct Wiring {
    pub(super) inlet: Inlet,
    pub(super) outlets: [Outlet; 2],
    pub(super) listener: Option<Listener>,
}

impl Wiring {
    /// Pipes of its own or a terminal, and an order to pid 1.
    pub(super) fn by_order(seat: &Seat, order: &Order, stands: bool, feed: Feed) -> Result<Self> {
        let Feed {
            stdin,
            terminal,
            mut parcels,
        } = feed;
        let mut order = cage_order(order);
        order.terminal = terminal.map(window_size);
        let (inlet, outlets, ends) = match terminal {
            None => pipes(stdin).map_err(|errno| broken(&errno))?,
            Some(_) => {
                let outlets = [Stream::Stdout, Stream::Stderr].map(Outlet::of_terminal);
                (Inlet::of_terminal(stdin), outlets, None)
            }
        };
        let stdio = ends.as_ref().map(|ends| ends.each_ref().map(AsFd::as_fd));
        let further = parcels.deliver(&seat.handle)?;
        let sent = match stands {
            true => seat.handle.execute_attached(order, stdio, &further),
            false => seat.handle.execute(order, stdio, &further),
        };
        sent.map_err(|errno| broken(&errno))?;
        Ok(Self {
            inlet,
            outlets,
            listener: None,
        })
    }

    /// The interpreter has its pipes, and hears the rest itself.
    pub(super) fn by_message(
        mut interpreter: Interpreter,
        order: &Order,
        feed: Feed,
    ) -> Result<Self> {
        let Feed {
            stdin,
            terminal,
            parcels,
        } = feed;
        if terminal.is_some() {
            return Err(broken(
                &"a language that was started ahead has its pipes, and takes no terminal",
            ));
        }
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

/// Ours, and the payload's.
type Pipes = (Inlet, [Outlet; 2], Option<[OwnedFd; 3]>);

fn pipes(stdin: Option<OwnedFd>) -> rustix::io::Result<Pipes> {
    let (inlet, input) = Inlet::new(stdin)?;
    let (stdout, output) = Outlet::new(Stream::Stdout)?;
    let (stderr, error) = Outlet::new(Stream::Stderr)?;
    Ok((inlet, [stdout, stderr], Some([input, output, error])))
}

pub(crate) fn cage_order(order: &Order) -> glovebox_cage::Order {
    let env = order.env.iter().filter_map(|(key, value)| {
        let mut pair = key.as_bytes().to_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        std::ffi::CString::new(pair).ok()
    });
    glovebox_cage::Order {
        argv: order.argv.iter().map(c_string).collect(),
        env: env.collect(),
        cwd: c_string(&order.cwd),
        path: order.path.iter().map(c_string).collect(),
        terminal: None,
    }
}
