//! One loop around a running payload: its streams, its time, its limits, its end.

mod control;
mod ending;
mod leaving;
mod refusals;
mod terms;
mod wiring;

use std::time::{Duration, Instant};

use glovebox_cage::{Event, Moment, Scratch};
use glovebox_model::{Error, LimitKind, Profile, Result};
use glovebox_workspace::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::control::Controls;
use self::refusals::no_cwd;
pub(crate) use self::refusals::no_exec;
use self::terms::allow;
pub(crate) use self::terms::lease_over;
pub(super) use self::wiring::cage_order;
use self::wiring::{Feed, Listener, Wiring};
use super::baseline::Baseline;
use super::notices::Notices;
use super::parcels::Parcels;
use super::preload::{Answer, Interpreter};
use super::pump::{Inlet, Outlet, Taken};
use super::sandbox::{Seat, broken, setup_failed};
use super::watch::Watch;
use crate::ended::Ended;
use crate::spec::Order;
use crate::streams::{Cancel, Sink};

/// Building takes milliseconds; a file system that hangs must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a reader that had no room is asked again.
const ROOM: Duration = Duration::from_millis(2);
/// From TERM to KILL when the time is up or a limit is passed.
const GRACE: Duration = Duration::from_millis(750);
/// From killing all processes of a kept sandbox to giving it up.
const SWEEP_GRACE: Duration = Duration::from_secs(10);
/// From TERM to KILL when somebody canceled: a program may want to tidy up.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// From telling the keeper to end the sandbox to ending the keeper. It needs a moment for thousands
/// of processes; one that was stopped would need forever.
const KEEPER_GRACE: Duration = Duration::from_secs(5);

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Why a run is being ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Limit(LimitKind),
    Canceled,
}

/// TERM was sent; what follows is harder each time.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    reason: Reason,
    harder_at: Instant,
    force: Force,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Force {
    Asked,
    /// Everybody inside was killed but pid 1, which stays.
    Swept,
    /// The whole sandbox was.
    Killed,
}

/// Where the sandbox is when its run begins.
#[derive(Debug)]
pub(super) enum Opening {
    /// On its way. The clock starts when it stands; it is gone when the run is over.
    Building,
    /// It stands, alone and untouched. The clock starts with the order.
    Built {
        init: i32,
    },
    Bound(Bound),
}

/// A sandbox that stands, with the directories of this run on their way into it. The clock starts
/// with the order.
#[derive(Debug)]
pub(super) struct Bound {
    /// Pid 1, as the host knows it.
    pub(super) init: i32,
    pub(super) baseline: Baseline,
    pub(super) interpreter: Option<Box<Interpreter>>,
    pub(super) tenure: Tenure,
}

/// What becomes of a sandbox that stood when its run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tenure {
    Single,
    Kept,
}

/// What a run came to, and whether the sandbox still stands, with nobody but pid 1 in it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) ended: Result<Ended>,
    pub(super) stands: bool,
}

/// What pid 1 reported about the payload.
#[derive(Debug, Default)]
struct Report {
    status: Option<i32>,
    scratch: Option<Scratch>,
    refusal: Option<Error>,
}

pub(super) fn run(seat: &Seat, opening: Opening, asked: crate::sandbox::Run<'_>) -> Outcome {
    let crate::sandbox::Run {
        order,
        profile,
        watched,
        stdin,
        terminal,
        secrets,
        sink,
        cancel,
        control,
    } = asked;
    let started = Parcels::pack(secrets).and_then(|parcels| {
        let feed = Feed {
            stdin,
            terminal,
            parcels,
        };
        Run::start(seat, opening, (order, profile), watched, feed)
    });
    match started {
        Ok(mut run) => {
            run.controls.asked = control;
            let ended = see_through(&mut run, sink, cancel);
            let stands = run.end == Some(End::Emptied);
            let ended = ended.and_then(|()| run.conclude());
            Outcome { ended, stands }
        }
        Err(error) => Outcome {
            ended: Err(error),
            stands: false,
        },
    }
}

fn see_through(run: &mut Run<'_>, sink: &mut dyn Sink, cancel: &Cancel) -> Result<()> {
    let mut buffer = Outlet::buffer();
    while run.end.is_none() {
        run.turn(&mut buffer, sink, cancel)?;
    }
    // Whatever was written before the end lies in the pipes. A descriptor that the program gave
    // away may stay open elsewhere; nobody waits for that one.
    for outlet in &mut run.outlets {
        while outlet.take(&mut buffer, sink) == Taken::Some {}
    }
    run.notices.finish(sink);
    Ok(())
}

