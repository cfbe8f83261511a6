//! The thread that passes on what is typed, and the terminal's size: each byte once, in their order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Result, TerminalSize};

use super::{Event, Link};

/// A pipe takes so much whole or not at all: what was not taken can be sent again.
const AT_ONCE: usize = 4096;
/// More than that waits in the terminal itself.
const WAITING_MOST: usize = 1 << 20;
/// How long who leaves waits for the last keys to be passed on.
const SETTLED: Duration = Duration::from_secs(2);

pub(super) enum Typed {
    Bytes(Vec<u8>),
    Size(TerminalSize),
}

/// Where what is typed is put.
pub(super) struct Keyboard {
    typed: Sender<Typed>,
    waiting: Arc<AtomicUsize>,
}

impl Keyboard {
    /// Whether the thread is still there.
    pub(super) fn put(&self, typed: Typed) -> bool {
        if let Typed::Bytes(bytes) = &typed {
            self.waiting.fetch_add(bytes.len(), Ordering::SeqCst);
        }
        self.typed.send(typed).is_ok()
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) < WAITING_MOST
    }

    /// Waits until everything is passed on. A program that does not read is not waited for.
    pub(super) fn settle(&self) {
        let deadline = Instant::now() + SETTLED;
        while self.waiting.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(super) struct Typist {
    link: Link,
    typed: Receiver<Typed>,
    waiting: Arc<AtomicUsize>,
}

impl Typist {
    pub(super) fn new(link: Link) -> (Self, Keyboard) {
        let (sender, typed) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let keyboard = Keyboard {
            typed: sender,
            waiting: Arc::clone(&waiting),
        };
        let typist = Self {
            link,
            typed,
            waiting,
        };
        (typist, keyboard)
    }

    pub(super) fn run(self) {
        while let Ok(first) = self.typed.recv() {
            let all = std::iter::once(first).chain(self.typed.try_iter());
            let (mut bytes, mut size) = (Vec::new(), None);
            for typed in all {
                match typed {
                    Typed::Bytes(more) => bytes.extend(more),
                    Typed::Size(latest) => size = Some(latest),
                }
            }
            if let Err(error) = self.pass_on(&bytes, size) {
                match error.code {
                    // It has ended: the other thread tells how.
                    Code::Conflict | Code::NotFound => {}
                    _ => self.link.events.tell(Event::Failed(Box::new(error))),
                }
            }
            self.waiting.fetch_sub(bytes.len(), Ordering::SeqCst);
        }
    }

    fn pass_on(&self, bytes: &[u8], size: Option<TerminalSize>) -> Result<()> {
        let Link {
            sessions,
            id,
            drawing,
            ..
        } = &self.link;
        if let Some(size) = size {
            sessions.resize(id, size, || !drawing.is_closed())?;
        }
        for piece in bytes.chunks(AT_ONCE) {
            sessions.type_in(id, piece, || !drawing.is_closed())?;
        }
        Ok(())
    }
}
