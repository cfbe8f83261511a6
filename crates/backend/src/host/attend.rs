//! One loop around a program on the host: its streams, its time, its limits, its end.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use glovebox_model::{LimitKind, Profile, Result, Usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitStatus};

use super::family::Used;
use super::start::{Program, STUBBORN, failed};
use crate::disk::Disk;
use crate::ended::{Ended, Ending};
use crate::native::processes::{Count, own_time};
use crate::native::pump::{Inlet, Outlet, Taken};
use crate::streams::{Cancel, Sink};

/// How soon a reader that had no room is asked again.
const ROOM: Duration = Duration::from_millis(2);
/// Between two looks at what is used; longer on a host with many processes.
const LOOK: Duration = Duration::from_millis(25);
/// Looking may take this part of the time.
const LOOK_SHARE: u32 = 20;
/// From TERM to KILL when the time is up.
const GRACE: Duration = Duration::from_secs(1);
/// From TERM to KILL when somebody canceled: a program may want to tidy up.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Limit(LimitKind),
    Canceled,
}

#[derive(Debug, Clone, Copy)]
struct Stopping {
    reason: Reason,
    /// Of KILL, and after that of giving up.
    next: Instant,
    killed: bool,
}

pub(super) struct Attend<'run> {
    pub(super) program: Program,
    pub(super) profile: &'run Profile,
    pub(super) inlet: Inlet,
    pub(super) outlets: [Outlet; 2],
    pub(super) disk: Option<Disk<'run>>,
}

pub(super) fn attend(asked: Attend<'_>, sink: &mut dyn Sink, cancel: &Cancel) -> Result<Ended> {
    let now = Instant::now();
    let mut turns = Turns {
        asked,
        started: now,
        look: now + LOOK,
        stopping: None,
        peak: Used::default(),
        over: false,
    };
    let mut chunk = Outlet::buffer();
    while !turns.over {
        turns.turn(&mut chunk, sink, cancel)?;
    }
    let lasted = turns.started.elapsed();
    // What it used itself can still be read: it is not buried yet.
    turns.peak = turns
        .peak
        .max(turns.asked.program.family.used(Count::Upper));
    let status = turns.asked.program.finish()?;
    // Whatever was written before the end lies in the pipes. A descriptor that the program gave
    // away may stay open elsewhere; nobody waits for that one.
    for outlet in &mut turns.asked.outlets {
        while outlet.take(&mut chunk, sink) == Taken::Some {}
    }
    Ok(turns.conclude(status, lasted))
}

struct Turns<'run> {
    asked: Attend<'run>,
    started: Instant,
    look: Instant,
    stopping: Option<Stopping>,
    peak: Used,
    /// The program itself has ended.
    over: bool,
}

struct Ready {
    program: bool,
    cancel: bool,
    source: bool,
    inlet: bool,
    outlets: [bool; 2],
}

