//! The process that keeps one session: it walks the whole path for its exec, holds both sides of the
//! program, answers whoever may connect, and ends when the session has.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_api::SessionInput;
use glovebox_model::{Code, Error, Exec, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;

use super::KeptFor;
use super::directory::Directory;
use super::io::{SessionIo, TYPE_PATIENCE, locked_within, occupied};
use super::protocol::{self, Answer, Ask, Claim, Frame, Start, Started};
use crate::dispatch::Dispatcher;
use crate::visibility::{Seen, Viewer};

/// How often the clock is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long those who ask when the session ends have for their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Each has a thread.
const CONNECTIONS: usize = 256;
/// Of these may wait for output; what else is asked always finds room.
const WAITING: usize = 128;
/// How long to wait for descriptors or threads when there are none left.
const SHORTAGE: Duration = Duration::from_millis(100);
/// Requests that type, of which it is known what came of them.
const TYPED_KEPT: usize = 256;
/// From killing everything to the final record.
const KILL_PATIENCE: Duration = Duration::from_secs(20);

/// How the keeping of a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Recorded,
    Abandoned,
}

#[derive(Debug)]
struct Keeper {
    dispatcher: Arc<Dispatcher>,
    exec: Exec,
    io: Arc<SessionIo>,
    kept_for: KeptFor,
    of: Viewer,
    /// Processes that it is kept for and that are there.
    attending: AtomicUsize,
    /// Since when there is none.
    alone: Mutex<Instant>,
    /// Connections with a question that is not answered yet.
    answering: AtomicUsize,
    connections: AtomicUsize,
    /// Of these, those that wait for output.
    waiting: AtomicUsize,
    /// What was typed for requests with a name, and what came of it: the newest of them.
    typed: Mutex<VecDeque<(String, Result<()>)>>,
    /// A process of another version has this state directory now, which cannot talk to this session.
    abandoned: AtomicBool,
}

/// Keeps one session, from the request on `channel` to its end. `open` makes this process an owner of
/// its own, with the key of secrets that it was given; when that fails the other side is told.
pub fn keep_session(
    channel: OwnedFd,
    open: impl FnOnce(Option<Vec<u8>>) -> Result<Arc<Dispatcher>>,
) -> Result<()> {
    let mut channel = UnixStream::from(channel);
    let Ok(Frame::Whole(mut start, _)) = protocol::receive::<Start>(&mut channel) else {
        return Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "no session was asked for",
        )
        .hint("this command is for servers: `glovebox session start` starts a session"));
    };
    let refused = |channel: &mut UnixStream, error: Error| {
        // Who asked may be gone.
        let _ = protocol::send(channel, &Started::Refused(Box::new(error)), &[]);
    };
    let dispatcher = match open(start.secrets_key.take()) {
        Ok(dispatcher) => dispatcher,
        Err(error) => {
            refused(&mut channel, error);
            return Ok(());
        }
    };
    let grace = start.orphan_grace;
    match take_on(&dispatcher, start) {
        Err(error) => refused(&mut channel, error),
        Ok((exec, replayed, None)) => tell(&mut channel, exec, replayed),
        Ok((exec, _, Some((keeper, directory, listener)))) => {
            let keeper = Arc::new(keeper);
            if let Err(error) = answer_on(&keeper, listener) {
                // Nobody could talk to it.
                keeper.kill();
                refused(&mut channel, error);
                return dispatcher.drain(Duration::ZERO, &|| true).map(drop);
            }
            tell(&mut channel, exec, false);
            drop(channel);
            if keeper.see_through(grace) == End::Abandoned {
                // Everything ends with this process, and the record says that it was lost.
                return Ok(());
            }
            keeper.finish(&directory);
        }
    }
    dispatcher.drain(Duration::ZERO, &|| true).map(drop)
}

fn tell(channel: &mut UnixStream, exec: Exec, replayed: bool) {
    let exec = Box::new(exec);
    let _ = protocol::send(channel, &Started::TakenOn { exec, replayed }, &[]);
}

type Taken = (Exec, bool, Option<(Keeper, Directory, UnixListener)>);

/// The exec, whether it was there before, and what is to be kept of it.
fn take_on(dispatcher: &Arc<Dispatcher>, start: Start) -> Result<Taken> {
    let (kept_for, of) = (start.kept_for, start.eyes.clone());
    let terms = start
        .call
        .session
        .ok_or_else(|| Error::new(Code::Internal, Stage::Parse, "this call is no session's"))?;
    let io = SessionIo::new(terms)?;
    dispatcher.keep_session_io(Arc::clone(&io))?;
    let submitted = dispatcher.submit(start.submission())?;
    let exec = submitted.exec.into_inner();
    if submitted.replayed || exec.status.is_final() {
        return Ok((exec, submitted.replayed, None));
    }
    let directory = Directory::make(dispatcher.state().path(), &exec.exec_id);
    let listening = directory.and_then(|it| Ok((it.listen()?, it)));
    let (listener, directory) = match listening {
        Ok(listening) => listening,
        Err(error) => {
            // Nobody could talk to it.
            let _ = dispatcher.cancel(Seen::own(exec));
            return Err(error);
        }
    };
    let keeper = Keeper {
        dispatcher: Arc::clone(dispatcher),
        exec: exec.clone(),
        io,
        kept_for,
        of,
        attending: AtomicUsize::new(0),
        alone: Mutex::new(Instant::now()),
        answering: AtomicUsize::new(0),
        connections: AtomicUsize::new(0),
        waiting: AtomicUsize::new(0),
        typed: Mutex::default(),
        abandoned: AtomicBool::new(false),
    };
    Ok((exec, false, Some((keeper, directory, listener))))
}

