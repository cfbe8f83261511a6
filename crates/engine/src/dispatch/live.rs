//! An exec that this server has taken on and that has not ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use glovebox_backend::{Cancel, Canceler, Sink};
use glovebox_model::{
    Code, Effect, Error, Exec, ExecId, Limits, ProjectId, Result, SpaceId, Stage, Status, Stream,
};
use glovebox_workspace::{Happened, Journal};
use jiff::Timestamp;
use tokio::sync::watch;

use super::admission::Account;
use super::locked;
use crate::effects::Listener;
use crate::visibility::Seen;

/// How far an exec has come, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Events so far.
    pub events: u64,
    /// Its record is final.
    pub ended: bool,
}

/// Who asked it to stop, if anybody but its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The server is being shut down.
    Shutdown,
    /// This server may not speak for its execs any more.
    LeaseLost,
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) space: SpaceId,
    pub(crate) exec: ExecId,
    pub(crate) project: ProjectId,
    pub(crate) account: Account,
    canceler: Canceler,
    stop: OnceLock<Stop>,
    /// It has a sandbox, or is about to.
    has_begun: AtomicBool,
    progress: watch::Sender<Progress>,
    /// Its final record, once that is durable.
    closed: OnceLock<Exec>,
}

/// An exec that this server has taken on, for whoever waits for its end.
#[derive(Debug)]
pub struct Attended {
    live: Arc<Live>,
    progress: watch::Receiver<Progress>,
}

impl Attended {
    pub(super) fn new(live: Arc<Live>) -> Self {
        let progress = live.watch();
        Self { live, progress }
    }

    pub fn has_ended(&self) -> bool {
        self.progress.borrow().ended
    }

    /// Returns when it has ended.
    pub async fn end(&mut self) {
        // An error means that nobody is left to tell of it, which is an end, too.
        let _ = self.progress.wait_for(|progress| progress.ended).await;
    }

    /// The final record as it was written down. None: it has not ended, or its end was not written
    /// here; the store knows more.
    pub fn record(&self) -> Option<Seen<Exec>> {
        self.live.closed.get().cloned().map(Seen::own)
    }
}

impl Live {
    pub(crate) fn new(
        (space, exec): (SpaceId, ExecId),
        project: ProjectId,
        account: Account,
    ) -> Result<(Self, Cancel)> {
        let (cancel, canceler) = Cancel::new().map_err(|errno| {
            Error::new(Code::Busy, Stage::Admit, "no descriptors are left").caused_by(errno)
        })?;
        let live = Self {
            space,
            exec,
            project,
            account,
            canceler,
            stop: OnceLock::new(),
            has_begun: AtomicBool::new(false),
            progress: watch::Sender::new(Progress::default()),
            closed: OnceLock::new(),
        };
        Ok((live, cancel))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Once asks politely; a second time ends at once.
    pub(crate) fn cancel(&self) {
        self.canceler.cancel();
    }

    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self, why: Stop) {
        // The first reason is the one.
        let _ = self.stop.set(why);
        self.cancel();
    }

    /// Why it was stopped, as its record tells it.
    pub(crate) fn stopped(&self) -> Option<Error> {
        let (code, message) = match self.stop.get()? {
            Stop::Shutdown => (
                Code::ShuttingDown,
                "the server was shut down before it ended",
            ),
            Stop::LeaseLost => (Code::Lost, "the server lost its lease on the database"),
        };
        let error = Error::new(code, Stage::Run, message);
        Some(error.hint("look at the workspace before running it again"))
    }

    pub(crate) fn tell(&self, events: u64) {
        self.progress
            .send_modify(|progress| progress.events = events);
    }

    /// Before its end is told: what whoever waits is given.
    pub(crate) fn close(&self, record: Exec) {
        let _ = self.closed.set(record);
    }

    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// The journal of a live exec: every event is on file before anybody hears of it.
#[derive(Debug)]
pub(crate) struct Reporter<'live> {
    live: &'live Arc<Live>,
    journal: Arc<Mutex<Journal>>,
    stdout: Told,
    stderr: Told,
}

/// How much of a stream was told, and how much of it is kept at all.
#[derive(Debug)]
struct Told {
    stream: Stream,
    cap: u64,
    seen: u64,
    told: u64,
    over: bool,
}

/// From so many events on, small pieces of output wait for more: a program that writes single
/// bytes would otherwise cost more to account for than to run.
const PLENTY: u64 = 4096;
const PIECE: u64 = 64 << 10;

impl<'live> Reporter<'live> {
    pub(crate) fn new(live: &'live Arc<Live>, journal: Journal, limits: &Limits) -> Self {
        let told = |stream, cap| Told {
            stream,
            cap,
            seen: 0,
            told: 0,
            over: false,
        };
        Self {
            live,
            journal: Arc::new(Mutex::new(journal)),
            stdout: told(Stream::Stdout, limits.stdout_bytes.get()),
            stderr: told(Stream::Stderr, limits.stderr_bytes.get()),
        }
    }

    pub(crate) fn state(&mut self, status: Status) {
        let happened = Happened::State {
            status,
            queue_position: None,
        };
        self.add(happened);
    }

    fn told(&mut self, stream: Stream) -> &mut Told {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn tell_rest(&mut self, stream: Stream) {
        let told = self.told(stream);
        let (stream, offset) = (told.stream, told.told);
        let end = told.seen.min(told.cap);
        let over = told.seen > told.cap && !told.over;
        told.told = end;
        told.over |= over;
        if let Ok(length @ 1..) = u32::try_from(end - offset) {
            self.add(Happened::Output {
                stream,
                offset,
                length,
            });
        }
        if over {
            self.add(Happened::Truncated { stream });
        }
    }

    fn add(&mut self, happened: Happened) {
        note(self.live, &self.journal, happened);
    }

    /// For effects, which are seen on other threads too.
    pub(crate) fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(EffectReporter {
            live: Arc::clone(self.live),
            journal: Arc::clone(&self.journal),
        })
    }
}

struct EffectReporter {
    live: Arc<Live>,
    journal: Arc<Mutex<Journal>>,
}

impl Listener for EffectReporter {
    fn effect(&self, _: &Effect, (offset, length): (u64, u32)) {
        let happened = Happened::Effect { offset, length };
        note(&self.live, &self.journal, happened);
    }
}

fn note(live: &Live, journal: &Mutex<Journal>, happened: Happened) {
    let mut journal = locked(journal);
    journal.add(Timestamp::now(), happened);
    live.tell(journal.written());
}

impl Sink for Reporter<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let plenty = locked(&self.journal).written() >= PLENTY;
        let told = self.told(stream);
        told.seen = told.seen.saturating_add(bytes.len() as u64);
        if !plenty || told.seen - told.told >= PIECE || told.seen > told.cap {
            self.tell_rest(stream);
        }
    }

    /// What was held back is told before the end is.
    fn ended(&mut self) {
        self.tell_rest(Stream::Stdout);
        self.tell_rest(Stream::Stderr);
    }
}
