//! One loop around a program inside: its streams, its time, its limits, until the engine's command
//! that is attached to it ends. Nothing here waits for the engine without a bound.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use glovebox_cage::Over;
use glovebox_model::{LimitKind, Profile, Result, Stream, TerminalSize};
use glovebox_workspace::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::account::{Account, Parents, Sum};
use super::cli::{Cli, Running};
use super::controls::{Controls, Wish};
use super::guard::{Guarded, LATE};
use super::pipes::{Inlet, Outlet, buffer};
use crate::disk::{Disk, Filled};
use crate::native::lease_over;
use crate::streams::{Cancel, Control, Sink};

/// An engine takes so long to start a program at most, before its clock runs anyway.
const START: Duration = Duration::from_secs(1);
/// How soon a reader that had no room is asked again.
const ROOM: Duration = Duration::from_millis(2);
const LOOK: Duration = Duration::from_millis(25);
/// How soon an account is read again while processes come and go or memory grows: what a program was
/// refused, and what it was ended for, is written there alone and is gone with it.
const GLANCE: Duration = Duration::from_millis(3);
/// The same before the container has an account: a short program is half over at the next look.
const FIND: Duration = Duration::from_millis(10);
/// From TERM to KILL when the time is up: its command takes a moment, and all of it should be over
/// within a second.
const GRACE: Duration = Duration::from_millis(500);
/// How often the keeper hears that the clock has not started yet.
const WORD: Duration = Duration::from_millis(250);
/// From TERM to KILL when somebody canceled: a program may want to tidy up.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// From the end of a container to the end of the command that is attached to it: engines lose the
/// news of an end now and then, above all when somebody else removes the container.
const LAG: Duration = Duration::from_secs(2);
/// From KILL to giving the engine up.
const GIVE_UP: Duration = Duration::from_secs(8);

/// Why a program was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Limit(LimitKind),
    Canceled,
}

#[derive(Debug, Clone, Copy)]
struct Stopping {
    reason: Reason,
    since: Instant,
    /// Of KILL, and after that of giving up.
    next: Instant,
    killed: bool,
}

/// What is asked of the loop.
pub(super) struct Attend<'run> {
    pub(super) cli: &'run Cli,
    /// Attached to the program.
    pub(super) command: Command,
    pub(super) profile: &'run Profile,
    pub(super) watched: &'run [&'run Dir],
    pub(super) stdin: Option<OwnedFd>,
    pub(super) terminal: Option<TerminalSize>,
    pub(super) control: Option<&'run Control>,
    pub(super) sink: &'run mut dyn Sink,
    pub(super) cancel: &'run Cancel,
    pub(super) parents: &'run Parents,
    pub(super) id: &'run str,
    /// Whether the container ran before: its account goes on then, and the clock starts at once.
    pub(super) standing: bool,
    pub(super) guard: Option<&'run Guarded>,
    pub(super) term: Vec<OsString>,
    pub(super) kill: Vec<OsString>,
    /// What sends a signal, but for which: that stands before the last word.
    pub(super) signal: Vec<OsString>,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Attended {
    /// None when the engine was given up.
    pub(super) status: Option<ExitStatus>,
    pub(super) reason: Option<Reason>,
    pub(super) killed: bool,
    pub(super) outlets: [Outlet; 2],
    pub(super) lasted: Duration,
    /// From its first sign of life until it was stopped: an engine under load may date the start
    /// later than that sign.
    pub(super) seen: Duration,
    pub(super) used: Sum,
    pub(super) disk: Filled,
}

