//! One exec on its own thread, from its place to its end.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use glovebox_backend::Cancel;
use glovebox_model::{Code, Error, Exec, Result, Stage, Status};
use glovebox_store::Opened;
use glovebox_workspace::{Journal, Project};
use jiff::Timestamp;
use rustix::fs::{MemfdFlags, SeekFrom};

use super::answered::{Outdated, is_outdated};
use super::live::{Live, Reporter};
use super::pooled_source::PooledSource;
use super::{Dispatcher, locked};
use crate::engine::{Io, KeeperSlot};
use crate::path::{self, Plan, Runner, SandboxSource, Walked};
use crate::sessions::SessionIo;

/// An exec that has its place, or waits for one.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) plan: Plan,
    pub(super) project: Project,
    pub(super) live: Arc<Live>,
    pub(super) cancel: Cancel,
    pub(super) journal: Journal,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) start: Start,
    pub(super) since: Instant,
    /// Of the request that brought it.
    pub(super) span: tracing::Span,
}

/// What it may not start without.
#[derive(Debug)]
pub(super) enum Start {
    /// Its row is being written; nothing comes when it is not to be.
    Told(Receiver<Opened>),
    /// Its row is there, as queued.
    Queued(Opened),
}

/// How long an outcome that cannot be written waits for its next try.
const AGAIN: Duration = Duration::from_millis(500);

impl Dispatcher {
    /// Lets everybody in whose turn it is.
    pub(super) fn call_next(self: &Arc<Self>) {
        loop {
            // Not in the condition, which would hold the lock over the body.
            let next = match self.is_closed() || self.is_cut_off() {
                true => None,
                false => locked(&self.admission).next(),
            };
            let Some((_, waiting)) = next else { return };
            // What cannot be started is closed with its reason; the next may fare better.
            let _ = self.hand_over(waiting);
        }
    }

    /// Gives an exec that has its place a thread of its own.
    pub(super) fn hand_over(self: &Arc<Self>, waiting: Waiting) -> Result<()> {
        let slot = Arc::new(Mutex::new(Some(waiting)));
        let (taken, dispatcher) = (Arc::clone(&slot), Arc::clone(self));
        let given = self.threads.give(Box::new(move || {
            let waiting = locked(&taken).take();
            if let Some(outdated) = waiting.and_then(|it| dispatcher.perform(it)) {
                dispatcher.ask_instead(outdated);
            }
        }));
        let Err(error) = given else { return Ok(()) };
        let error =
            Error::new(Code::Busy, Stage::Admit, "no thread is left for it").caused_by(error);
        if let Some(waiting) = locked(&slot).take() {
            let live = Arc::clone(&waiting.live);
            if let Start::Queued(entry) = waiting.start {
                let failed = path::failed(waiting.plan.record().clone(), error.clone());
                self.write_end(entry, failed, waiting.since);
            } else {
                self.forget(&live);
            }
            self.left(&live);
        }
        Err(error)
    }

    /// `Some`: what it may run changed while it waited for its turn, and it has not begun.
    fn perform(self: &Arc<Self>, waiting: Waiting) -> Option<Outdated> {
        let Waiting {
            plan,
            project,
            live,
            cancel,
            journal,
            stdin,
            start,
            since,
            span,
        } = waiting;
        let _request = span.entered();
        let _exec =
            tracing::info_span!("exec", exec_id = %live.exec, space = %live.space).entered();
        // Given back however this ends, a panic included.
        let _place = Place(self, &live);
        live.begin();
        let toolchains = self.toolchains(&live.project);
        let is_session = plan.assessed().call().session.is_some();
        let session = self.kept.get().filter(|_| is_session).cloned();
        let mut performed = ServerRun {
            dispatcher: self,
            live: &live,
            cancel: &cancel,
            source: PooledSource {
                dispatcher: self,
                cancel: Some(&cancel),
            },
            reporter: Reporter::new(&live, journal, &plan.assessed().profile().limits)
                .beside(session.clone()),
            is_session,
            session,
            input: None,
            stdin,
            start: Some(start),
            outdated: None,
            since,
            waited: Duration::ZERO,
            stopped: &|| live.stopped(),
            seats: &|| self.seat(),
            again: &|error| self.tries_again(error),
        };
        match self.engine.walk(plan, project, toolchains, &mut performed) {
            Ok(Walked::Ended(record, remains)) => {
                self.ended(&live, &record, performed.waited);
                live.close(*record);
                // Whoever reads the final record finds the workspace free; the place is given back
                // only when the sandbox is gone too.
                self.drop_live(&live);
                live.end();
                drop(remains);
                None
            }
            Ok(Walked::NotOpened(plan, _)) => {
                let entry = performed.outdated?;
                let stdin = performed.stdin;
                Some(Outdated {
                    plan: *plan,
                    entry,
                    stdin,
                })
            }
            Err(error) => {
                tracing::error!(exec_id = %live.exec, %error, "the outcome could not be written");
                None
            }
        }
    }

