//! Pid 1 of the sandbox: applies the plan, waits for the order, starts the payload, reaps what is
//! left behind. When it ends, the kernel ends everything else inside.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::apply::{Cupboard, Made, Observed, Workbench};
use crate::descriptors;
use crate::moment::Moment;
use crate::payload::{self, Descriptors, Stdio};
use crate::plan::{After, Namespace, PayloadStep, Plan, Step};
use crate::seccomp::Compiled;
use crate::sys::{self, Children, Stack};
use crate::terminal::Terminal;
use crate::way_out::WayOut;
use crate::wire::{self, At, Failure, FromInit, Order, Parcel, ProcessUsage, Scratch, ToInit};

/// What pid 1 finds done.
pub(crate) struct Furnished {
    pub(crate) filters: Compiled,
    /// Namespaces that have their names and interfaces already.
    pub(crate) named: Vec<Namespace>,
    /// Made by the keeper, where the network namespace is the host's root's.
    pub(crate) way_out: Option<WayOut>,
}

pub(crate) fn run(
    plan: &Plan,
    trees: Vec<OwnedFd>,
    furnished: Furnished,
    gate: OwnedFd,
    socket: OwnedFd,
) -> ! {
    if rustix::thread::set_name(c"glovebox-init").is_err() {
        sys::exit(1);
    }
    let ready = prepare(plan, trees, furnished, &gate, &socket);
    let outcome = match ready {
        Ok(built) => serve(plan, &socket, &gate, built),
        Err(failure) => {
            let _ = tell(plan, &socket, &FromInit::SetupFailed(failure), &[]);
            end(plan, 1)
        }
    };
    end(plan, i32::from(outcome.is_err()))
}

/// Whatever pid 1 says goes this way: where calls are observed, its own need no answer.
fn tell(
    plan: &Plan,
    socket: &OwnedFd,
    message: &FromInit,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    wire::send_sealed(socket, message, descriptors, plan.seal())
}

fn end(plan: &Plan, code: i32) -> ! {
    match plan.seal() {
        Some(seal) => sys::exit_sealed(code, seal),
        None => sys::exit(code),
    }
}

/// What is known of the sandbox once it stands.
struct Built<'plan> {
    /// Where the scratch space can be measured.
    scratch: Option<&'plan CStr>,
    made: Made,
}

fn prepare<'plan>(
    plan: &'plan Plan,
    trees: Vec<OwnedFd>,
    furnished: Furnished,
    gate: &OwnedFd,
    socket: &OwnedFd,
) -> Result<Built<'plan>, Failure> {
    let kept: Vec<_> = [gate.as_fd(), socket.as_fd()]
        .into_iter()
        .chain(trees.iter().map(AsFd::as_fd))
        .chain(furnished.way_out.iter().flat_map(WayOut::descriptors))
        .collect();
    descriptors::close_all_but(&kept).at("close descriptors")?;
    if pass(gate).is_err() {
        // The keeper is gone before the ids were mapped: nobody is interested any more.
        sys::exit(1);
    }
    // Modes are exactly those of the plan, whatever the caller's mask was.
    rustix::process::umask(Mode::empty());
    let mut bench = Workbench::new(plan, trees, furnished);
    for step in &plan.steps {
        bench.apply(step).at(&step.label())?;
        if *step == Step::DieWithKeeper && keeper_is_gone(gate) {
            sys::exit(1);
        }
    }
    if std::process::id() != 1 {
        return Err(Failure {
            step: "be pid 1".to_owned(),
            errno: libc::EPERM,
        });
    }
    let scratch = plan.steps.iter().find_map(|step| match step {
        Step::Scratch { places, .. } => places.first().map(|(path, _)| path.as_c_str()),
        _ => None,
    });
    Ok(Built {
        scratch,
        made: bench.finish(),
    })
}

/// The keeper holds the other end of the gate for as long as it lives.
fn keeper_is_gone(gate: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(gate, PollFlags::IN)];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&now)).is_err() || !watched[0].revents().is_empty()
}

