//! Ctrl-C while something works here: once asks it to stop and clean up, twice ends it at once.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::interrupt::{self, Asker};

/// Work tells how far it is far more often than anybody presses a key.
const PACE: Duration = Duration::from_millis(20);
pub(crate) const CANCELED: i32 = 130;

#[derive(Debug)]
pub(crate) struct Stop {
    pressed: Arc<AtomicBool>,
    presses: OwnedFd,
    _asker: Asker,
    looked: Cell<Option<Instant>>,
    asked: Cell<bool>,
}

impl Stop {
    pub(crate) fn listen() -> Result<Self> {
        let failed = |error: io::Error| {
            Error::new(Code::Internal, Stage::Parse, "cannot listen for signals").caused_by(error)
        };
        let pressed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first press finds the flag unset.
            flag::register_conditional_shutdown(signal, CANCELED, Arc::clone(&pressed))
                .map_err(failed)?;
            flag::register(signal, Arc::clone(&pressed)).map_err(failed)?;
        }
        let (presses, asker) = interrupt::presses()?;
        Ok(Self {
            pressed,
            presses,
            _asker: asker,
            looked: Cell::new(None),
            asked: Cell::new(false),
        })
    }

    /// For work that cannot ask, and looks.
    pub(crate) fn pressed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.pressed)
    }

    pub(crate) fn is_asked(&self) -> bool {
        let is_due = self.looked.get().is_none_or(|at| at.elapsed() >= PACE);
        if is_due && !self.asked.get() {
            self.looked.set(Some(Instant::now()));
            self.asked.set(self.wait(Duration::ZERO));
        }
        self.asked.get()
    }

    /// For so long, or until somebody presses; whether somebody did.
    pub(crate) fn wait(&self, most: Duration) -> bool {
        let mut sources = [PollFd::new(&self.presses, PollFlags::IN)];
        let most = Timespec::try_from(most).ok();
        matches!(poll(&mut sources, most.as_ref()), Ok(1..))
    }

    pub(crate) fn around(&self, file: File) -> Wanted<'_> {
        Wanted { stop: self, file }
    }

    /// The same file, which fails once somebody pressed, even while nothing comes.
    pub(crate) fn over(&self, file: File) -> Result<StoppableFile> {
        let presses = self.presses.try_clone().map_err(|error| {
            Error::new(Code::Internal, Stage::Parse, "cannot listen for signals").caused_by(error)
        })?;
        Ok(StoppableFile { presses, file })
    }
}

/// A file that is read and written for as long as nobody presses.
#[derive(Debug)]
pub(crate) struct Wanted<'s> {
    stop: &'s Stop,
    file: File,
}

impl Wanted<'_> {
    fn file(&mut self) -> io::Result<&mut File> {
        match self.stop.is_asked() {
            true => Err(unwanted()),
            false => Ok(&mut self.file),
        }
    }
}

impl Read for Wanted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file()?.read(buffer)
    }
}

impl Write for Wanted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Wanted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn unwanted() -> io::Error {
    io::Error::other("canceled by the caller")
}

pub(crate) fn canceled() -> Error {
    let message = "canceled by the caller; nothing was changed";
    Error::new(Code::Canceled, Stage::Open, message)
}

/// A file that is read until somebody presses.
#[derive(Debug)]
pub(crate) struct StoppableFile {
    presses: OwnedFd,
    file: File,
}

impl Read for StoppableFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut sources = [
                PollFd::new(&self.presses, PollFlags::IN),
                PollFd::new(&self.file, PollFlags::IN),
            ];
            match poll(&mut sources, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
                Ok(_) => {}
            }
            if !sources[0].revents().is_empty() {
                return Err(unwanted());
            }
            return self.file.read(buffer);
        }
    }
}

impl Seek for StoppableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
