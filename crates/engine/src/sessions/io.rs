//! Both sides of a session's program: what it puts out, and what is typed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use glovebox_api::{SessionInput, SessionScreen};
use glovebox_backend::{Control, Controller};
use glovebox_model::{Code, Error, Result, SessionTerms, Stage, Stream, TerminalSize};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};

use super::keys::{self, KeyModes};
use super::protocol::{Extract, Now};
use super::ring::Ring;
use super::screen::Screen;

/// What is kept of each stream in memory.
const STDOUT_KEPT: usize = 1 << 20;
const STDERR_KEPT: usize = 256 << 10;
/// How far the screen may be behind before the program has to wait.
const BEHIND_MOST: u64 = 256 << 10;
/// Taken from the output to be drawn.
const DRAWN_AT_ONCE: usize = 16 << 10;
/// Drawn between two looks at the clock: two bytes may clear the whole of a screen.
const DRAWN_UNTIMED: usize = 64;
/// How long is drawn until others can have the screen.
const DRAWN_FOR: Duration = Duration::from_millis(10);
/// How long the drawing thread steps back for them. A mutex does not let those go first who wait longest.
const STEP_BACK: Duration = Duration::from_millis(1);
/// When the terminal's answers are sent again that the program had no room for, or that somebody who was
/// typing held up.
const ANSWER_AGAIN: Duration = Duration::from_millis(50);
/// How long typed text waits for a program that does not read.
pub(super) const TYPE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a turn to type is asked for.
const TURN: Duration = Duration::from_millis(5);
/// How long somebody who wants to see the screen waits for it to be drawn.
const DRAW_PATIENCE: Duration = Duration::from_secs(2);
/// How long a wait lasts at a time: as soon is it seen that its answer is wanted no more.
const LOOK: Duration = Duration::from_secs(1);
/// A program that has put out nothing for so long may wait for input.
const QUIET: Duration = Duration::from_millis(150);
/// What types the end of the input on a terminal.
const END_OF_FILE: &[u8] = &[4];

/// How long to wait, as long as the answer is wanted at all.
pub(super) type Patience<'a> = (Duration, &'a dyn Fn() -> bool);

#[derive(Debug)]
pub(crate) struct SessionIo {
    terms: SessionTerms,
    output: Mutex<Output>,
    changed: Condvar,
    screen: Option<Mutex<Screen>>,
    /// How far the screen was drawn.
    drawn: AtomicU64,
    /// How many wait for the screen.
    waiting: AtomicUsize,
    /// Our end of the program's input; none once it was closed. Held while something is typed, which may
    /// take long: never waited for by what holds the output.
    input: Mutex<Option<OwnedFd>>,
    /// The other one, for the run.
    source: Mutex<Option<OwnedFd>>,
    pub(crate) control: Control,
    controller: Controller,
}

#[derive(Debug)]
struct Output {
    stdout: Ring,
    stderr: Ring,
    /// When something was last put out.
    put_out: Instant,
    /// Or typed.
    active: Instant,
    /// As the program left its terminal where it was last drawn.
    size: Option<TerminalSize>,
    modes: KeyModes,
    alternate: bool,
    /// The cursor stands behind something.
    within_line: bool,
    input_closed: bool,
    running: bool,
    finished: bool,
}

/// What is kept of a session after its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tail {
    pub(super) stdout: Ring,
    pub(super) stderr: Ring,
    pub(super) screen: Option<SessionScreen>,
}

impl SessionIo {
    pub(super) fn new(terms: SessionTerms) -> Result<Arc<Self>> {
        let no_pipe = |errno: Errno| {
            Error::new(Code::Busy, Stage::Admit, "no descriptors are left").caused_by(errno)
        };
        let (source, input) = pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        rustix::io::ioctl_fionbio(&input, true).map_err(no_pipe)?;
        let (control, controller) = Control::new().map_err(no_pipe)?;
        let io = Arc::new(Self {
            terms,
            output: Mutex::new(Output {
                stdout: Ring::new(STDOUT_KEPT),
                stderr: Ring::new(STDERR_KEPT),
                put_out: Instant::now(),
                active: Instant::now(),
                size: terms.terminal,
                modes: KeyModes::default(),
                alternate: false,
                within_line: false,
                input_closed: false,
                running: false,
                finished: false,
            }),
            changed: Condvar::new(),
            screen: terms.terminal.map(|size| Mutex::new(Screen::new(size))),
            drawn: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            input: Mutex::new(Some(input)),
            source: Mutex::new(Some(source)),
            control,
            controller,
        });
        if io.screen.is_some() {
            let drawing = Arc::clone(&io);
            std::thread::Builder::new()
                .name("screen".to_owned())
                .spawn(move || drawing.draw())
                .map_err(|error| {
                    Error::new(Code::Busy, Stage::Admit, "no thread is left").caused_by(error)
                })?;
        }
        Ok(io)
    }

