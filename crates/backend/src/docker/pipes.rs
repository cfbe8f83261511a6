//! The streams of a program inside, through the engine's command. What the command says for itself
//! comes on the same pipes: text that may be the engine's is held until the end, when it is known
//! whose it was.

use glovebox_model::Stream;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::cli::Program;
use crate::streams::Sink;

const CHUNK: usize = 64 << 10;
/// Nothing longer is the engine's.
const LONGEST_MESSAGE: usize = 4 << 10;

/// How engines, their runtimes and their inits begin a refusal.
const REFUSALS: [&str; 6] = [
    "Error response from daemon: ",
    "OCI runtime exec failed: ",
    "[FATAL tini (",
    "Cannot connect to the Docker daemon",
    "error during connect: ",
    "ERROR (catatonit",
];
/// Podman begins like any program.
const PODMANS: &str = "Error: ";

pub(super) fn buffer() -> Vec<u8> {
    vec![0; CHUNK]
}

/// One output stream.
#[derive(Debug)]
pub(super) struct Outlet {
    stream: Stream,
    /// None after the end.
    pipe: Option<OwnedFd>,
    /// None once it is clear that the program speaks.
    held: Option<Vec<u8>>,
    program: Program,
}

impl Outlet {
    pub(super) fn new(stream: Stream, pipe: OwnedFd, program: Program) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self {
            stream,
            pipe: Some(pipe),
            held: Some(Vec::new()),
            program,
        })
    }

    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// At most one chunk, so that one loud stream never starves the rest. False when there is
    /// nothing more for now.
    pub(super) fn take(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(count) if count > 0 => {
                self.hand_on(&buffer[..count], sink);
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(_) | Err(_) => {
                self.pipe = None;
                false
            }
        }
    }

    fn hand_on(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let Some(held) = &mut self.held else {
            return sink.output(self.stream, bytes);
        };
        held.extend_from_slice(bytes);
        if !may_be_refusal(held, self.program) {
            self.release(sink);
        }
    }

    /// It was the program's.
    pub(super) fn release(&mut self, sink: &mut dyn Sink) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            sink.output(self.stream, &held);
        }
    }

    /// What may be the engine's.
    pub(super) fn held(&self) -> String {
        let held = self.held.as_deref().unwrap_or_default();
        String::from_utf8_lossy(held).trim().to_owned()
    }
}

fn may_be_refusal(said: &[u8], program: Program) -> bool {
    let podmans = Some(&PODMANS).filter(|_| program == Program::Podman);
    said.len() <= LONGEST_MESSAGE
        && REFUSALS.iter().chain(podmans).any(|refusal| {
            let refusal = refusal.as_bytes();
            refusal.starts_with(said) || said.starts_with(refusal)
        })
}

/// The program's input, fed from a descriptor of the caller's, which itself never goes further: a
/// terminal could be typed into from there.
#[derive(Debug)]
pub(super) struct Inlet {
    source: Option<OwnedFd>,
    pipe: Option<OwnedFd>,
    waiting: Vec<u8>,
}

impl Inlet {
    pub(super) fn new(source: Option<OwnedFd>, pipe: Option<OwnedFd>) -> rustix::io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self {
            pipe: pipe.filter(|_| source.is_some()),
            source,
            waiting: Vec::new(),
        })
    }

    /// To be polled for reading, while there is nothing to write.
    pub(super) fn source(&self) -> Option<&OwnedFd> {
        let idle = self.waiting.is_empty() && self.pipe.is_some();
        self.source.as_ref().filter(|_| idle)
    }

    /// To be polled for writing, while there is something to write.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref().filter(|_| !self.waiting.is_empty())
    }

    /// Written before everything that waits.
    pub(super) fn put_first(&mut self, byte: u8) {
        self.waiting.insert(0, byte);
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) {
        let Some(source) = &self.source else { return };
        match rustix::io::read(source, &mut *buffer) {
            Ok(count) if count > 0 => self.waiting.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.close(),
        }
    }

    pub(super) fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        match rustix::io::write(pipe, &self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody reads any more.
            Err(_) => self.close(),
        }
    }

    fn close(&mut self) {
        self.source = None;
        self.pipe = None;
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_like_a_refusal_is_held() {
        let held = |text: &str| may_be_refusal(text.as_bytes(), Program::Docker);
        for text in [
            "E",
            "Error response from daemon: x",
            "[FATAL tini (7)] exec",
            "",
        ] {
            assert!(held(text), "{text}");
        }
        for text in [
            "hello",
            "Errors: 3",
            "Error: mine",
            "[FATAL] x",
            "x Error response",
        ] {
            assert!(!held(text), "{text}");
        }
        assert!(may_be_refusal(b"Error: crun: x", Program::Podman));
        let long = format!(
            "Error response from daemon: {}",
            "x".repeat(LONGEST_MESSAGE)
        );
        assert!(!held(&long));
    }
}
