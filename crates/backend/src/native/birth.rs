//! How far a sandbox has come: born, and ready.

use std::time::Instant;

use glovebox_cage::{Event, Handle};
use glovebox_model::{Error, Result};

use super::sandbox::{broken, setup_failed};
use super::standing::ready;

#[derive(Debug, Default)]
pub(super) struct Birth {
    /// Its pid on the host, once it was born.
    init: Option<i32>,
    ready: bool,
}

impl Birth {
    /// Pid 1, as the host knows it.
    pub(super) fn init(&self) -> Option<i32> {
        self.init
    }

    /// Pid 1 of a sandbox that stands.
    pub(super) fn stands(&self) -> Option<i32> {
        self.init.filter(|_| self.ready)
    }

    /// Waits until it stands.
    pub(super) fn settle(&mut self, handle: &Handle, deadline: Instant) -> Result<()> {
        while self.stands().is_none() {
            let [control, init] = ready([handle.control_fd(), handle.init_fd()], deadline)?;
            if control {
                match handle.next_control().map_err(|errno| broken(&errno))? {
                    Event::Born { pid } => self.init = Some(pid),
                    Event::Failed(failure) => return Err(setup_failed(&failure)),
                    event => return Err(why_not(handle, &event)),
                }
            } else if init {
                match handle.next_init().map_err(|errno| broken(&errno))? {
                    Some(Event::Ready) => self.ready = true,
                    Some(Event::Failed(failure)) => return Err(setup_failed(&failure)),
                    // The keeper says more.
                    None if self.init.is_none() => {}
                    event => return Err(broken(&format!("unexpected {event:?}"))),
                }
            }
        }
        Ok(())
    }
}

fn why_not(handle: &Handle, event: &Event) -> Error {
    // Pid 1 has said why, if it could.
    match (event, handle.next_init()) {
        (Event::Ended { .. }, Ok(Some(Event::Failed(failure)))) => setup_failed(&failure),
        _ => broken(&format!("unexpected {event:?}")),
    }
}
