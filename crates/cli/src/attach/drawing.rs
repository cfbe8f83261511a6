//! What a session puts out, on the person's terminal. Several threads draw, and one ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::terminal_filter::{Passing, TerminalFilter};

/// How long the end waits for a terminal that takes no output.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Drawing {
    filter: Mutex<TerminalFilter>,
    closed: AtomicBool,
}

impl Drawing {
    pub(super) fn new() -> Self {
        Self {
            filter: Mutex::new(TerminalFilter::new(Passing::Drawing)),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether the terminal is still there.
    pub(super) fn draw(&self, bytes: &[u8]) -> bool {
        let mut filter = self.filter.lock().unwrap_or_else(|it| it.into_inner());
        if self.is_closed() {
            return true;
        }
        write(&filter.pass(bytes)).is_ok()
    }

    /// Another picture in the place of what is there.
    pub(super) fn draw_anew(&self, picture: &[u8]) -> bool {
        let mut filter = self.filter.lock().unwrap_or_else(|it| it.into_inner());
        if self.is_closed() {
            return true;
        }
        let mut bytes = filter.reset();
        bytes.extend(filter.pass(picture));
        write(&bytes).is_ok()
    }

    /// Nothing is drawn any more, and the terminal is as it was. `last`: what is said then.
    pub(super) fn close(&self, last: &[u8]) {
        self.closed.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + PATIENCE;
        let mut filter = loop {
            match self.filter.try_lock() {
                Ok(filter) => break filter,
                Err(TryLockError::Poisoned(filter)) => break filter.into_inner(),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let mut bytes = filter.reset();
        bytes.extend_from_slice(last);
        let _ = write(&bytes);
    }
}

/// Straight to the descriptor, which a parent may have made non-blocking.
fn write(mut bytes: &[u8]) -> Result<(), Errno> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(stdout, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
                poll(&mut room, None)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
