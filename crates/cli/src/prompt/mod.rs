//! The person at the terminal: shown what is asked, and asked. The question goes to the terminal
//! itself and the answer comes from there, wherever standard input and output lead.

mod confirm;
mod editor;
mod question;
mod shown;

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use glovebox_model::Result;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};

use crate::interrupt::{self, Asker};
use crate::paint::Paint;
use crate::render::printable;

pub(crate) use question::{Offer, Said};
pub(crate) use shown::shown;

/// Longer than any answer.
const LINE_MOST: usize = 4096;

#[derive(Debug)]
pub(crate) struct Prompt {
    terminal: File,
    /// Readable once somebody pressed Ctrl-C, or wants this process to end.
    presses: OwnedFd,
    _asker: Asker,
    paint: Paint,
}

/// One line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Line(String),
    /// Ctrl-D, Ctrl-C, or the terminal is gone.
    Closed,
    /// What is asked has expired.
    TooLate,
}

impl Prompt {
    /// `None` where nobody would see a question. Standard error tells: a program whose errors are
    /// collected is not looked at by anybody, even if it was started from a terminal.
    pub(crate) fn open() -> Result<Option<Self>> {
        if !std::io::stderr().is_terminal() {
            return Ok(None);
        }
        let flags = i32::try_from((OFlags::NOCTTY | OFlags::CLOEXEC).bits()).unwrap_or(0);
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open("/dev/tty");
        let Ok(terminal) = terminal else {
            return Ok(None);
        };
        let (presses, asker) = interrupt::presses()?;
        Ok(Some(Self {
            paint: Paint::on(&terminal),
            terminal,
            presses,
            _asker: asker,
        }))
    }

    fn say(&self, text: &str) {
        // Who cannot be told does not answer either.
        let _ = (&self.terminal).write_all(text.as_bytes());
    }

    /// What was typed before the question is no answer to it.
    fn line(&self, question: &str, until: Timestamp) -> Typed {
        let _ = tcflush(&self.terminal, QueueSelector::IFlush);
        self.say(question);
        let mut typed = Vec::new();
        loop {
            let mut sources = [
                PollFd::new(&self.presses, PollFlags::IN),
                PollFd::new(&self.terminal, PollFlags::IN),
            ];
            let left = Duration::try_from(until.duration_since(Timestamp::now()));
            let left = Timespec::try_from(left.unwrap_or_default()).ok();
            match poll(&mut sources, left.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Typed::Closed,
                Ok(0) if Timestamp::now() >= until => return Typed::TooLate,
                Ok(_) => {}
            }
            if !sources[0].revents().is_empty() {
                return Typed::Closed;
            }
            if sources[1].revents().is_empty() {
                continue;
            }
            let mut bytes = [0; 512];
            match (&self.terminal).read(&mut bytes) {
                Ok(0) | Err(_) => return Typed::Closed,
                Ok(count) => typed.extend_from_slice(&bytes[..count]),
            }
            if typed.contains(&b'\n') || typed.contains(&b'\r') || typed.len() > LINE_MOST {
                typed.truncate(LINE_MOST);
                return Typed::Line(String::from_utf8_lossy(&typed).trim().to_owned());
            }
        }
    }

    pub(crate) fn tell(&self, text: &str) {
        self.say(&format!("{}\n", printable(text)));
    }
}