pub(super) fn attend(asked: Attend<'_>) -> Result<Attended> {
    let Attend {
        cli,
        mut command,
        profile,
        watched,
        stdin,
        terminal,
        control,
        sink,
        cancel,
        parents,
        id,
        standing,
        guard,
        term,
        kill,
        signal,
    } = asked;
    let wall = profile.limits.wall_ms.duration();
    // Before it is started: from there on it may run, whatever becomes of this process.
    guard.into_iter().for_each(|guard| guard.allow(wall));
    let wired = Controls::wire(control, &mut command, (terminal, stdin.is_some()));
    let (controls, ends) = wired.map_err(|errno| cli.cannot_start(&errno))?;
    let mut running = Running::start(command).map_err(|error| cli.cannot_start(&error))?;
    let no_pipe = |errno: Errno| cli.cannot_start(&errno);
    let child = running.child();
    let (pipe, stdout) = match ends {
        Some([input, output]) => (Some(input), Some(output)),
        None => (
            child.stdin.take().map(OwnedFd::from),
            child.stdout.take().map(OwnedFd::from),
        ),
    };
    let (Some(stdout), Some(stderr)) = (stdout, child.stderr.take()) else {
        return Err(cli.cannot_start(&"it has no pipes"));
    };
    let now = Instant::now();
    let account = parents.find(id).filter(|_| standing);
    let mut turns = Turns {
        cli,
        running,
        inlet: Inlet::new(stdin, pipe).map_err(no_pipe)?,
        outlets: [
            Outlet::new(Stream::Stdout, stdout, cli.program).map_err(no_pipe)?,
            Outlet::new(Stream::Stderr, stderr.into(), cli.program).map_err(no_pipe)?,
        ],
        profile,
        disk: Disk::new(watched, &profile.limits),
        parents,
        id,
        base: account.as_ref().and_then(Account::sum).unwrap_or_default(),
        account,
        gone: None,
        last: Sum::default(),
        spawned: now,
        started: standing.then_some(now),
        announced: false,
        look: now + LOOK,
        counted: now,
        count: now,
        stopping: None,
        standing,
        guard,
        told: standing.then_some(now),
        word: now,
        asking: None,
        calls: Vec::new(),
        term,
        kill,
        signal,
        controls,
        given_up: false,
    };
    let mut chunk = buffer();
    while turns.running.ended().is_none() && !turns.given_up {
        turns.turn(&mut chunk, sink, cancel)?;
    }
    turns.hear_guard()?;
    for outlet in &mut turns.outlets {
        while outlet.take(&mut chunk, sink) {}
    }
    Ok(turns.conclude())
}

struct Turns<'run> {
    cli: &'run Cli,
    running: Running,
    inlet: Inlet,
    outlets: [Outlet; 2],
    profile: &'run Profile,
    disk: Option<Disk<'run>>,
    parents: &'run Parents,
    id: &'run str,
    account: Option<Account>,
    /// When its control groups were seen to be gone.
    gone: Option<Instant>,
    base: Sum,
    last: Sum,
    spawned: Instant,
    started: Option<Instant>,
    /// The sink knows that it has.
    announced: bool,
    look: Instant,
    /// When the account was read, and when it is next.
    counted: Instant,
    count: Instant,
    stopping: Option<Stopping>,
    standing: bool,
    guard: Option<&'run Guarded>,
    /// When the keeper heard that the clock has started.
    told: Option<Instant>,
    word: Instant,
    /// TERM on its way.
    asking: Option<Running>,
    /// KILL on its way.
    calls: Vec<Running>,
    term: Vec<OsString>,
    kill: Vec<OsString>,
    signal: Vec<OsString>,
    controls: Controls<'run>,
    given_up: bool,
}

