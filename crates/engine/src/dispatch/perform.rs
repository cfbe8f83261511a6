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
use super::stock::Stock;
use super::{Dispatcher, locked};
use crate::engine::Io;
use crate::path::{self, Plan};
use crate::prepare::Standing;
use crate::stage;

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
                false => locked(&self.hall).next(),
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
        let given = self.hands.give(Box::new(move || {
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
            mut plan,
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
        // Leaves the hall however this ends, a panic included.
        let _place = Place(self, &live);
        live.begin();
        let prepared =
            stage::span("admit").in_scope(|| self.build(&plan, project, stdin.as_deref(), &cancel));
        stage::reached("build");
        let start = match (&prepared, start) {
            (Err(error), Start::Queued(entry)) if is_outdated(error) => {
                return Some(Outdated { plan, entry, stdin });
            }
            (_, start) => start,
        };
        if let Start::Queued(_) = start {
            plan.begin();
        }
        let Some(entry) = self.begun(start, &plan, &live) else {
            if let Ok((standing, _)) = prepared {
                standing.discard();
            }
            return None;
        };
        stage::reached("open");
        let waited = since.elapsed();
        match prepared {
            Ok((standing, input)) => {
                let mut reporter = Reporter::new(&live, journal, &plan.assessed().profile().limits);
                reporter.state(Status::Running);
                let opened = path::Opened::new(plan, entry);
                let input = (input, stdin.as_deref());
                self.carry(standing, opened, input, &cancel, &live, reporter, waited);
            }
            Err(error) => {
                let record = path::failed(plan.record().clone(), error);
                self.write_end(entry, record, since);
            }
        }
        None
    }

    fn build(
        &self,
        plan: &Plan,
        project: Project,
        stdin: Option<&[u8]>,
        cancel: &Cancel,
    ) -> Result<(Standing, Option<OwnedFd>)> {
        let stdin = stdin.map(as_file).transpose();
        let stdin = stdin.map_err(|error| {
            let message = "the standard input cannot be kept";
            Error::new(Code::Busy, Stage::Admit, message).caused_by(error)
        })?;
        let mut supply = Stock {
            dispatcher: self,
            cancel: Some(cancel),
        };
        let toolchains = self.toolchains(project.id());
        let standing = self
            .engine
            .prepare(&mut supply, plan, project, toolchains)?;
        Ok((standing, stdin))
    }

    /// The permission to start, once it is durable. None: it is not to be started here.
    fn begun(&self, start: Start, plan: &Plan, live: &Live) -> Option<Opened> {
        let entry = match start {
            Start::Told(told) => {
                let entry = told.recv().ok();
                if entry.is_none() {
                    self.forget(live);
                }
                return entry;
            }
            Start::Queued(entry) => entry,
        };
        let store = self.store().ok()?;
        loop {
            match store.start(self.owner(), &entry, plan.record()) {
                Ok(()) => return Some(entry),
                Err(error) if self.tries_again(&error) => {}
                // Another server has it, and with it the files; or it was canceled.
                Err(_) => return None,
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the things one run is made of, each once"
    )]
    fn carry(
        self: &Arc<Self>,
        standing: Standing,
        opened: path::Opened,
        (stdin, replayable): (Option<OwnedFd>, Option<&[u8]>),
        cancel: &Cancel,
        live: &Arc<Live>,
        mut reporter: Reporter<'_>,
        waited: Duration,
    ) {
        let stopped = || live.stopped();
        let seats = || self.seat();
        let io = Io {
            effects: Some(reporter.listener()),
            replayable,
            seats: Some(&seats),
            stdin,
            live: &mut reporter,
            cancel,
            stopped: Some(&stopped),
            approver: None,
        };
        let mut again = |error: &Error| self.tries_again(error);
        let toolchains = self.toolchains(&live.project);
        let carried = self
            .engine
            .carry_out(standing, opened, toolchains, io, &mut again);
        let remains = match carried {
            Ok((record, remains)) => {
                self.ended(live, &record, waited);
                live.close(record);
                Some(remains)
            }
            Err(error) => {
                tracing::error!(exec_id = %live.exec, %error, "the outcome could not be written");
                None
            }
        };
        // Whoever reads the final record finds the workspace free; the place is given back only when
        // the sandbox is gone too.
        self.drop_live(live);
        live.end();
        drop(remains);
    }

    /// Writes the end of an exec that never started.
    pub(super) fn write_end(&self, entry: Opened, record: Exec, since: Instant) {
        let mut again = |error: &Error| self.tries_again(error);
        let id = record.exec_id.clone();
        let ended = self
            .store()
            .and_then(|store| path::end(store, entry, record, &mut again));
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
                locked(&self.hall).line_up(account, exec, again);
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
        let again = passing && !self.is_fenced() && !self.watchman.is_gone();
        if again {
            thread::sleep(AGAIN);
        }
        again
    }

    fn ended(&self, live: &Live, record: &Exec, waited: Duration) {
        debug_assert_eq!(live.exec, record.exec_id);
        let took = record.duration_ms.unwrap_or(0);
        let before = self.pace.load(Ordering::Relaxed);
        let pace = (before * 7 + took) / 8;
        self.pace.store(pace, Ordering::Relaxed);
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
        locked(&self.hall).leave(&live.account);
        self.gone.notify_all();
        self.call_next();
    }

    pub(super) fn drop_live(&self, live: &Live) {
        locked(&self.live).remove(&live.exec);
        self.gone.notify_all();
    }
}

/// A place in the hall, given back when dropped.
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