impl Turns<'_> {
    fn turn(&mut self, chunk: &mut [u8], sink: &mut dyn Sink, cancel: &Cancel) -> Result<()> {
        let ready = self.wait(sink, cancel)?;
        if ready.source {
            self.asked.inlet.read(chunk);
        }
        if ready.inlet {
            self.asked.inlet.write();
        }
        for (outlet, ready) in self.asked.outlets.iter_mut().zip(ready.outlets) {
            if ready {
                let _ = outlet.take(chunk, sink);
            }
        }
        if ready.cancel {
            match (self.stopping, cancel.take()) {
                (_, 0) => {}
                (None, 1) => self.stop(Reason::Canceled, CANCEL_GRACE),
                (None, _) => self.stop(Reason::Canceled, Duration::ZERO),
                (Some(stopping), _) if !stopping.killed => self.kill(),
                (Some(_), _) => {}
            }
        }
        self.over = ready.program;
        if !self.over {
            self.clock()?;
        }
        Ok(())
    }

    fn wait(&self, sink: &dyn Sink, cancel: &Cancel) -> Result<Ready> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.asked.program.process().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(cancel.fd(), PollFlags::IN),
        ];
        let mut source = None;
        if let Some(fd) = self.asked.inlet.source() {
            source = Some(fds.len());
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        let mut inlet = None;
        if let Some(fd) = self.asked.inlet.pipe() {
            inlet = Some(fds.len());
            fds.push(PollFd::new(fd, PollFlags::OUT));
        }
        // Who is not read makes the program wait, and nobody else: clock and limits go on.
        let open = sink.has_room();
        let mut outlets = [None; 2];
        for (slot, outlet) in outlets.iter_mut().zip(&self.asked.outlets) {
            if let Some(pipe) = outlet.pipe().filter(|_| open) {
                *slot = Some(fds.len());
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
        let now = Instant::now();
        let mut alarm = self.alarm().min(self.look);
        if !open {
            alarm = alarm.min(now + ROOM);
        }
        // Rounded up, so that the alarm is due when poll returns.
        let patience = alarm.saturating_duration_since(now) + Duration::from_micros(50);
        let timeout = Timespec::try_from(patience).map_err(|error| broken(&error))?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(broken(&errno)),
        }
        let is_ready = |slot: Option<usize>| slot.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Ready {
            program: is_ready(Some(0)),
            cancel: is_ready(Some(1)),
            source: is_ready(source),
            inlet: is_ready(inlet),
            outlets: outlets.map(is_ready),
        })
    }

    fn alarm(&self) -> Instant {
        match self.stopping {
            Some(stopping) => stopping.next,
            None => self.started + self.asked.profile.limits.wall_ms.duration(),
        }
    }

    fn clock(&mut self) -> Result<()> {
        let now = Instant::now();
        let due = now >= self.alarm();
        match self.stopping {
            None if due => self.stop(Reason::Limit(LimitKind::Wall), GRACE),
            Some(stopping) if due && stopping.killed => {
                return Err(broken(&"the kernel does not let the program go"));
            }
            Some(_) if due => self.kill(),
            _ => {}
        }
        if now >= self.look {
            let spent = own_time();
            if let (Some(limit), None) = (self.passed()?, self.stopping) {
                self.stop(Reason::Limit(limit), Duration::ZERO);
            }
            let spent = own_time().saturating_sub(spent);
            self.look = Instant::now() + LOOK.max(spent * LOOK_SHARE);
        }
        Ok(())
    }

    fn passed(&mut self) -> Result<Option<LimitKind>> {
        let limits = &self.asked.profile.limits;
        self.asked.program.family.search();
        self.asked.program.bound()?;
        let family = &self.asked.program.family;
        let mut used = family.used(Count::Upper);
        if used.memory_bytes > limits.memory_bytes.get() {
            used = family.used(Count::Exact);
        }
        self.peak = self.peak.max(used);
        if used.memory_bytes > limits.memory_bytes.get() {
            return Ok(Some(LimitKind::Memory));
        }
        if used.pids > limits.pids.get() {
            return Ok(Some(LimitKind::Pids));
        }
        if used.cpu_ms > limits.cpu_ms.get() {
            return Ok(Some(LimitKind::Cpu));
        }
        let members = || family.members().into_iter().map(|(pid, _)| pid).collect();
        let disk = self.asked.disk.as_mut();
        Ok(disk.and_then(|disk| disk.look(members)))
    }

    fn stop(&mut self, reason: Reason, grace: Duration) {
        self.stopping = Some(Stopping {
            reason,
            next: Instant::now() + grace,
            killed: false,
        });
        if grace.is_zero() {
            return self.kill();
        }
        let family = &mut self.asked.program.family;
        family.signal(Signal::TERM);
        // A stopped process takes its TERM only when it goes on.
        family.signal(Signal::CONT);
    }

    fn kill(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            stopping.killed = true;
            stopping.next = Instant::now() + STUBBORN;
        }
        self.asked.program.family.signal(Signal::KILL);
    }

    fn conclude(self, status: WaitStatus, lasted: Duration) -> Ended {
        let signal = status.terminating_signal();
        let code = status.exit_status();
        let taken = || self.asked.disk.as_ref().map(Disk::at_the_end);
        let (ending, limit_hit) = match (self.stopping.map(|it| it.reason), signal) {
            (Some(Reason::Canceled), _) => (Ending::Canceled, None),
            (Some(Reason::Limit(LimitKind::Wall)), _) => (Ending::TimedOut, Some(LimitKind::Wall)),
            (Some(Reason::Limit(limit)), _) => (Ending::LimitKilled, Some(limit)),
            (None, Some(SIGXCPU)) => (Ending::LimitKilled, Some(LimitKind::Cpu)),
            (None, Some(SIGXFSZ)) => (Ending::LimitKilled, Some(LimitKind::Disk)),
            (None, Some(signal)) => (Ending::Signaled { signal }, None),
            (None, None) => {
                let code = code.unwrap_or(255);
                let met = taken().and_then(|taken| taken.met_by(code == 0));
                (Ending::Exited { code }, met)
            }
        };
        Ended {
            ending,
            signal,
            limit_hit,
            duration: lasted,
            usage: Usage {
                cpu_ms: self.peak.cpu_ms,
                max_memory_bytes: self.peak.memory_bytes,
                max_pids: self.peak.pids.max(1),
            },
            notices_dropped: 0,
        }
    }
}

fn broken(why: &dyn std::fmt::Display) -> glovebox_model::Error {
    failed("the program on the host cannot be watched any more, so it was ended").caused_by(why)
}
