//! How far long work is, on one line of a person's terminal; and whether it is still wanted.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_model::Result;
use glovebox_serve::LocalProgress;
use glovebox_snapshot::{Progress, Watch};

use crate::args::Global;
use crate::human::{count, size};
use crate::stop::Stop;

const PACE: Duration = Duration::from_millis(100);
/// Shorter work needs no line.
const SOON: Duration = Duration::from_millis(400);

#[derive(Debug)]
struct ProgressMeter {
    stop: Stop,
    what: &'static str,
    is_shown: bool,
    since: Instant,
    last: Option<Instant>,
}

impl ProgressMeter {
    fn new(is_shown: bool, what: &'static str) -> Result<Self> {
        Ok(Self {
            stop: Stop::listen()?,
            what,
            is_shown,
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

/// The line of whatever long work is under way in this process.
#[derive(Debug, Clone)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    meter: Arc<Mutex<UnderWay>>,
}

/// None while nothing is.
#[derive(Debug, Default)]
struct UnderWay(Option<ProgressMeter>);

/// Ends the line when it is dropped.
#[derive(Debug)]
pub(crate) struct Shown<'l>(&'l ProgressLine);

impl ProgressLine {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            is_shown: is_shown(global),
            meter: Arc::default(),
        }
    }

    /// Told how far it is.
    pub(crate) fn listener(&self) -> LocalProgress {
        Arc::clone(&self.meter) as LocalProgress
    }

    pub(crate) fn begin(&self, what: &'static str) -> Result<Shown<'_>> {
        self.put(Some(ProgressMeter::new(self.is_shown, what)?));
        Ok(Shown(self))
    }

    fn put(&self, meter: Option<ProgressMeter>) {
        let mut under_way = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.0 = meter;
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.put(None);
    }
}

impl Watch for UnderWay {
    fn on(&mut self, progress: Progress) -> ControlFlow<()> {
        match &mut self.0 {
            Some(meter) => meter.on(progress),
            None => ControlFlow::Continue(()),
        }
    }
}

fn is_shown(global: &Global) -> bool {
    !global.quiet && !global.json && std::io::stderr().is_terminal()
}

impl Watch for ProgressMeter {
    fn on(&mut self, progress: Progress) -> ControlFlow<()> {
        self.show(progress);
        match self.stop.is_asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Drop for ProgressMeter {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
