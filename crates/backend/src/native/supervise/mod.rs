//! One loop around a running payload: its streams, its time, its limits, its end.

mod ending;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use glovebox_cage::{Event, Scratch};
use glovebox_model::{Code, Error, LimitKind, Profile, Result, Stage};
use glovebox_workspace::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::pump::{Inlet, Outlet, Taken};
use super::sandbox::{Prepared, broken, setup_failed};
use super::watch::Watch;
use crate::ended::Ended;
use crate::spec::{Order, c_string};
use crate::streams::{Cancel, Sink, Stream};

/// Building takes milliseconds; a file system that hangs must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a reader that had no room is asked again.
const ROOM: Duration = Duration::from_millis(2);
/// From TERM to KILL when the time is up or a limit is passed.
const GRACE: Duration = Duration::from_secs(1);
/// From TERM to KILL when somebody canceled: a program may want to tidy up.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Why a run is being ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Limit(LimitKind),
    Canceled,
}

/// TERM was sent; KILL follows.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    reason: Reason,
    kill_at: Instant,
    killed: bool,
}

/// What pid 1 reported about the payload.
#[derive(Debug, Default)]
struct Report {
    status: Option<i32>,
    scratch: Option<Scratch>,
    refusal: Option<Error>,
}

pub(super) fn run(
    prepared: &Prepared,
    order: &Order,
    profile: &Profile,
    watched: &[&Dir],
    stdin: Option<OwnedFd>,
    sink: &mut dyn Sink,
    cancel: &Cancel,
) -> Result<Ended> {
    let mut run = Run::start(prepared, order, profile, watched, stdin)?;
    let mut buffer = Outlet::buffer();
    while !run.finished {
        run.turn(&mut buffer, sink, cancel)?;
    }
    // Whatever was written before the end lies in the pipes. A descriptor that the program gave
    // away may stay open elsewhere; nobody waits for that one.
    for outlet in &mut run.outlets {
        while outlet.take(&mut buffer, sink) == Taken::Some {}
    }
    run.conclude()
}

struct Run<'run> {
    prepared: &'run Prepared,
    profile: &'run Profile,
    /// When the sandbox stood and the order was taken; none while it is being built.
    started: Option<Instant>,
    ended: Option<Instant>,
    deadline: Instant,
    inlet: Inlet,
    outlets: [Outlet; 2],
    watch: Watch<'run>,
    stopping: Option<Stopping>,
    report: Report,
    usage: glovebox_cage::Usage,
    init_listening: bool,
    finished: bool,
}