/// Waits until the keeper has done its part.
fn pass(gate: &OwnedFd) -> Result<()> {
    loop {
        match rustix::io::read(gate, &mut [0u8; 1]) {
            Ok(1) => return Ok(()),
            Ok(_) => return Err(Errno::PIPE),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn serve(plan: &Plan, socket: &OwnedFd, gate: &OwnedFd, built: Built<'_>) -> Result<()> {
    if plan.payload.contains(&PayloadStep::DefaultSignals) {
        // They are inherited, and here they cost no run its time. To pid 1 itself they mean nothing:
        // the kernel lets none through that it has no handler for.
        sys::default_signals();
    }
    let children = sys::child_signals()?;
    let mut stack = Stack::new();
    let Built { scratch, made } = built;
    let mut cupboard = report_ready(plan, socket, made)?;
    let mut payload = None;
    let mut usage = ProcessUsage::default();
    loop {
        let mut watched = [
            PollFd::new(&children, PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let [child_ended, message] = watched.map(|fd| !fd.revents().is_empty());
        if child_ended {
            let _ = rustix::io::read(&children, &mut [0u8; 128]);
            let (status, left) = reap_ended(payload, &mut usage)?;
            if let Some(status) = status {
                if plan.after == After::Stay && left == Left::Some && !crate::leaves_out("sweep") {
                    bury_everyone(&mut usage)?;
                }
                if let Some(cupboard) = &mut cupboard
                    && plan.after == After::Stay
                {
                    cupboard.empty()?;
                }
                let ended = FromInit::Exited {
                    status,
                    // Of interest to what went wrong.
                    scratch: scratch.filter(|_| status != 0).and_then(measure),
                    usage: std::mem::take(&mut usage),
                    at: Moment::now(),
                };
                tell(plan, socket, &ended, &[])?;
                match plan.after {
                    After::End => return Ok(()),
                    After::Stay => payload = None,
                }
            }
        }
        if message {
            let Some((message, descriptors)) = wire::receive::<ToInit>(socket)? else {
                return Ok(());
            };
            let order = match message {
                ToInit::Signal(signal) => {
                    sys::signal_everyone(signal)?;
                    continue;
                }
                ToInit::Sweep => {
                    sys::signal_everyone(libc::SIGKILL)?;
                    continue;
                }
                // One at a time.
                _ if payload.is_some() => return Err(Errno::BUSY),
                ToInit::Deliver(parcels) => {
                    let filled = deliver(cupboard.as_mut(), &parcels, &descriptors);
                    if let Err(failure) = filled.at("secrets") {
                        let _ = tell(plan, socket, &FromInit::SetupFailed(failure), &[]);
                    }
                    filled?;
                    continue;
                }
                ToInit::Execute(order) | ToInit::Preload(order) => order,
                ToInit::ExecuteAttached(order) => {
                    pass(gate)?;
                    order
                }
            };
            let descriptors = equip(plan, &order, descriptors, socket)?;
            payload = Some(start(plan, &order, &descriptors, socket, &mut stack)?);
        }
    }
}

/// Everything that is handed out leaves this process with it, but for the cupboard.
fn report_ready(plan: &Plan, socket: &OwnedFd, made: Made) -> Result<Option<Cupboard>> {
    let Made {
        memory,
        cupboard,
        way_out,
        observed: Observed { calls, effects },
    } = made;
    let ready = FromInit::Ready {
        way_out: way_out.as_ref().map(WayOut::counts),
        calls: calls.is_some(),
        effects: effects.is_some(),
    };
    let sockets = way_out.iter().flat_map(WayOut::descriptors);
    let others = [&calls, &effects, &memory];
    let others = others.into_iter().flatten().map(AsFd::as_fd);
    let handed: Vec<_> = sockets.chain(others).collect();
    tell(plan, socket, &ready, &handed)?;
    Ok(cupboard)
}

/// A payload that would miss some of its secrets is never started.
fn deliver(
    cupboard: Option<&mut Cupboard>,
    parcels: &[Parcel],
    descriptors: &[OwnedFd],
) -> Result<()> {
    match (cupboard, descriptors) {
        (Some(cupboard), [content]) => cupboard.fill(parcels, content),
        _ => Err(Errno::BADMSG),
    }
}

/// What the payload gets: all of it came with the order, but for a terminal. Of that the other end is
/// told of before there is a payload, and kept by nobody here.
fn equip(
    plan: &Plan,
    order: &Order,
    received: Vec<OwnedFd>,
    socket: &OwnedFd,
) -> Result<Descriptors> {
    let Some(size) = order.terminal else {
        return Descriptors::of_order(received);
    };
    match Terminal::inside(size, plan.seal()) {
        Ok((controlling, peer)) => {
            tell(plan, socket, &FromInit::Terminal, &[controlling.as_fd()])?;
            Ok(Descriptors {
                stdio: Stdio::Terminal(peer),
                further: received,
            })
        }
        Err(errno) => {
            let failure = Failure {
                step: "terminal".to_owned(),
                errno: errno.raw_os_error(),
            };
            let _ = tell(plan, socket, &FromInit::SetupFailed(failure), &[]);
            Err(errno)
        }
    }
}

fn start(
    plan: &Plan,
    order: &Order,
    descriptors: &Descriptors,
    socket: &OwnedFd,
    stack: &mut Stack,
) -> Result<i32> {
    let mut become_it = || payload::become_it(&plan.payload, order, descriptors, socket);
    let pid = sys::spawn_shared(stack, &mut become_it)?;
    Ok(pid.as_raw_nonzero().get())
}

/// Whether anybody else is there.
#[derive(PartialEq, Eq)]
enum Left {
    Some,
    /// Everybody inside descends from a child of pid 1, and there is none.
    Nobody,
}

/// The payload's status once it ended; whatever else ended is only buried.
fn reap_ended(payload: Option<i32>, sum: &mut ProcessUsage) -> Result<(Option<i32>, Left)> {
    let mut ended = None;
    loop {
        match sys::reap_any(libc::WNOHANG)? {
            Children::Live => return Ok((ended, Left::Some)),
            Children::None => return Ok((ended, Left::Nobody)),
            Children::Ended { pid, status, usage } => {
                sum.add(ProcessUsage::from(&usage));
                if Some(pid) == payload {
                    ended = Some(status);
                }
            }
        }
    }
}

/// Nobody but pid 1 is left when it returns. One signal reaches all at once: who is about to fork
/// has either done so and both are killed, or is killed first.
fn bury_everyone(sum: &mut ProcessUsage) -> Result<()> {
    sys::signal_everyone(libc::SIGKILL)?;
    loop {
        match sys::reap_any(0) {
            Ok(Children::None) => return Ok(()),
            Ok(Children::Ended { usage, .. }) => sum.add(ProcessUsage::from(&usage)),
            Ok(Children::Live) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn measure(place: &CStr) -> Option<Scratch> {
    let stats = rustix::fs::statfs(place).ok()?;
    let block = u64::try_from(stats.f_bsize).ok()?;
    Some(Scratch {
        bytes_free: stats.f_bavail * block,
        files_free: stats.f_ffree,
    })
}