    /// What the program reads, once.
    pub(crate) fn source(&self) -> Option<OwnedFd> {
        locked(&self.source).take()
    }

    pub(crate) fn begin(&self) {
        let mut output = locked(&self.output);
        output.running = true;
        output.put_out = Instant::now();
        output.active = output.put_out;
        self.changed.notify_all();
    }

    pub(crate) fn put_out(&self, stream: Stream, bytes: &[u8]) {
        let mut output = locked(&self.output);
        match stream {
            Stream::Stdout => output.stdout.push(bytes),
            Stream::Stderr => output.stderr.push(bytes),
        }
        output.put_out = Instant::now();
        output.active = output.put_out;
        self.changed.notify_all();
    }

    /// A screen that cannot follow makes the program wait.
    pub(crate) fn has_room(&self) -> bool {
        let behind = || {
            let end = locked(&self.output).stdout.end();
            end.saturating_sub(self.drawn.load(Ordering::Relaxed))
        };
        self.screen.is_none() || behind() < BEHIND_MOST
    }

    /// Its record is final.
    pub(super) fn finish(&self) {
        let mut output = locked(&self.output);
        output.running = false;
        output.finished = true;
        self.changed.notify_all();
    }

    /// On a thread of its own, until the end: however long drawing takes, clock and limits go on.
    fn draw(&self) {
        let Some(screen) = &self.screen else { return };
        let mut answers = Vec::new();
        loop {
            let drawn = self.drawn.load(Ordering::Relaxed);
            let patience = match answers.is_empty() {
                true => Duration::MAX,
                false => ANSWER_AGAIN,
            };
            let (offset, bytes) = {
                let output = locked(&self.output);
                let is_drawn = |it: &mut Output| it.stdout.end() == drawn && !it.finished;
                let waited = self.changed.wait_timeout_while(output, patience, is_drawn);
                let (output, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if output.finished && output.stdout.end() == drawn {
                    return;
                }
                output.stdout.read(drawn, DRAWN_AT_ONCE)
            };
            if !bytes.is_empty() {
                self.draw_from(screen, offset, &bytes, &mut answers);
            }
            self.answer(&mut answers);
        }
    }

    /// Draws as much of it as others can wait for.
    fn draw_from(
        &self,
        screen: &Mutex<Screen>,
        mut offset: u64,
        bytes: &[u8],
        answers: &mut Vec<u8>,
    ) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(STEP_BACK);
        }
        let (modes, alternate, within_line) = {
            let mut screen = locked(screen);
            let begun = Instant::now();
            for piece in bytes.chunks(DRAWN_UNTIMED) {
                screen.draw(piece, answers);
                offset += piece.len() as u64;
                if begun.elapsed() >= DRAWN_FOR {
                    break;
                }
            }
            (
                screen.modes(),
                screen.is_alternate(),
                screen.is_within_line(),
            )
        };
        let mut output = locked(&self.output);
        (output.modes, output.alternate) = (modes, alternate);
        output.within_line = within_line;
        self.drawn.store(offset, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Sends all answers or none: they are no more than a pipe takes at once. Neither a program that does
    /// not read nor somebody who is typing to it is waited for, since the screen would stand still.
    fn answer(&self, answers: &mut Vec<u8>) {
        if answers.is_empty() {
            return;
        }
        let input = match self.input.try_lock() {
            Ok(input) => input,
            Err(TryLockError::Poisoned(input)) => input.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        match input.as_ref().map(|it| rustix::io::write(it, answers)) {
            Some(Err(Errno::AGAIN | Errno::INTR)) => {}
            // They were taken, or nobody reads any more.
            Some(_) | None => answers.clear(),
        }
    }

    pub(super) fn now(&self) -> Now {
        self.now_of(&locked(&self.output))
    }

    fn now_of(&self, output: &Output) -> Now {
        Now {
            stdout: output.stdout.extent(),
            stderr: output.stderr.extent(),
            size: output.size,
            idle_ms: millis(output.active.elapsed()),
            waiting_for_input: self.seems_to_wait(output),
            input_closed: output.input_closed,
            finished: output.finished,
        }
    }

    /// A prompt is a line that has not ended; a program that edits lines asks for marks around what is
    /// pasted while it reads; an editor has the whole screen. Until it had time to answer what was typed
    /// nothing is known.
    fn seems_to_wait(&self, output: &Output) -> bool {
        if !output.running || output.active.elapsed() < QUIET {
            return false;
        }
        let prompts = match self.screen {
            // What is put out before a command runs may be more than the end of the line.
            Some(_) => output.within_line,
            None => output.stdout.last().is_some_and(|last| last != b'\n'),
        };
        prompts || output.modes.bracketed_paste || output.alternate
    }

    /// Waits until the program has ended or waits for input.
    pub(super) fn settle(&self, (patience, is_wanted): Patience<'_>) -> Now {
        let deadline = Instant::now() + patience;
        let mut output = locked(&self.output);
        loop {
            let now = Instant::now();
            let waits = output.stdout.end() > 0 && self.seems_to_wait(&output);
            if output.finished || waits || now >= deadline || !is_wanted() {
                return self.now_of(&output);
            }
            output = self.wait(output, QUIET.min(deadline - now));
        }
    }

    /// Bytes from these offsets on, as soon as there are some; none when the time is over, or nothing
    /// comes any more.
    pub(super) fn read(
        &self,
        (stdout, stderr): (u64, u64),
        most: usize,
        (patience, is_wanted): Patience<'_>,
    ) -> (Now, [(Extract, Vec<u8>); 2]) {
        let deadline = Instant::now() + patience;
        let mut output = locked(&self.output);
        loop {
            let now = Instant::now();
            let is_news = output.stdout.end() > stdout || output.stderr.end() > stderr;
            if is_news || output.finished || now >= deadline || !is_wanted() {
                let pieces = [(&output.stdout, stdout), (&output.stderr, stderr)];
                let pieces = pieces.map(|(ring, offset)| {
                    let (offset, bytes) = ring.read(offset, most);
                    let length = bytes.len();
                    (Extract { offset, length }, bytes)
                });
                return (self.now_of(&output), pieces);
            }
            output = self.wait(output, (deadline - now).min(LOOK));
        }
    }

    fn wait<'o>(&self, output: MutexGuard<'o, Output>, long: Duration) -> MutexGuard<'o, Output> {
        let waited = self.changed.wait_timeout(output, long);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until the session changes, at most so long.
    pub(super) fn rest(&self, long: Duration) {
        drop(self.wait(locked(&self.output), long));
    }

    pub(super) fn idle(&self) -> Option<Duration> {
        let output = locked(&self.output);
        output.running.then(|| output.active.elapsed())
    }

    fn locked_screen(&self) -> Result<MutexGuard<'_, Screen>> {
        let screen = self.screen.as_ref().ok_or_else(no_terminal)?;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let screen = locked(screen);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(screen)
    }