impl<'run> Run<'run> {
    fn start(
        prepared: &'run Prepared,
        order: &Order,
        profile: &'run Profile,
        watched: &[&'run Dir],
        stdin: Option<OwnedFd>,
    ) -> Result<Self> {
        let no_pipe = |errno: Errno| broken(&errno);
        let (inlet, input) = Inlet::new(stdin).map_err(no_pipe)?;
        let (stdout, output) = Outlet::new(Stream::Stdout).map_err(no_pipe)?;
        let (stderr, error) = Outlet::new(Stream::Stderr).map_err(no_pipe)?;
        let now = Instant::now();
        let watch = Watch::new(profile, watched, now);
        let order = cage_order(order);
        prepared
            .seat
            .handle
            .execute(order, [input.as_fd(), output.as_fd(), error.as_fd()])
            .map_err(|errno| broken(&errno))?;
        Ok(Self {
            prepared,
            profile,
            started: None,
            ended: None,
            deadline: now + PATIENCE,
            inlet,
            outlets: [stdout, stderr],
            watch,
            stopping: None,
            report: Report::default(),
            usage: glovebox_cage::Usage::default(),
            init_listening: true,
            finished: false,
        })
    }

    fn turn(&mut self, buffer: &mut [u8], sink: &mut dyn Sink, cancel: &Cancel) -> Result<()> {
        let ready = self.wait(sink, cancel)?;
        if ready.source {
            self.inlet.read(buffer);
        }
        if ready.inlet {
            self.inlet.write();
        }
        for (outlet, ready) in self.outlets.iter_mut().zip(ready.outlets) {
            if ready {
                let _ = outlet.take(buffer, sink);
            }
        }
        if ready.init {
            self.hear_init()?;
        }
        if ready.control {
            self.hear_control()?;
        }
        if ready.cancel {
            self.canceled(cancel.take());
        }
        self.clock();
        Ok(())
    }

    fn wait(&self, sink: &dyn Sink, cancel: &Cancel) -> Result<Ready> {
        let handle = &self.prepared.seat.handle;
        let mut fds = vec![
            PollFd::from_borrowed_fd(handle.control_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(cancel.fd(), PollFlags::IN),
        ];
        let mut slots = Slots::default();
        if self.init_listening {
            slots.init = Some(fds.len());
            fds.push(PollFd::from_borrowed_fd(handle.init_fd(), PollFlags::IN));
        }
        if let Some(source) = self.inlet.source() {
            slots.source = Some(fds.len());
            fds.push(PollFd::new(source, PollFlags::IN));
        }
        if let Some(pipe) = self.inlet.pipe() {
            slots.inlet = Some(fds.len());
            fds.push(PollFd::new(pipe, PollFlags::OUT));
        }
        // Who is not read makes the program wait, and nobody else: clock and limits go on.
        let open = sink.has_room();
        for (slot, outlet) in slots.outlets.iter_mut().zip(&self.outlets) {
            if let Some(pipe) = outlet.pipe().filter(|_| open) {
                *slot = Some(fds.len());
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
        let now = Instant::now();
        let alarm = if open {
            self.next_alarm()
        } else {
            self.next_alarm().min(now + ROOM)
        };
        let patience = alarm.saturating_duration_since(now);
        // Rounded up, so that the alarm is due when poll returns.
        let patience = patience + Duration::from_micros(50);
        let timeout = Timespec::try_from(patience).map_err(|_| broken(&"clock"))?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(broken(&errno)),
        }
        let is_ready = |slot: Option<usize>| slot.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Ready {
            control: is_ready(Some(0)),
            cancel: is_ready(Some(1)),
            init: is_ready(slots.init),
            source: is_ready(slots.source),
            inlet: is_ready(slots.inlet),
            outlets: slots.outlets.map(is_ready),
        })
    }

    fn next_alarm(&self) -> Instant {
        let end = match self.stopping {
            None => self.deadline,
            Some(Stopping {
                killed: false,
                kill_at,
                ..
            }) => kill_at,
            // Killed: only the end is awaited, looked for again should a message be lost.
            Some(Stopping { killed: true, .. }) => Instant::now() + GRACE,
        };
        end.min(self.watch.next())
    }

    fn clock(&mut self) {
        let now = Instant::now();
        match self.stopping {
            None if now >= self.deadline && self.started.is_none() => {
                self.report.refusal = Some(broken(&"it was not ready after 30 s"));
                self.stop(Reason::Canceled, Duration::ZERO);
            }
            None if now >= self.deadline => self.stop(Reason::Limit(LimitKind::Wall), GRACE),
            Some(stopping) if !stopping.killed && now >= stopping.kill_at => self.kill(),
            _ => {}
        }
        let group = self.prepared.seat.group.as_ref();
        let passed = self.watch.look(now, group);
        if let (Some(limit), None) = (passed, self.stopping) {
            self.stop(Reason::Limit(limit), Duration::ZERO);
        }
    }

    fn stop(&mut self, reason: Reason, grace: Duration) {
        let kill_at = Instant::now() + grace;
        self.stopping = Some(Stopping {
            reason,
            kill_at,
            killed: false,
        });
        if grace.is_zero() {
            return self.kill();
        }
        let handle = &self.prepared.seat.handle;
        // A stopped process takes its TERM only when it goes on.
        let _ = handle.signal(rustix::process::Signal::TERM.as_raw());
        let _ = handle.signal(rustix::process::Signal::CONT.as_raw());
    }

    fn kill(&mut self) {
        let _ = self.prepared.seat.handle.kill();
        if let Some(stopping) = &mut self.stopping {
            stopping.killed = true;
        }
    }

    fn canceled(&mut self, times: usize) {
        match self.stopping {
            None if times < 2 => self.stop(Reason::Canceled, CANCEL_GRACE),
            None => self.stop(Reason::Canceled, Duration::ZERO),
            Some(_) => self.kill(),
        }
    }

    fn hear_init(&mut self) -> Result<()> {
        let event = self
            .prepared
            .seat
            .handle
            .next_init()
            .map_err(|errno| broken(&errno))?;
        match event {
            None => self.init_listening = false,
            Some(Event::Ready) => {
                let now = Instant::now();
                self.started = Some(now);
                self.deadline = now + self.profile.limits.wall_ms.duration();
            }
            Some(Event::Exited { status, scratch }) => {
                self.report.status = Some(status);
                self.report.scratch = scratch;
            }
            Some(Event::CwdFailed { errno }) => self.report.refusal = Some(no_cwd(errno)),
            Some(Event::ExecFailed { errno }) => self.report.refusal = Some(no_exec(errno)),
            Some(Event::Failed(failure)) => self.report.refusal = Some(setup_failed(&failure)),
            Some(event @ (Event::Born { .. } | Event::Ended { .. } | Event::Vanished)) => {
                return Err(broken(&format!("unexpected {event:?}")));
            }
        }
        Ok(())
    }

    fn hear_control(&mut self) -> Result<()> {
        let event = self
            .prepared
            .seat
            .handle
            .next_control()
            .map_err(|errno| broken(&errno))?;
        match event {
            Event::Born { pid } => self.watch.born(pid),
            Event::Ended { usage } => {
                self.usage = usage;
                // What pid 1 said last may still lie in its socket.
                while self.init_listening {
                    self.hear_init()?;
                }
                self.ended = Some(Instant::now());
                self.finished = true;
            }
            Event::Vanished => return Err(broken(&"it was killed")),
            Event::Failed(failure) => return Err(setup_failed(&failure)),
            Event::Ready
            | Event::CwdFailed { .. }
            | Event::ExecFailed { .. }
            | Event::Exited { .. } => return Err(broken(&format!("unexpected {event:?}"))),
        }
        Ok(())
    }
}

#[derive(Default)]
struct Slots {
    init: Option<usize>,
    source: Option<usize>,
    inlet: Option<usize>,
    outlets: [Option<usize>; 2],
}

struct Ready {
    control: bool,
    cancel: bool,
    init: bool,
    source: bool,
    inlet: bool,
    outlets: [bool; 2],
}

fn cage_order(order: &Order) -> glovebox_cage::Order {
    let env = order.env.iter().filter_map(|(key, value)| {
        let mut pair = key.as_bytes().to_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        std::ffi::CString::new(pair).ok()
    });
    glovebox_cage::Order {
        argv: order.argv.iter().map(c_string).collect(),
        env: env.collect(),
        cwd: c_string(&order.cwd),
        path: order.path.iter().map(c_string).collect(),
    }
}

fn no_cwd(errno: i32) -> Error {
    Error::new(
        Code::CwdNotFound,
        Stage::Run,
        "the working directory cannot be entered",
    )
    .caused_by(std::io::Error::from_raw_os_error(errno))
    .hint("`--cwd` is relative to the workspace, or absolute below `/workspace`")
}

fn no_exec(errno: i32) -> Error {
    let cause = std::io::Error::from_raw_os_error(errno);
    match Errno::from_raw_os_error(errno) {
        Errno::NOENT | Errno::NOTDIR => {
            Error::new(Code::CommandNotFound, Stage::Run, "the command was not found")
                .caused_by(cause)
        }
        Errno::TOOBIG => {
            Error::new(Code::InvalidArgument, Stage::Run, "the arguments are too long to execute")
                .caused_by(cause)
                .hint("one argument may have 128 KiB and all together 2 MiB; pass large data with `--stdin` or `--input FILE`")
        }
        _ => Error::new(Code::CommandNotExecutable, Stage::Run, "the command cannot be executed")
            .caused_by(cause)
            .hint("is it executable (`chmod +x`) and made for this machine?"),
    }
}
