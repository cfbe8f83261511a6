//! How far long work is, on one line of a person's terminal; and whether it is still wanted.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use glovebox_model::Result;
use glovebox_snapshot::{Progress, Watch};

use crate::args::Global;
use crate::human::{count, size};
use crate::stop::Stop;

const PACE: Duration = Duration::from_millis(100);
/// Shorter work needs no line.
const SOON: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub(crate) struct Meter {
    stop: Stop,
    what: &'static str,
    is_shown: bool,
    since: Instant,
    last: Option<Instant>,
}

impl Meter {
    pub(crate) fn start(global: &Global, what: &'static str) -> Result<Self> {
        Ok(Self {
            stop: Stop::listen()?,
            what,
            is_shown: !global.quiet && !global.json && std::io::stderr().is_terminal(),
            since: Instant::now(),
            last: None,
        })
    }

    fn show(&mut self, progress: Progress) {
        let now = Instant::now();
        let is_due = self.last.is_none_or(|last| now - last >= PACE);
        if !self.is_shown || !is_due || now - self.since < SOON {
            return;
        }
        self.last = Some(now);
        let entries = count(progress.entries, "entry", "entries");
        let line = format!("{}: {entries}, {}", self.what, size(progress.bytes));
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
    }
}

impl Watch for Meter {
    fn on(&mut self, progress: Progress) -> ControlFlow<()> {
        self.show(progress);
        match self.stop.is_asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
