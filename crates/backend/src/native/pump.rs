//! The payload's standard streams: pipes whose far ends only the payload holds.

use glovebox_model::Stream;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::streams::Sink;

const CHUNK: usize = 64 << 10;

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
            },
            theirs,
        ))
    }

    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Takes what is there, at most one chunk, so that one loud stream never starves the rest.
    pub(crate) fn take(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) -> Taken {
        let Some(pipe) = &self.pipe else {
            return Taken::Nothing;
        };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(count) if count > 0 => {
                sink.output(self.stream, &buffer[..count]);
                Taken::Some
            }
            Err(Errno::INTR) => Taken::Some,
            Err(Errno::AGAIN) => Taken::Nothing,
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
        })
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
            Ok(0) => self.close(),
            Ok(count) => self.waiting.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(),
        }
    }

    pub(crate) fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        match rustix::io::write(pipe, &self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The payload does not read any more.
            Err(_) => self.close(),
        }
    }

    fn close(&mut self) {
        self.source = None;
        self.pipe = None;
        self.waiting.clear();
    }
}