    pub(super) fn screen(&self) -> Result<SessionScreen> {
        if self.screen.is_none() {
            return Err(no_terminal());
        }
        // What was put out before the question is on it.
        let output = locked(&self.output);
        let end = output.stdout.end();
        let drawn = self.changed.wait_timeout_while(output, DRAW_PATIENCE, |_| {
            self.drawn.load(Ordering::Relaxed) < end
        });
        drop(drawn);
        Ok(self.locked_screen()?.show())
    }

    pub(super) fn type_in(&self, input: &SessionInput) -> Result<()> {
        let bytes = self.typed(input)?;
        self.write(&bytes)
    }

    fn typed(&self, input: &SessionInput) -> Result<Vec<u8>> {
        let modes = self.screen.as_ref().map(|_| locked(&self.output).modes);
        let SessionInput {
            text,
            base64,
            keys,
            paste,
            submit,
        } = input;
        let enter = if modes.is_some() { "\r" } else { "\n" };
        match (text, base64, keys, paste, submit) {
            (Some(text), None, None, None, None) => Ok(text.clone().into_bytes()),
            (None, Some(text), None, None, None) => decoded(text),
            (None, None, Some(keys), None, None) => {
                keys::bytes(keys, modes.ok_or_else(no_terminal)?)
            }
            (None, None, None, Some(text), None) => {
                Ok(keys::paste(text, modes.ok_or_else(no_terminal)?))
            }
            (None, None, None, None, Some(line)) => Ok(format!("{line}{enter}").into_bytes()),
            _ => Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "exactly one of `text`, `base64`, `keys`, `paste` and `submit` says what is typed",
            )
            .hint("send them one after the other")),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        let input = locked_within(&self.input, TYPE_PATIENCE).ok_or_else(occupied)?;
        write_all(&input, bytes, TYPE_PATIENCE)?;
        drop(input);
        locked(&self.output).active = Instant::now();
        Ok(())
    }

    pub(super) fn resize(&self, size: TerminalSize) -> Result<()> {
        if self.screen.is_none() {
            return Err(no_terminal());
        }
        if !size.is_possible() {
            let most = TerminalSize::MOST;
            let message = format!("a terminal has from 1 to {most} columns and rows");
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message));
        }
        // Held over all of it: of two who resize at once, the same one comes last everywhere.
        let mut screen = self.locked_screen()?;
        // The program's terminal comes first, since only that can be refused.
        self.controller
            .resize(size)
            .map_err(|errno| busy().caused_by(errno))?;
        screen.resize(size);
        locked(&self.output).size = Some(size);
        Ok(())
    }

    pub(super) fn close_input(&self) -> Result<()> {
        match self.screen {
            Some(_) => self.write(END_OF_FILE),
            None => {
                locked(&self.input).take();
                locked(&self.output).input_closed = true;
                Ok(())
            }
        }
    }

    pub(super) fn signal(&self, signal: i32) -> Result<()> {
        self.controller
            .signal(signal)
            .map_err(|errno| busy().caused_by(errno))
    }

    /// Its time without a word is over. Whether the program's side was told.
    pub(super) fn expire(&self) -> bool {
        self.controller.expire().is_ok()
    }

    /// Whether it came in time.
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        let output = locked(&self.output);
        let waited = self
            .changed
            .wait_timeout_while(output, patience, |it| !it.finished);
        waited.unwrap_or_else(PoisonError::into_inner).0.finished
    }

    pub(super) fn terms(&self) -> SessionTerms {
        self.terms
    }

    pub(super) fn tail(&self) -> Tail {
        let screen = self.screen().ok();
        let output = locked(&self.output);
        Tail {
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            screen,
        }
    }
}

