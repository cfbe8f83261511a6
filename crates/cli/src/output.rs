//! Where a run's output goes while it runs.

use std::io::{IsTerminal, Write};

use glovebox_engine::{Canceler, Sink, Stream};

use crate::terminal::Sanitizer;

/// Passes output through to our own streams; made harmless where a person's terminal is.
#[derive(Debug)]
pub(crate) struct PassThrough {
    stdout: Option<Sanitizer>,
    stderr: Option<Sanitizer>,
    closed: bool,
    canceler: Canceler,
}

impl PassThrough {
    pub(crate) fn new(canceler: Canceler) -> Self {
        Self {
            stdout: std::io::stdout().is_terminal().then(Sanitizer::default),
            stderr: std::io::stderr().is_terminal().then(Sanitizer::default),
            closed: false,
            canceler,
        }
    }
}

impl Sink for PassThrough {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let sanitizer = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let cleaned = sanitizer.as_mut().map(|sanitizer| sanitizer.clean(bytes));
        let bytes = cleaned.as_deref().unwrap_or(bytes);
        let written = match stream {
            Stream::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Stream::Stderr => std::io::stderr().lock().write_all(bytes),
        };
        if written.is_err() {
            // As in a pipeline: who is not read any more is asked to stop.
            self.closed = true;
            self.canceler.cancel();
        }
    }
}

/// Keeps output for the record alone.
#[derive(Debug)]
pub(crate) struct Silent;

impl Sink for Silent {
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

/// One JSON value and a newline on standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    std::io::stdout().write_all(&text)
}
