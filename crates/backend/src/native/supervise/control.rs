//! What a run is asked for while it goes on, and its terminal.

use std::os::fd::{BorrowedFd, OwnedFd};

use glovebox_cage::{Handle, Terminal};
use glovebox_model::{Result, TerminalSize};
use rustix::process::Signal;

use super::Run;
use crate::native::sandbox::broken;
use crate::streams::{Act, Control, window_size};

/// What a terminal has keys for. Whom they reach is its foreground process group.
const KEYS: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::TSTP];

#[derive(Debug)]
enum Line {
    None,
    /// Pid 1 opens it before it starts the program.
    Awaited,
    /// Ours until the end: if it were closed, it would hang up.
    Open(Terminal),
}

#[derive(Debug)]
pub(super) struct Controls<'run> {
    /// None when nobody can ask any more.
    pub(super) asked: Option<&'run Control>,
    line: Line,
}

impl Controls<'_> {
    pub(super) fn new(terminal: Option<TerminalSize>) -> Self {
        Self {
            asked: None,
            line: terminal.map_or(Line::None, |_| Line::Awaited),
        }
    }

    /// To be polled for reading. What is asked of a terminal that is still to come waits for it.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self.line {
            Line::Awaited => None,
            Line::None | Line::Open(_) => self.asked.map(Control::fd),
        }
    }

    /// A program that has ended meanwhile needs none of it. Whether the run is to be ended.
    pub(super) fn obey(&mut self, handle: &Handle) -> bool {
        let Some(acts) = self.asked.and_then(Control::take) else {
            self.asked = None;
            return false;
        };
        let is_over = acts.contains(&Act::Expire);
        for act in acts {
            let _ = match (act, &self.line) {
                (Act::Expire, _) => Ok(()),
                (Act::Resize(size), Line::Open(terminal)) => terminal.resize(window_size(size)),
                (Act::Resize(_), Line::None | Line::Awaited) => Ok(()),
                (Act::Signal(signal), Line::Open(terminal)) if has_key(signal) => {
                    terminal.signal(signal)
                }
                (Act::Signal(signal), _) => handle.signal(signal),
            };
        }
        is_over
    }
}

impl Run<'_> {
    /// From here on its streams are there.
    pub(super) fn connect(&mut self, terminal: Terminal) -> Result<()> {
        let [input, output] = ends(&terminal).map_err(|errno| broken(&errno))?;
        let [stdout, _] = &mut self.outlets;
        stdout.connect(output);
        self.inlet.connect(input);
        self.controls.line = Line::Open(terminal);
        Ok(())
    }
}

/// To be written and to be read. Neither blocks, nor does the terminal itself.
fn ends(terminal: &Terminal) -> rustix::io::Result<[OwnedFd; 2]> {
    rustix::io::ioctl_fionbio(terminal, true)?;
    let end = || rustix::io::fcntl_dupfd_cloexec(terminal, 0);
    Ok([end()?, end()?])
}

fn has_key(signal: i32) -> bool {
    KEYS.iter().any(|key| key.as_raw() == signal)
}