fn write_all(input: &Option<OwnedFd>, bytes: &[u8], patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    let input = input.as_ref().ok_or_else(closed)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(input, rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let timeout = Timespec::try_from(left).ok();
                let mut watched = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::OUT)];
                let ready = poll(&mut watched, timeout.as_ref());
                if left.is_zero() || matches!(ready, Ok(0)) {
                    return Err(unread(bytes.len() - rest.len(), bytes.len()));
                }
            }
            Err(_) => return Err(closed()),
        }
    }
    Ok(())
}

fn decoded(text: &str) -> Result<Vec<u8>> {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded.map_err(|error| {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "`base64` is not base64",
        )
        .caused_by(error)
    })
}

fn millis(long: Duration) -> u64 {
    u64::try_from(long.as_millis()).unwrap_or(u64::MAX)
}

fn no_terminal() -> Error {
    let message = "this session has no terminal: its program reads and writes pipes";
    Error::new(Code::Conflict, Stage::Run, message)
        .hint("send `text`; or start it with a terminal: `\"session\": {\"terminal\": true}`")
}

fn closed() -> Error {
    Error::new(
        Code::Conflict,
        Stage::Run,
        "the session takes no more input",
    )
    .hint("its input was closed, or its program has ended: look at its state")
}

fn unread(taken: usize, of: usize) -> Error {
    let message = format!("the program does not read: {taken} of {of} bytes were taken");
    let mut error = Error::new(Code::Busy, Stage::Run, message);
    error.retry.allowed = taken == 0;
    error.hint("wait until it does; a signal (`INT`) interrupts it")
}

fn busy() -> Error {
    let mut error = Error::new(Code::Busy, Stage::Run, "the session is busy");
    error.retry.allowed = true;
    error
}

/// Somebody else types, and what they type is not read.
pub(super) fn occupied() -> Error {
    let mut error = busy();
    "somebody else is typing into the session, and its program does not read"
        .clone_into(&mut error.message);
    error
}

