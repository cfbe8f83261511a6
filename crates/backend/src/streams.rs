//! Where output goes and how a run is stopped from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glovebox_model::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::notice::Notice;

/// Receives output as it comes. It must not block: clock and limits wait meanwhile.
pub trait Sink {
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// While there is none, nothing more is taken from the program.
    fn has_room(&self) -> bool {
        true
    }

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