impl Turns<'_> {
    fn turn(&mut self, chunk: &mut [u8], sink: &mut dyn Sink, cancel: &Cancel) -> Result<()> {
        let ready = self.wait(sink, cancel)?;
        if ready.source {
            self.inlet.read(chunk);
        }
        if ready.inlet {
            self.inlet.write();
        }
        // A program that says what it was refused may be gone when its words are written down.
        if ready.outlets.contains(&true) && self.counted.elapsed() >= GLANCE {
            self.count();
        }
        for (outlet, ready) in self.outlets.iter_mut().zip(ready.outlets) {
            if ready && outlet.take(chunk, sink) {
                self.started.get_or_insert_with(Instant::now);
            }
        }
        if self.started.is_some() && !self.announced {
            self.announced = true;
            sink.started();
        }
        if ready.acts {
            for wish in self.controls.obey(self.running.child()) {
                self.carry_out(wish);
            }
        }
        if ready.quiet {
            sink.look(Instant::now());
        }
        if ready.cancel {
            match (self.stopping, cancel.take()) {
                (_, 0) => {}
                (None, 1) => self.stop(Reason::Canceled, CANCEL_GRACE),
                (None, _) => self.stop(Reason::Canceled, Duration::ZERO),
                (Some(stopping), _) if !stopping.killed => self.end(),
                (Some(_), _) => {}
            }
        }
        // What has ended did so in time, however late we hear of it.
        if self.running.ended().is_none() {
            self.clock();
            self.tell_guard();
        }
        Ok(())
    }

    fn carry_out(&mut self, wish: Wish) {
        match wish {
            Wish::Key(key) => self.inlet.put_first(key),
            Wish::Signal(signal) => {
                let mut words = self.signal.clone();
                let last = words.len().saturating_sub(1);
                words.insert(last, format!("--signal={signal}").into());
                let told = self.told(&words);
                self.calls.extend(told);
            }
            Wish::Expire if self.stopping.is_none() => {
                self.stop(Reason::Limit(LimitKind::Idle), GRACE);
            }
            Wish::Expire => {}
        }
    }

    /// Its time starts with its first sign of life, or has not started.
    fn tell_guard(&mut self) {
        let Some(guard) = self.guard.filter(|_| self.told.is_none()) else {
            return;
        };
        let wall = self.profile.limits.wall_ms.duration();
        match self.started {
            Some(started) => {
                guard.allow(wall.saturating_sub(started.elapsed()));
                self.told = Some(started);
            }
            None if self.word.elapsed() >= WORD => {
                guard.allow(wall);
                self.word = Instant::now();
            }
            None => {}
        }
    }

    /// What the keeper did in our place.
    fn hear_guard(&mut self) -> Result<()> {
        match self.guard.and_then(Guarded::over) {
            Some((Over::Lease, _)) => Err(lease_over()),
            Some((Over::Deadline, at)) if self.stopping.is_none() => {
                let now = Instant::now();
                self.stopping = Some(Stopping {
                    reason: Reason::Limit(LimitKind::Wall),
                    since: now.checked_sub(at.elapsed()).unwrap_or(now),
                    next: now,
                    killed: true,
                });
                Ok(())
            }
            Some((Over::Deadline, _)) | None => Ok(()),
        }
    }

    fn wait(&self, sink: &dyn Sink, cancel: &Cancel) -> Result<Ready> {
        let mut fds = vec![
            PollFd::new(self.running.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(cancel.fd(), PollFlags::IN),
        ];
        let mut source = None;
        if let Some(fd) = self.inlet.source() {
            source = Some(fds.len());
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        let mut inlet = None;
        if let Some(fd) = self.inlet.pipe() {
            inlet = Some(fds.len());
            fds.push(PollFd::new(fd, PollFlags::OUT));
        }
        let mut acts = None;
        if let Some(fd) = self.controls.fd().filter(|_| self.started.is_some()) {
            acts = Some(fds.len());
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        // Who is not read makes the program wait, and nobody else: clock and limits go on.
        let open = sink.has_room();
        let mut outlets = [None; 2];
        for (slot, outlet) in outlets.iter_mut().zip(&self.outlets) {
            if let Some(pipe) = outlet.pipe().filter(|_| open) {
                *slot = Some(fds.len());
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
        let now = Instant::now();
        let mut alarm = self.alarm().min(self.look).min(self.count);
        alarm = match open {
            true => sink.next_look().map_or(alarm, |look| look.min(alarm)),
            false => alarm.min(now + ROOM),
        };
        // Rounded up, so that the alarm is due when poll returns.
        let patience = alarm.saturating_duration_since(now) + Duration::from_micros(50);
        let timeout =
            Timespec::try_from(patience).map_err(|error| self.cli.cannot_start(&error))?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(self.cli.cannot_start(&errno)),
        }
        let is_ready = |slot: Option<usize>| slot.is_some_and(|at| !fds[at].revents().is_empty());
        let outlets = outlets.map(is_ready);
        Ok(Ready {
            quiet: open && outlets == [false; 2],
            cancel: is_ready(Some(1)),
            source: is_ready(source),
            inlet: is_ready(inlet),
            outlets,
            acts: is_ready(acts),
        })
    }

    fn alarm(&self) -> Instant {
        match (self.stopping, self.started) {
            (Some(stopping), _) => stopping.next,
            (None, Some(started)) => started + self.profile.limits.wall_ms.duration(),
            (None, None) => self.spawned + START,
        }
    }

    fn clock(&mut self) {
        let now = Instant::now();
        let due = now >= self.alarm();
        match self.stopping {
            None if due && self.started.is_none() => self.started = Some(now),
            None if due => self.stop(Reason::Limit(LimitKind::Wall), GRACE),
            Some(stopping) if due && stopping.killed => self.given_up = true,
            Some(_) if due => self.end(),
            _ => {}
        }
        if now >= self.count {
            self.count();
        }
        if now >= self.look {
            if let (Some(limit), None) = (self.passed(), self.stopping) {
                self.stop(Reason::Limit(limit), Duration::ZERO);
            }
            self.calls.retain_mut(|call| call.ended().is_none());
            self.hear_of_term();
            self.look = Instant::now() + LOOK;
        }
    }

    /// Reads the account.
    fn count(&mut self) {
        if self.account.is_none() {
            self.account = self.parents.find(self.id);
            if self.account.is_some() {
                self.started.get_or_insert_with(Instant::now);
            }
        }
        let sum = self.account.as_ref().and_then(Account::sum);
        self.counted = Instant::now();
        self.gone = match (&self.account, &sum) {
            (Some(_), None) => self.gone.or(Some(self.counted)),
            _ => None,
        };
        if self.gone.is_some_and(|since| since.elapsed() > LAG) {
            self.running.kill();
        }
        let pause = match &sum {
            Some(sum) if sum.pids != self.last.pids => GLANCE,
            Some(sum) if sum.max_memory > self.last.max_memory => GLANCE,
            None if self.account.is_none() && !self.standing => FIND,
            _ => LOOK,
        };
        self.count = self.counted + pause;
        if let Some(sum) = sum {
            self.last.rise(sum);
        }
    }

    fn passed(&mut self) -> Option<LimitKind> {
        let cpu_ms = self.last.cpu_us.saturating_sub(self.base.cpu_us) / 1000;
        if cpu_ms > self.profile.limits.cpu_ms.get() {
            return Some(LimitKind::Cpu);
        }
        let account = self.account.as_ref();
        let processes = || account.map(Account::processes).unwrap_or_default();
        self.disk.as_mut()?.look(processes)
    }

    fn stop(&mut self, reason: Reason, grace: Duration) {
        let now = Instant::now();
        self.stopping = Some(Stopping {
            reason,
            since: now,
            next: now + grace,
            killed: false,
        });
        if grace.is_zero() {
            self.end();
        } else {
            self.asking = self.told(&self.term);
        }
    }

    /// An engine refuses to tell a container that does not run yet. The wish to stop would be lost,
    /// and the program would start after it: so it ends at once.
    fn hear_of_term(&mut self) {
        let Some(status) = self.asking.as_mut().and_then(Running::ended) else {
            return;
        };
        self.asking = None;
        let is_waiting = self.stopping.is_some_and(|it| !it.killed);
        if !status.success() && is_waiting && !self.standing {
            // First the command that starts it, which may not have reached the engine yet.
            self.running.kill();
            self.end();
        }
    }

    fn end(&mut self) {
        let kill = self.told(&self.kill);
        self.calls.extend(kill);
        if let Some(stopping) = &mut self.stopping {
            stopping.killed = true;
            stopping.next = Instant::now() + GIVE_UP;
        }
    }

    /// The engine's command, not waited for: the loop goes on meanwhile.
    fn told(&self, args: &[OsString]) -> Option<Running> {
        let mut command = self.cli.command(args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running::start(command).ok()
    }

    fn conclude(mut self) -> Attended {
        let ended = Instant::now();
        // A container that goes on has an account to the end.
        if let Some(sum) = self.account.as_ref().and_then(Account::sum) {
            self.last.rise(sum);
        }
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let lasted = ended.saturating_duration_since(self.started.unwrap_or(ended));
        let seen = match (self.started, self.stopping) {
            (Some(started), Some(stopping)) => stopping.since.saturating_duration_since(started),
            _ => Duration::ZERO,
        };
        Attended {
            status: if self.given_up {
                None
            } else {
                self.running.ended()
            },
            reason: self.stopping.map(|it| it.reason),
            killed: self.stopping.is_some_and(|it| it.killed),
            lasted: match self.guard {
                // Whatever kept us from hearing of its end: the keeper would have ended it.
                Some(_) => lasted.min(self.profile.limits.wall_ms.duration() + LATE),
                None => lasted,
            },
            seen,
            used: Sum {
                cpu_us: since(self.last.cpu_us, self.base.cpu_us),
                oom_kills: since(self.last.oom_kills, self.base.oom_kills),
                pids_refused: since(self.last.pids_refused, self.base.pids_refused),
                ..self.last
            },
            disk: self.disk.as_ref().map(Disk::at_the_end).unwrap_or_default(),
            outlets: self.outlets,
        }
    }
}

struct Ready {
    cancel: bool,
    source: bool,
    inlet: bool,
    outlets: [bool; 2],
    /// All output was read that there is.
    quiet: bool,
    acts: bool,
}