/// None: it was held all the time.
pub(super) fn locked_within<T>(mutex: &Mutex<T>, most: Duration) -> Option<MutexGuard<'_, T>> {
    let deadline = Instant::now() + most;
    loop {
        match mutex.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(TURN),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Arc<SessionIo> {
        let terms = SessionTerms {
            terminal: Some(TerminalSize::USUAL),
            idle_timeout_ms: None,
        };
        SessionIo::new(terms).unwrap()
    }

    /// Puts out and waits until it is drawn.
    fn put_out(io: &SessionIo, text: &[u8]) {
        io.put_out(Stream::Stdout, text);
        io.screen().unwrap();
    }

    /// What the program reads, until it has read something that ends so.
    fn read_until(source: &OwnedFd, end: &[u8]) -> Vec<u8> {
        let mut taken = Vec::new();
        while !taken.ends_with(end) {
            let patience = Timespec {
                tv_sec: 20,
                tv_nsec: 0,
            };
            let mut watched = [PollFd::new(source, PollFlags::IN)];
            assert_eq!(poll(&mut watched, Some(&patience)), Ok(1), "{taken:?}");
            let mut bytes = [0; 4096];
            let count = rustix::io::read(source, &mut bytes).unwrap();
            taken.extend_from_slice(&bytes[..count]);
        }
        taken
    }

    #[test]
    fn an_answer_waits_for_who_is_typing() {
        let io = session();
        let source = io.source().unwrap();
        let typing = locked(&io.input);
        put_out(&io, b"ab\x1b[6n");
        put_out(&io, b"c\x1b[5n");
        write_all(&typing, b"typed", TYPE_PATIENCE).unwrap();
        drop(typing);
        let taken = read_until(&source, b"\x1b[0n");
        assert_eq!(taken, b"typed\x1b[1;3R\x1b[0n");
        io.finish();
    }

    #[test]
    fn an_answer_waits_for_a_program_that_does_not_read_and_is_whole() {
        let io = session();
        let source = io.source().unwrap();
        let mut filled = 0;
        {
            // Room for a part of an answer is left.
            let input = locked(&io.input);
            let input = input.as_ref().unwrap();
            for piece in [4096, 64, 1] {
                while let Ok(count) = rustix::io::write(input, &vec![b'x'; piece]) {
                    filled += count;
                }
            }
        }
        let mut first = [0; 4096];
        assert_eq!(rustix::io::read(&source, &mut first), Ok(4096));
        write_all(&locked(&io.input), &[b'x'; 4093], TYPE_PATIENCE).unwrap();
        put_out(&io, b"\x1b[6n");
        put_out(&io, b"ab\x1b[6n");
        let taken = read_until(&source, b"\x1b[1;3R");
        let answers = b"\x1b[1;1R\x1b[1;3R";
        let (typed, answered) = taken.split_at(filled - 3);
        assert!(typed.iter().all(|it| *it == b'x'));
        assert_eq!(answered, answers);
        io.finish();
    }

    #[test]
    fn a_size_that_is_refused_is_not_shown() {
        let io = session();
        let size = |turn: u16| TerminalSize {
            columns: 1 + turn % TerminalSize::MOST,
            rows: 10,
        };
        // Nobody takes what is asked of the program's terminal.
        let refused = (0..u16::MAX).find_map(|it| Some((it, io.resize(size(it)).err()?)));
        let (turn, error) = refused.unwrap();
        assert_eq!(error.code, Code::Busy);
        assert_eq!(io.screen().unwrap().size, size(turn - 1));
        assert_eq!(io.now().size, Some(size(turn - 1)));
        io.finish();
    }

    #[test]
    fn the_screen_can_be_had_while_it_is_drawn() {
        let io = session();
        let size = |columns, rows| TerminalSize { columns, rows };
        io.resize(size(200, 200)).unwrap();
        // Long to draw, as each of them makes everything anew.
        let output = b"\x1bc".repeat(32 << 10);
        io.put_out(Stream::Stdout, &output);
        for _ in 0..3 {
            let shown = io.locked_screen().unwrap().show();
            assert!(shown.offset < output.len() as u64, "{}", shown.offset);
        }
        io.resize(size(1, 1)).unwrap();
        assert_eq!(io.screen().unwrap().offset, output.len() as u64);
        io.finish();
    }
}