    /// Writes the end of an exec that never started.
    pub(super) fn write_end(&self, entry: Opened, record: Exec, since: Instant) {
        let again = |error: &Error| self.tries_again(error);
        let id = record.exec_id.clone();
        let ended = self
            .store()
            .and_then(|store| path::end(store, entry, record, Some(&again)));
        match ended {
            Ok(record) => self.tell_end(&record, since.elapsed()),
            Err(error) => {
                tracing::error!(exec_id = %id, %error, "the outcome could not be written");
            }
        }
    }

    /// An end that cannot be written now leaves it where it was: it waits on, and may be canceled
    /// again.
    pub(super) fn cancel_waiting(&self, waiting: Waiting) -> Result<Exec> {
        let live = Arc::clone(&waiting.live);
        let Start::Queued(entry) = waiting.start else {
            return self.record(&live.space, &live.exec);
        };
        let mut record = waiting.plan.record().clone();
        record.status = Status::Canceled;
        record.ended_at = Some(Timestamp::now());
        record.sandbox_id = None;
        let closed = match self.store()?.close(entry, record) {
            // Somebody else has settled it.
            Err(unclosed) if unclosed.error.code == Code::Conflict => None,
            Err(unclosed) => {
                let (account, exec) = (live.account.clone(), live.exec.clone());
                let again = Waiting {
                    start: Start::Queued(unclosed.opened),
                    ..waiting
                };
                locked(&self.admission).line_up(account, exec, again);
                return Err(unclosed.error);
            }
            Ok(record) => Some(record),
        };
        self.drop_live(&live);
        live.end();
        match closed {
            Some(record) => {
                self.tell_end(&record, waiting.since.elapsed());
                Ok(record)
            }
            None => self.record(&live.space, &live.exec),
        }
    }

    /// Whether to try once more what could not be written, after a while: the store may come back; a
    /// row that somebody else has settled will not.
    pub(super) fn tries_again(&self, error: &Error) -> bool {
        let passing = matches!(
            error.code,
            Code::StoreUnavailable | Code::DiskFull | Code::Busy
        );
        let again = passing && !self.is_fenced() && !self.maintenance.is_gone();
        if again {
            thread::sleep(AGAIN);
        }
        again
    }

    fn ended(&self, live: &Live, record: &Exec, waited: Duration) {
        debug_assert_eq!(live.exec, record.exec_id);
        // What never ran says nothing of how long an exec takes.
        if let Some(took) = record.duration_ms {
            let before = self.pace.load(Ordering::Relaxed);
            self.pace.store((before * 7 + took) / 8, Ordering::Relaxed);
        }
        self.tell_end(record, waited);
    }

    pub(super) fn tell_end(&self, record: &Exec, waited: Duration) {
        if let Some(hook) = locked(&self.on_end).as_ref() {
            hook(record, waited);
        }
    }

    /// Of something that was never taken on: nothing of it stays.
    pub(super) fn forget(&self, live: &Live) {
        live.end();
        if let Ok(layout) = self.layout(&live.space) {
            let _ = layout.forget_journal(&live.project, &live.exec);
        }
    }