fn answer_on(keeper: &Arc<Keeper>, listener: UnixListener) -> Result<()> {
    let keeper = Arc::clone(keeper);
    let accept = move || {
        for accepted in listener.incoming() {
            let Ok(mut socket) = accepted else {
                std::thread::sleep(SHORTAGE);
                continue;
            };
            if keeper.connections.load(Ordering::SeqCst) >= CONNECTIONS {
                let _ = protocol::send(&mut socket, &Answer::Failed(Box::new(crowded())), &[]);
                continue;
            }
            let connection = Connection::of(&keeper);
            // Without a thread it closes, and may be tried again.
            let _ = std::thread::Builder::new()
                .name("connection".to_owned())
                .spawn(move || connection.0.answer(socket));
        }
    };
    let started = std::thread::Builder::new()
        .name("accept".to_owned())
        .spawn(accept);
    started
        .map(drop)
        .map_err(|error| Error::new(Code::Busy, Stage::Admit, "no thread is left").caused_by(error))
}

impl Keeper {
    fn record(&self) -> Result<Exec> {
        let (space, id) = (&self.exec.ids.space_id, &self.exec.exec_id);
        self.dispatcher.store()?.get(space, id)
    }

    /// Returns when the record is final, or nothing is to be done for it any more.
    fn see_through(&self, grace: Option<Duration>) -> End {
        let idle_timeout = self.io.terms().idle_timeout_ms;
        let mut expired = false;
        loop {
            let is_live = self.dispatcher.wait_for(&self.exec, LOOK);
            if self.abandoned.load(Ordering::SeqCst) {
                return End::Abandoned;
            }
            if !is_live && self.has_ended() {
                return End::Recorded;
            }
            let is_idle = idle_timeout.zip(self.io.idle());
            if is_idle.is_some_and(|(most, idle)| idle >= most.duration()) && !expired {
                expired = self.io.expire();
            }
            if grace.is_some_and(|grace| self.is_alone_for(grace)) {
                tracing::warn!(exec_id = %self.exec.exec_id, "no server came back; ended");
                self.kill();
            }
        }
    }

    /// Also when this process may write nothing any more: another server settles the record then.
    fn has_ended(&self) -> bool {
        let is_final = |exec: Exec| exec.status.is_final();
        self.record().is_ok_and(is_final) || self.dispatcher.is_fenced()
    }

    fn is_alone_for(&self, grace: Duration) -> bool {
        let since = *self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        self.attending.load(Ordering::SeqCst) == 0 && since.elapsed() >= grace
    }

    fn kill(&self) {
        // Once asks, twice ends at once; one that waits has ended after the first.
        for _ in 0..2 {
            let _ = self
                .record()
                .and_then(|exec| self.dispatcher.cancel(Seen::own(exec)));
        }
    }

