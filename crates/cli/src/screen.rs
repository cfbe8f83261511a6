//! Bytes of untrusted files on standard output: as they are, unless a person's terminal is there.

use std::io::{self, IsTerminal, Write};

use glovebox_model::Result;

use crate::terminal::Sanitizer;

#[derive(Debug)]
pub(crate) struct Screen {
    sanitizer: Option<Sanitizer>,
    /// Nobody reads any more, as after `| head`.
    is_gone: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self {
            sanitizer: io::stdout().is_terminal().then(Sanitizer::default),
            is_gone: false,
        }
    }

    /// A reader who went away is no failure of whatever was printed.
    pub(crate) fn settle(self, printed: Result<()>) -> Result<()> {
        match self.is_gone {
            true => Ok(()),
            false => printed,
        }
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        let written = match &mut self.sanitizer {
            Some(sanitizer) => out.write_all(&sanitizer.clean(bytes)),
            None => out.write_all(bytes),
        };
        let written = written.and_then(|()| out.flush());
        written
            .inspect_err(|error| self.is_gone = error.kind() == io::ErrorKind::BrokenPipe)
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