    fn left(self: &Arc<Self>, live: &Live) {
        live.end();
        self.drop_live(live);
        locked(&self.admission).leave(&live.account);
        self.gone.notify_all();
        self.call_next();
    }

    pub(super) fn drop_live(&self, live: &Live) {
        locked(&self.live).remove(&live.exec);
        self.gone.notify_all();
    }
}

/// One exec of a server, on the way.
struct ServerRun<'d> {
    dispatcher: &'d Dispatcher,
    live: &'d Live,
    cancel: &'d Cancel,
    source: PooledSource<'d>,
    reporter: Reporter<'d>,
    is_session: bool,
    session: Option<Arc<SessionIo>>,
    stdin: Option<Vec<u8>>,
    /// The same, for the program.
    input: Option<OwnedFd>,
    start: Option<Start>,
    /// As queued, with an approval that does not hold any more.
    outdated: Option<Opened>,
    since: Instant,
    waited: Duration,
    stopped: &'d dyn Fn() -> Option<Error>,
    seats: &'d dyn Fn() -> Result<KeeperSlot>,
    again: &'d dyn Fn(&Error) -> bool,
}

impl ServerRun<'_> {
    /// The permission to start, once it is durable. None: it is not to be started here.
    fn begun(&mut self, plan: &mut Plan, refused: Option<&Error>) -> Option<Opened> {
        let entry = match self.start.take()? {
            Start::Told(told) => {
                let entry = told.recv().ok();
                if entry.is_none() {
                    self.dispatcher.forget(self.live);
                }
                return entry;
            }
            Start::Queued(entry) if refused.is_some_and(is_outdated) => {
                self.outdated = Some(entry);
                return None;
            }
            Start::Queued(entry) => entry,
        };
        plan.begin();
        let store = self.dispatcher.store().ok()?;
        loop {
            match store.start(self.dispatcher.owner(), &entry, plan.record()) {
                Ok(()) => return Some(entry),
                Err(error) if (self.again)(&error) => {}
                // Another server has it, and with it the files; or it was canceled.
                Err(_) => return None,
            }
        }
    }
}

impl Runner for ServerRun<'_> {
    fn supply(&mut self) -> Result<&mut dyn SandboxSource> {
        if self.is_session && self.session.is_none() {
            // It waited, and its keeper died meanwhile: without one its program could not be talked to.
            let message = "the process that would have kept this session is gone";
            return Err(Error::new(Code::BackendUnavailable, Stage::Admit, message)
                .hint("start the session again"));
        }
        let input = self.stdin.as_deref().map(as_file).transpose();
        self.input = input.map_err(|error| {
            let message = "the standard input cannot be kept";
            Error::new(Code::Busy, Stage::Admit, message).caused_by(error)
        })?;
        Ok(&mut self.source)
    }

    fn open(&mut self, plan: &mut Plan, refused: Option<&Error>) -> Result<Option<Opened>> {
        let entry = self.begun(plan, refused);
        if entry.is_some() && refused.is_none() {
            self.reporter.state(Status::Running);
        }
        self.waited = self.since.elapsed();
        Ok(entry)
    }

    fn io(&mut self) -> Io<'_> {
        let session = self.session.as_deref();
        Io {
            control: session.map(|it| &it.control),
            effects: Some(self.reporter.listener()),
            replayable: self.stdin.as_deref(),
            seats: Some(self.seats),
            stdin: session.and_then(SessionIo::source).or(self.input.take()),
            live: &mut self.reporter,
            cancel: self.cancel,
            stopped: Some(self.stopped),
            approver: None,
            again: Some(self.again),
        }
    }
}

/// A place among those that run, given back when dropped.
struct Place<'d>(&'d Arc<Dispatcher>, &'d Arc<Live>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.left(self.1);
    }
}

/// Standard input as a descriptor: in memory, so that nothing of it touches the disk.
fn as_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(c"stdin", MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}