    /// What is asked for from here on is in the record and in the directory.
    fn finish(&self, directory: &Directory) {
        let kept = self.dispatcher.seal_tail(&self.exec, &self.io.tail());
        if let Err(error) = kept.and_then(|sealed| directory.write_tail(&sealed)) {
            tracing::warn!(%error, "the end of a session's output could not be kept");
        }
        directory.close_socket();
        self.io.finish();
        if let Err(error) = self.dispatcher.forget_old_sessions() {
            tracing::warn!(%error, "what earlier sessions left could not be removed");
        }
        let deadline = Instant::now() + LAST_ANSWERS;
        while self.answering.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            self.io.rest(Duration::from_millis(5));
        }
    }

    fn answer(&self, mut socket: UnixStream) {
        // The directory lets nobody else in; this does not depend on it.
        let us = rustix::process::geteuid();
        if !socket_peercred(&socket).is_ok_and(|peer| peer.uid == us) {
            return;
        }
        loop {
            let ask = match protocol::receive::<Ask>(&mut socket) {
                Ok(Frame::Whole(ask, _)) => ask,
                Ok(Frame::Foreign(_, Claim::Nothing)) => {
                    // By its version it is known that nothing more can be said.
                    let _ = protocol::send(&mut socket, &Answer::State(self.io.now()), &[]);
                    return;
                }
                Ok(Frame::Foreign(_, Claim::Attends | Claim::Ends)) => {
                    self.abandoned.store(true, Ordering::SeqCst);
                    return;
                }
                Ok(Frame::End) | Err(_) => return,
            };
            if let Ask::Attend(kind) = ask {
                self.attend(kind, &mut socket);
                return;
            }
            let answering = Counted::new(&self.answering);
            let sent = self.reply(ask, &mut socket);
            drop(answering);
            if sent.is_err() {
                return;
            }
        }
    }

    fn attend(&self, kind: KeptFor, socket: &mut UnixStream) {
        let answer = Answer::Attended {
            kept_for: self.kept_for,
            of: self.of.clone(),
        };
        if kind != self.kept_for {
            let _ = protocol::send(socket, &answer, &[]);
            return;
        }
        self.attending.fetch_add(1, Ordering::SeqCst);
        // Nothing is said on it: it ends with the process.
        if protocol::send(socket, &answer, &[]).is_ok() {
            let _ = protocol::receive::<Ask>(socket);
        }
        *self.alone.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.attending.fetch_sub(1, Ordering::SeqCst);
    }

    fn reply(&self, ask: Ask, socket: &mut UnixStream) -> std::io::Result<()> {
        let io = &self.io;
        let done = match ask {
            Ask::Read {
                stdout,
                stderr,
                most,
                wait_ms,
            } => {
                let waits = self.wait_for(Duration::from_millis(wait_ms));
                let is_wanted = || !is_gone(socket);
                let (now, [stdout, stderr]) =
                    io.read((stdout, stderr), most, (waits.long, &is_wanted));
                drop(waits);
                let answer = Answer::Output {
                    now,
                    stdout: stdout.0,
                    stderr: stderr.0,
                };
                return protocol::send(socket, &answer, &[&stdout.1, &stderr.1]);
            }
            Ask::Screen => {
                let answer = match io.screen() {
                    Ok(screen) => Answer::Screen(Box::new(screen)),
                    Err(error) => Answer::Failed(Box::new(error)),
                };
                return protocol::send(socket, &answer, &[]);
            }
            Ask::Settle { patience_ms } => {
                let waits = self.wait_for(Duration::from_millis(patience_ms));
                io.settle((waits.long, &|| !is_gone(socket)));
                Ok(())
            }
            Ask::Attend(_) | Ask::State => Ok(()),
            Ask::Type { input, once } => self.type_once(&input, once),
            Ask::Resize(size) => io.resize(size),
            Ask::CloseInput => io.close_input(),
            Ask::Signal(signal) => io.signal(signal),
            Ask::Kill => {
                self.kill();
                match io.wait_for_end(KILL_PATIENCE) {
                    true => Ok(()),
                    false => Err(ending()),
                }
            }
        };
        let answer = match done {
            Ok(()) => Answer::State(io.now()),
            Err(error) => Answer::Failed(Box::new(error)),
        };
        protocol::send(socket, &answer, &[])
    }
}

/// One more of them, as long as this is there: also when its thread panics.
#[derive(Debug)]
struct Counted<'k>(&'k AtomicUsize);

impl<'k> Counted<'k> {
    fn new(count: &'k AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The same for a connection, which outlives whoever counted it.
#[derive(Debug)]
struct Connection(Arc<Keeper>);

impl Connection {
    fn of(keeper: &Arc<Keeper>) -> Self {
        keeper.connections.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(keeper))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A question that waits, as long as this is there.
#[derive(Debug)]
struct Waits<'k> {
    keeper: &'k Keeper,
    /// Nothing where too many wait already: they are answered at once.
    long: Duration,
}

impl Keeper {
    /// A server that dies before it has answered leaves a client that asks again.
    fn type_once(&self, input: &SessionInput, once: Option<String>) -> Result<()> {
        let Some(once) = once else {
            return self.io.type_in(input);
        };
        // Held while it is typed: who asks for the same meanwhile waits for what comes of it.
        let Some(mut typed) = locked_within(&self.typed, TYPE_PATIENCE) else {
            return Err(occupied());
        };
        if let Some((_, done)) = typed.iter().find(|(known, _)| *known == once) {
            return done.clone();
        }
        let done = self.io.type_in(input);
        let is_undone = |error: &Error| error.code != Code::Busy || error.retry.allowed;
        if !done.as_ref().is_err_and(is_undone) {
            typed.push_back((once, done.clone()));
            let over = typed.len().saturating_sub(TYPED_KEPT);
            typed.drain(..over);
        }
        done
    }

    fn wait_for(&self, long: Duration) -> Waits<'_> {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst);
        let long = if waiting < WAITING {
            long
        } else {
            Duration::ZERO
        };
        Waits { keeper: self, long }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.keeper.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether no answer is waited for any more.
fn is_gone(socket: &UnixStream) -> bool {
    let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
    let ready = poll(&mut watched, Some(&Timespec::default()));
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    ready.is_ok() && watched[0].revents().intersects(ended)
}

fn ending() -> Error {
    let message = "everything in the session was told to end, and has not yet";
    let mut error = Error::new(Code::Busy, Stage::Run, message);
    error.retry.allowed = true;
    error.hint("ask again: it goes on ending meanwhile")
}

fn crowded() -> Error {
    let message = format!("{CONNECTIONS} clients talk to this session already");
    let mut error = Error::new(Code::RateLimited, Stage::Run, message);
    error.retry.allowed = true;
    error.hint("close some of their streams")
}
