//! Where output goes and how a run is stopped from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Receives output as it comes. It must not block: clock and limits wait meanwhile.
pub trait Sink {
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// While there is none, nothing more is taken from the program.
    fn has_room(&self) -> bool {
        true
    }

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
