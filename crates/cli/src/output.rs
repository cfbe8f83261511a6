//! Where a run's output goes while it runs. A thread of its own writes it, so that a reader who does
//! not read holds up the program and nothing else.

use glovebox_model::Stream;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use glovebox_api::client::LiveOutput;
use glovebox_engine::Sink;
use rustix::event::{PollFd, PollFlags, poll};

use crate::interrupt::Asker;
use crate::terminal::Sanitizer;

/// Chunks that may wait to be written; the program's pipe holds the next ones.
const WAITING_MAX: usize = 16;

type Chunk = (Stream, Vec<u8>);

/// Passes output through to our own streams; made harmless where a person's terminal is.
#[derive(Debug)]
pub(crate) struct PassThrough {
    stdout: Option<Sanitizer>,
    stderr: Option<Sanitizer>,
    asker: Option<Asker>,
    waiting: Arc<AtomicUsize>,
    /// Started with the first chunk: a silent program costs no thread.
    writer: Option<(Sender<Chunk>, JoinHandle<()>)>,
}

impl PassThrough {
    pub(crate) fn new(asker: Asker) -> Self {
        Self {
            stdout: io::stdout().is_terminal().then(Sanitizer::default),
            stderr: io::stderr().is_terminal().then(Sanitizer::default),
            asker: Some(asker),
            waiting: Arc::default(),
            writer: None,
        }
    }

    /// Waits until everything is written or nobody reads any more.
    pub(crate) fn finish(self) {
        if let Some((chunks, writer)) = self.writer {
            drop(chunks);
            let _ = writer.join();
        }
    }

    fn start(&mut self) -> (Sender<Chunk>, JoinHandle<()>) {
        let (sender, chunks) = channel();
        let waiting = Arc::clone(&self.waiting);
        let asker = self.asker.take();
        let writer = std::thread::spawn(move || write_all(&chunks, &waiting, asker.as_ref()));
        (sender, writer)
    }
}

impl LiveOutput for PassThrough {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        Sink::output(self, stream, bytes);
    }

    fn has_room(&self) -> bool {
        Sink::has_room(self)
    }
}

impl Sink for PassThrough {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let sanitizer = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let bytes = match sanitizer {
            Some(sanitizer) => sanitizer.clean(bytes),
            None => bytes.to_vec(),
        };
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.start(),
        };
        self.waiting.fetch_add(1, Ordering::AcqRel);
        // A writer that is gone has no reader; the run is being canceled then.
        let _ = writer.0.send((stream, bytes));
        self.writer = Some(writer);
    }

    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < WAITING_MAX
    }
}

fn write_all(chunks: &Receiver<Chunk>, waiting: &AtomicUsize, asker: Option<&Asker>) {
    let mut closed = false;
    for (stream, bytes) in chunks {
        if !closed && write(stream, &bytes).is_err() {
            // As in a pipeline: who is not read any more is asked to stop.
            closed = true;
            if let Some(asker) = asker {
                asker.ask();
            }
        }
        waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Straight to the descriptor: whole chunks need no buffer. A caller may have made it non-blocking.
fn write(stream: Stream, mut bytes: &[u8]) -> io::Result<()> {
    let descriptor = match stream {
        Stream::Stdout => rustix::stdio::stdout(),
        Stream::Stderr => rustix::stdio::stderr(),
    };
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
                poll(&mut room, None)?;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Keeps output for the record alone.
#[derive(Debug)]
pub(crate) struct Silent;

impl LiveOutput for Silent {
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

impl Sink for Silent {
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

/// One JSON value and a newline on standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    io::stdout().write_all(glovebox_api::json::for_terminals(&text).as_bytes())
}
