//! The payload's standard streams: pipes, or a terminal, whose far ends only the payload holds.

use glovebox_model::Stream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::streams::Sink;

const CHUNK: usize = 64 << 10;
/// How soon a terminal that no program has open is looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether there may be more at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Some,
    Nothing,
}

/// Our end of an output stream.
#[derive(Debug)]
pub(crate) struct Outlet {
    stream: Stream,
    /// None after the end.
    pipe: Option<OwnedFd>,
    kind: Kind,
    /// Nothing can come before.
    quiet_until: Option<Instant>,
}

/// What the payload has at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Terminal,
}

impl Outlet {
    /// The outlet, and the end that goes to the payload.
    pub(crate) fn new(stream: Stream) -> rustix::io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((
            Self {
                stream,
                pipe: Some(ours),
                kind: Kind::Pipe,
                quiet_until: None,
            },
            theirs,
        ))
    }

    /// For a terminal that is still to be opened, or what has its output there.
    pub(crate) fn of_terminal(stream: Stream) -> Self {
        Self {
            stream,
            pipe: None,
            kind: Kind::Terminal,
            quiet_until: None,
        }
    }

    /// `controlling` does not block.
    pub(crate) fn connect(&mut self, controlling: OwnedFd) {
        self.pipe = Some(controlling);
    }

    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// To be polled for reading.
    pub(crate) fn open(&self, now: Instant) -> Option<&OwnedFd> {
        self.pipe.as_ref().filter(|_| self.next_look(now).is_none())
    }

    /// When it is to be looked at although nothing came.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.quiet_until.filter(|until| now < *until)
    }

    /// Takes what is there, at most one chunk, so that one loud stream never starves the rest.
    pub(crate) fn take(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) -> Taken {
        let Some(pipe) = &self.pipe else {
            return Taken::Nothing;
        };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(count) if count > 0 => {
                self.quiet_until = None;
                sink.output(self.stream, &buffer[..count]);
                Taken::Some
            }
            Err(Errno::INTR) => Taken::Some,
            Err(Errno::AGAIN) => {
                self.quiet_until = None;
                Taken::Nothing
            }
            // No program has it open. One whose terminal it is may open it again.
            Err(Errno::IO) if self.kind == Kind::Terminal => {
                self.quiet_until = Some(Instant::now() + PAUSE);
                Taken::Nothing
            }
            Ok(_) | Err(_) => {
                self.pipe = None;
                Taken::Nothing
            }
        }
    }

    pub(crate) fn buffer() -> Vec<u8> {
        vec![0; CHUNK]
    }
}

/// The payload's standard input: empty, or fed from a descriptor of the caller's.
#[derive(Debug)]
pub(crate) struct Inlet {
    source: Option<OwnedFd>,
    pipe: Option<OwnedFd>,
    waiting: Vec<u8>,
    kind: Kind,
}

impl Inlet {
    /// The caller's own descriptor never goes inside: a terminal could be typed into from there.
    pub(crate) fn new(source: Option<OwnedFd>) -> rustix::io::Result<(Self, OwnedFd)> {
        if source.is_none() {
            let null = rustix::fs::open(
                c"/dev/null",
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            return Ok((
                Self {
                    source: None,
                    pipe: None,
                    waiting: Vec::new(),
                    kind: Kind::Pipe,
                },
                null,
            ));
        }
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Self::over(source, ours)?, theirs))
    }

    /// For a payload that has its end of the pipe already. Without a source it reads an end.
    pub(crate) fn over(source: Option<OwnedFd>, pipe: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let pipe = source.is_some().then_some(pipe);
        Ok(Self {
            source,
            pipe,
            waiting: Vec::new(),
            kind: Kind::Pipe,
        })
    }

    /// For a terminal that is still to be opened: until then nothing is read.
    pub(crate) fn of_terminal(source: Option<OwnedFd>) -> Self {
        Self {
            source,
            pipe: None,
            waiting: Vec::new(),
            kind: Kind::Terminal,
        }
    }

    /// `controlling` does not block.
    pub(crate) fn connect(&mut self, controlling: OwnedFd) {
        self.pipe = Some(controlling);
    }

    /// To be polled for reading, while there is nothing to write.
    pub(crate) fn source(&self) -> Option<&OwnedFd> {
        self.source
            .as_ref()
            .filter(|_| self.waiting.is_empty() && self.pipe.is_some())
    }

    /// To be polled for writing, while there is something to write.
    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref().filter(|_| !self.waiting.is_empty())
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) {
        let Some(source) = &self.source else { return };
        match rustix::io::read(source.as_fd(), &mut *buffer) {
            Ok(0) => self.end(),
            Ok(count) => self.waiting.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end(),
        }
    }

    pub(crate) fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        match rustix::io::write(pipe, &self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // What is typed while no program has it open reaches none.
            Err(Errno::IO) if self.kind == Kind::Terminal => self.waiting.clear(),
            // The payload does not read any more.
            Err(_) => self.close(),
        }
    }

    /// Who reads from a terminal sees an end when its key is typed, and hears of no other.
    fn end(&mut self) {
        match self.kind {
            Kind::Pipe => self.close(),
            Kind::Terminal => self.source = None,
        }
    }

    fn close(&mut self) {
        self.source = None;
        self.pipe = None;
        self.waiting.clear();
    }
}
