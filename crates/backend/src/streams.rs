//! Where output goes, and how a run is acted on and stopped from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use glovebox_model::{Stream, TerminalSize};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::notice::Notice;

/// Receives output as it comes. It must not block: clock and limits wait meanwhile.
pub trait Sink {
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// The program is there: its time counts from now.
    fn started(&mut self) {}

    /// While there is none, nothing more is taken from the program.
    fn has_room(&self) -> bool {
        true
    }

    /// When [`look`](Self::look) is to be called although nothing came.
    fn next_look(&self) -> Option<Instant> {
        None
    }

    /// Called only when everything was read that the program has put out.
    fn look(&mut self, _now: Instant) {}

    /// What an observed program did or tried, as it comes.
    fn noticed(&mut self, _notice: Notice) {}

    /// Nothing more comes.
    fn ended(&mut self) {}
}

/// Asks a run to stop; may be given away and used from any thread.
#[derive(Debug)]
pub struct Canceler(OwnedFd);

/// The run's side: a byte for each time somebody asked.
#[derive(Debug)]
pub struct Cancel(OwnedFd);

impl Cancel {
    pub fn new() -> rustix::io::Result<(Self, Canceler)> {
        let (asked, asker) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self(asked), Canceler(asker)))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether it was asked, for somebody who has not begun yet.
    pub fn is_asked(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(
            poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)),
            Ok(1..)
        )
    }

    /// How often it was asked since the last look.
    pub(crate) fn take(&self) -> usize {
        rustix::io::read(&self.0, &mut [0u8; 16]).unwrap_or(0)
    }
}

impl Canceler {
    /// Once asks politely; a second time ends at once.
    pub fn cancel(&self) {
        // A full pipe has been asked often enough.
        let _ = rustix::io::write(&self.0, b"c");
    }

    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

/// For signal handlers, which can do nothing but write a byte.
impl From<Canceler> for OwnedFd {
    fn from(canceler: Canceler) -> Self {
        canceler.0
    }
}

pub(crate) fn window_size(size: TerminalSize) -> glovebox_cage::WindowSize {
    let TerminalSize { columns, rows } = size;
    glovebox_cage::WindowSize { columns, rows }
}

/// Acts on a run while it goes on; may be given away and used from any thread.
#[derive(Debug)]
pub struct Controller(OwnedFd);

/// The run's side: a message for each act.
#[derive(Debug)]
pub struct Control(OwnedFd);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Resize(TerminalSize),
    Signal(i32),
    Expire,
}

impl Act {
    /// All messages are of one length and far below `PIPE_BUF`, so each is written whole or not at
    /// all, and none is read in part.
    const BYTES: usize = 5;
    const RESIZE: u8 = b'r';
    const SIGNAL: u8 = b's';
    const EXPIRE: u8 = b'e';

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, [a, b, c, d]) = match self {
            Self::Resize(TerminalSize { columns, rows }) => {
                let ([a, b], [c, d]) = (columns.to_ne_bytes(), rows.to_ne_bytes());
                (Self::RESIZE, [a, b, c, d])
            }
            Self::Signal(signal) => (Self::SIGNAL, signal.to_ne_bytes()),
            Self::Expire => (Self::EXPIRE, [0; 4]),
        };
        [kind, a, b, c, d]
    }

    fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [kind, a, b, c, d] = bytes;
        match kind {
            Self::RESIZE => Some(Self::Resize(TerminalSize {
                columns: u16::from_ne_bytes([a, b]),
                rows: u16::from_ne_bytes([c, d]),
            })),
            Self::SIGNAL => Some(Self::Signal(i32::from_ne_bytes([a, b, c, d]))),
            Self::EXPIRE => Some(Self::Expire),
            _ => None,
        }
    }
}

impl Control {
    pub fn new() -> rustix::io::Result<(Self, Controller)> {
        let (asked, asker) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self(asked), Controller(asker)))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What was asked for since the last look; none when there is nobody left to ask.
    pub(crate) fn take(&self) -> Option<Vec<Act>> {
        let mut buffer = [0; Act::BYTES * 16];
        match rustix::io::read(&self.0, &mut buffer) {
            Ok(count @ 1..) => {
                let (acts, _) = buffer[..count].as_chunks();
                Some(acts.iter().filter_map(|it| Act::from_bytes(*it)).collect())
            }
            Err(Errno::AGAIN | Errno::INTR) => Some(Vec::new()),
            Ok(_) | Err(_) => None,
        }
    }
}

impl Controller {
    /// Of a run without a terminal it changes nothing.
    ///
    /// # Errors
    /// As of [`signal`](Self::signal).
    pub fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        self.send(Act::Resize(size))
    }

    /// To all that runs inside. On a terminal `SIGINT`, `SIGQUIT` and `SIGTSTP` go to whoever is in
    /// the foreground, as their keys do.
    ///
    /// # Errors
    /// `InvalidInput` for what is no signal, `WouldBlock` when the run is far behind with what it was
    /// asked before, `BrokenPipe` when it is over.
    pub fn signal(&self, signal: i32) -> std::io::Result<()> {
        const LAST: i32 = 64;
        match signal {
            1..=LAST => self.send(Act::Signal(signal)),
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Its time without input and output is over: it is ended as at its time-out.
    ///
    /// # Errors
    /// As of [`signal`](Self::signal).
    pub fn expire(&self) -> std::io::Result<()> {
        self.send(Act::Expire)
    }

    fn send(&self, act: Act) -> std::io::Result<()> {
        rustix::io::write(&self.0, &act.to_bytes())?;
        Ok(())
    }

    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_arrive_whole_and_in_order_and_one_that_finds_no_room_is_told() {
        let (control, controller) = Control::new().unwrap();
        let size = |columns| TerminalSize { columns, rows: 50 };
        let mut sent = 0;
        let full = loop {
            match controller.resize(size(sent)) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
        let mut heard = Vec::new();
        while heard.len() < usize::from(sent) {
            heard.extend(control.take().unwrap());
        }
        assert!(
            heard
                .into_iter()
                .eq((0..sent).map(|it| Act::Resize(size(it))))
        );
        assert!(controller.signal(0).is_err());
        controller.signal(64).unwrap();
        assert_eq!(control.take(), Some(vec![Act::Signal(64)]));
        drop(controller);
        assert_eq!(control.take(), None);
    }
}