/// How a run was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing of the sandbox is left.
    Gone,
    /// Nobody but pid 1 is left in it who could do anything.
    Emptied,
}

struct Run<'run> {
    seat: &'run Seat,
    profile: &'run Profile,
    tenure: Option<Tenure>,
    baseline: Baseline,
    listener: Option<Listener>,
    /// When the order was given to a sandbox that stood; none while it is being built.
    started: Option<Instant>,
    /// The sink knows that it has.
    announced: bool,
    ended: Option<Instant>,
    deadline: Instant,
    /// When the keeper was last told how long it may go on.
    told: Instant,
    inlet: Inlet,
    outlets: [Outlet; 2],
    controls: Controls<'run>,
    watch: Watch<'run>,
    stopping: Option<Stopping>,
    report: Report,
    usage: glovebox_cage::ProcessUsage,
    init_listening: bool,
    looked_for_leaving: bool,
    notices: Notices<'run>,
    end: Option<End>,
}

impl<'run> Run<'run> {
    fn start(
        seat: &'run Seat,
        opening: Opening,
        (order, profile): (&'run Order, &'run Profile),
        watched: &[&'run Dir],
        feed: Feed,
    ) -> Result<Self> {
        let now = Instant::now();
        let in_time = now + profile.limits.wall_ms.duration();
        let (bound, init, started, deadline) = match opening {
            Opening::Building => (None, None, None, now + PATIENCE),
            Opening::Built { init } => (None, Some(init), Some(now), in_time),
            Opening::Bound(bound) => {
                let init = bound.init;
                (Some(bound), Some(init), Some(now), in_time)
            }
        };
        let tenure = bound.as_ref().map(|it| it.tenure);
        let baseline = bound.as_ref().map(|it| it.baseline).unwrap_or_default();
        // Before the order: from there on a program may run, whatever becomes of this process.
        allow(seat, profile)?;
        let mut watch = Watch::new(profile, watched, now, baseline);
        init.into_iter().for_each(|init| watch.born(init));
        let controls = Controls::new(feed.terminal);
        let Wiring {
            inlet,
            outlets,
            listener,
        } = match bound.and_then(|it| it.interpreter) {
            None => Wiring::by_order(seat, order, tenure.is_some(), feed)?,
            Some(interpreter) => Wiring::by_message(*interpreter, order, feed)?,
        };
        Ok(Self {
            seat,
            profile,
            tenure,
            baseline,
            listener,
            started,
            announced: false,
            ended: None,
            deadline,
            told: now,
            inlet,
            outlets,
            controls,
            watch,
            stopping: None,
            report: Report::default(),
            usage: glovebox_cage::ProcessUsage::default(),
            init_listening: true,
            looked_for_leaving: false,
            notices: Notices::new(order),
            end: None,
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
        // Before its end is heard: whoever asked was there.
        if let (true, Some(calls)) = (ready.calls, self.seat.handle.calls()) {
            self.notices.serve(calls, sink);
        }
        if self.started.is_some() && !self.announced {
            self.announced = true;
            sink.started();
        }
        let now = Instant::now();
        self.notices.look(now, sink);
        if ready.quiet {
            sink.look(now);
        }
        if ready.init {
            self.hear_init()?;
        }
        if ready.control {
            self.hear_control()?;
        }
        if ready.acts && self.controls.obey(&self.seat.handle) && self.stopping.is_none() {
            self.stop(Reason::Limit(LimitKind::Idle), GRACE);
        }
        if ready.cancel {
            self.canceled(cancel.take());
        }
        if self.end.is_none() && self.has_left() {
            self.report.status = Some(0);
            self.finish(End::Emptied, Moment::now());
        }
        // What has ended did so in time, however late we hear of it.
        if self.end.is_none() {
            self.clock();
        }
        Ok(())
    }

    fn wait(&self, sink: &dyn Sink, cancel: &Cancel) -> Result<Ready> {
        let handle = &self.seat.handle;
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
        if let Some(acts) = self.controls.fd() {
            slots.acts = Some(fds.len());
            fds.push(PollFd::from_borrowed_fd(acts, PollFlags::IN));
        }
        let now = Instant::now();
        // Who is not read makes the program wait, and nobody else: clock and limits go on.
        let open = sink.has_room();
        for (slot, outlet) in slots.outlets.iter_mut().zip(&self.outlets) {
            if let Some(pipe) = outlet.open(now).filter(|_| open) {
                *slot = Some(fds.len());
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
        if let Some(calls) = handle.calls().filter(|_| self.notices.is_open()) {
            slots.calls = Some(fds.len());
            fds.push(PollFd::new(calls, PollFlags::IN));
        }
        let alarm = self.next_alarm();
        let alarm = match open {
            true => sink.next_look().map_or(alarm, |look| look.min(alarm)),
            false => alarm.min(now + ROOM),
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
        let outlets = slots.outlets.map(is_ready);
        Ok(Ready {
            quiet: open && outlets == [false; 2],
            control: is_ready(Some(0)),
            cancel: is_ready(Some(1)),
            init: is_ready(slots.init),
            source: is_ready(slots.source),
            inlet: is_ready(slots.inlet),
            outlets,
            calls: is_ready(slots.calls),
            acts: is_ready(slots.acts),
        })
    }

    fn next_alarm(&self) -> Instant {
        let end = match self.stopping {
            None => self.deadline,
            Some(stopping) if stopping.force != Force::Killed => stopping.harder_at,
            // Killed: only the end is awaited, looked for again should a message be lost.
            Some(_) => Instant::now() + GRACE,
        };
        let end = end.min(self.watch.next());
        let now = Instant::now();
        let looks = self.outlets.iter().filter_map(|it| it.next_look(now));
        let looks = looks.chain(self.next_word());
        looks
            .chain(self.notices.next_look())
            .fold(end, Instant::min)
    }

    fn clock(&mut self) {
        let now = Instant::now();
        self.tell_keeper(now);
        match self.stopping {
            None if now >= self.deadline && self.started.is_none() => {
                self.report.refusal = Some(broken(&"it was not ready after 30 s"));
                self.stop(Reason::Canceled, Duration::ZERO);
            }
            None if now >= self.deadline => self.stop(Reason::Limit(LimitKind::Wall), GRACE),
            Some(stopping) if now >= stopping.harder_at => match stopping.force {
                Force::Asked | Force::Swept => self.kill(),
                Force::Killed => self.end_keeper(),
            },
            _ => {}
        }
        let group = self.seat.group.as_ref();
        let passed = self.watch.look(now, group);
        if let (Some(limit), None) = (passed, self.stopping) {
            self.stop(Reason::Limit(limit), Duration::ZERO);
        }
    }

    fn stop(&mut self, reason: Reason, grace: Duration) {
        self.stopping = Some(Stopping {
            reason,
            harder_at: Instant::now() + grace,
            force: Force::Asked,
        });
        if grace.is_zero() {
            return self.kill();
        }
        let handle = &self.seat.handle;
        // A stopped process takes its TERM only when it goes on.
        let _ = handle.signal(rustix::process::Signal::TERM.as_raw());
        let _ = handle.signal(rustix::process::Signal::CONT.as_raw());
    }

    /// A kept sandbox outlives what runs in it, unless that does not go.
    fn kill(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if self.tenure == Some(Tenure::Kept) && stopping.force == Force::Asked {
            let _ = self.seat.handle.sweep();
            // No process inside survives that, so the sandbox itself may stay a little longer.
            let _ = self.seat.handle.until(Moment::now().after(SWEEP_GRACE));
            stopping.force = Force::Swept;
            stopping.harder_at = Instant::now() + SWEEP_GRACE;
        } else {
            let _ = self.seat.handle.kill();
            if stopping.force != Force::Killed {
                stopping.harder_at = Instant::now() + KEEPER_GRACE;
            }
            stopping.force = Force::Killed;
        }
    }

    /// Everything inside dies with its keeper; pid 1 is the last to go.
    fn end_keeper(&mut self) {
        let init = self.watch.init().and_then(Pid::from_raw);
        let init = init.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let _ = self.seat.handle.end_keeper();
        if let (Some(init), Ok(patience)) = (init, Timespec::try_from(KEEPER_GRACE)) {
            let _ = poll(&mut [PollFd::new(&init, PollFlags::IN)], Some(&patience));
        }
        self.finish(End::Gone, Moment::now());
    }

    fn canceled(&mut self, times: usize) {
        match self.stopping {
            None if times < 2 => self.stop(Reason::Canceled, CANCEL_GRACE),
            None => self.stop(Reason::Canceled, Duration::ZERO),
            Some(_) => self.kill(),
        }
    }

    fn hear_init(&mut self) -> Result<()> {
        let event = self.seat.handle.next_init();
        let event = event.map_err(|errno| broken(&errno))?;
        match event {
            None => self.init_listening = false,
            Some(Event::Ready) => {
                let now = Instant::now();
                self.started = Some(now);
                self.deadline = now + self.profile.limits.wall_ms.duration();
                self.tell_keeper_of_start(now);
            }
            Some(Event::Terminal(terminal)) => self.connect(terminal)?,
            Some(Event::Exited {
                status,
                scratch,
                usage,
                at,
            }) => {
                self.report.status = Some(status);
                self.report.scratch = scratch;
                if self.tenure.is_some() {
                    self.usage = usage;
                    self.finish(End::Emptied, at);
                }
            }
            Some(Event::CwdFailed { errno }) => self.report.refusal = Some(no_cwd(errno)),
            Some(Event::ExecFailed { errno }) => self.report.refusal = Some(no_exec(errno)),
            Some(Event::Failed(failure)) => self.report.refusal = Some(setup_failed(&failure)),
            Some(
                event @ (Event::Born { .. }
                | Event::Attached
                | Event::Detached
                | Event::Guards
                | Event::Ended { .. }
                | Event::Vanished),
            ) => return Err(broken(&format!("unexpected {event:?}"))),
        }
        Ok(())
    }

    fn hear_control(&mut self) -> Result<()> {
        let event = self.seat.handle.next_control();
        let event = event.map_err(|errno| broken(&errno))?;
        match event {
            Event::Born { pid } => self.watch.born(pid),
            Event::Attached => self.tell_interpreter()?,
            Event::Ended { usage, over, at } => {
                self.usage = usage;
                // What pid 1 said last may still lie in its socket.
                while self.init_listening {
                    self.hear_init()?;
                }
                self.ended_by_keeper(over);
                self.finish(End::Gone, at);
            }
            Event::Vanished => return Err(broken(&"it was killed")),
            Event::Failed(failure) => return Err(setup_failed(&failure)),
            Event::Ready
            | Event::Terminal(_)
            | Event::Detached
            | Event::Guards
            | Event::CwdFailed { .. }
            | Event::ExecFailed { .. }
            | Event::Exited { .. } => return Err(broken(&format!("unexpected {event:?}"))),
        }
        Ok(())
    }

    /// `at` is when it ended; we may hear of it much later.
    fn finish(&mut self, end: End, at: Moment) {
        let now = Instant::now();
        let ended = now.checked_sub(at.elapsed()).unwrap_or(now);
        self.ended.get_or_insert(ended);
        self.end = Some(end);
    }

    /// Its directories are there: now it may begin.
    fn tell_interpreter(&mut self) -> Result<()> {
        match &mut self.listener {
            None => Ok(()),
            Some(listener) => match listener.message.take() {
                Some(message) => listener.interpreter.tell(&message),
                None => Ok(()),
            },
        }
    }

    /// Nothing of the program ran unless its interpreter said that it begins. One that is ended by
    /// us before need not have.
    fn heard_by_interpreter(&self) -> Result<()> {
        let answer = self.listener.as_ref().map(|it| it.interpreter.answer());
        match answer {
            None | Some(Answer::Begins) => Ok(()),
            Some(Answer::NoDirectory { errno }) => Err(no_cwd(errno)),
            Some(Answer::None) if self.stopping.is_some() => Ok(()),
            Some(Answer::None) => Err(broken(
                &"the interpreter that was started ahead did not take its order",
            )),
        }
    }
}

#[derive(Default)]
struct Slots {
    init: Option<usize>,
    source: Option<usize>,
    inlet: Option<usize>,
    outlets: [Option<usize>; 2],
    calls: Option<usize>,
    acts: Option<usize>,
}

struct Ready {
    control: bool,
    cancel: bool,
    init: bool,
    source: bool,
    inlet: bool,
    outlets: [bool; 2],
    /// All output was read that there is.
    quiet: bool,
    calls: bool,
    acts: bool,
}
