//! Pid 1 of the sandbox: applies the plan, waits for the order, starts the payload, reaps what is
//! left behind. When it ends, the kernel ends everything else inside.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::apply::Workbench;
use crate::payload;
use crate::plan::{Namespace, Plan, Step};
use crate::seccomp::Compiled;
use crate::sys;
use crate::wire::{self, At, Failure, FromInit, Order, Scratch, ToInit};

/// What pid 1 finds done.
pub(crate) struct Furnished {
    pub(crate) filters: Compiled,
    /// Namespaces that have their names and interfaces already.
    pub(crate) named: Vec<Namespace>,
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
    let ready = prepare(plan, trees, furnished, gate, &socket);
    let outcome = match ready {
        Ok(scratch) => serve(plan, &socket, scratch),
        Err(failure) => {
            let _ = wire::send(&socket, &FromInit::SetupFailed(failure), &[]);
            sys::exit(1)
        }
    };
    sys::exit(i32::from(outcome.is_err()))
}

/// Returns where the scratch space can be measured.
fn prepare<'plan>(
    plan: &'plan Plan,
    trees: Vec<OwnedFd>,
    furnished: Furnished,
    gate: OwnedFd,
    socket: &OwnedFd,
) -> Result<Option<&'plan CStr>, Failure> {
    let kept: Vec<_> = [gate.as_fd(), socket.as_fd()]
        .into_iter()
        .chain(trees.iter().map(AsFd::as_fd))
        .collect();
    sys::close_all_but(&kept).at("close descriptors")?;
    match rustix::io::read(&gate, &mut [0u8; 1]) {
        Ok(1) => {}
        // The keeper is gone before the ids were mapped: nobody is interested any more.
        _ => sys::exit(1),
    }
    // Modes are exactly those of the plan, whatever the caller's mask was.
    rustix::process::umask(Mode::empty());
    let mut bench = Workbench::new(plan, trees, furnished);
    for step in &plan.steps {
        bench.apply(step).at(&step.label())?;
        if *step == Step::DieWithKeeper && keeper_is_gone(&gate) {
            sys::exit(1);
        }
    }
    if std::process::id() != 1 {
        return Err(Failure {
            step: "be pid 1".to_owned(),
            errno: libc::EPERM,
        });
    }
    Ok(plan.steps.iter().find_map(|step| match step {
        Step::Scratch { places, .. } => places.first().map(|(path, _)| path.as_c_str()),
        _ => None,
    }))
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

fn serve(plan: &Plan, socket: &OwnedFd, scratch: Option<&CStr>) -> Result<()> {
    let children = sys::child_signals()?;
    wire::send(socket, &FromInit::Ready, &[])?;
    let mut payload = None;
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
            if let Some(status) = reap_all(payload)? {
                let scratch = scratch.and_then(measure);
                wire::send(socket, &FromInit::Exited { status, scratch }, &[])?;
                return Ok(());
            }
        }
        if message {
            match wire::receive::<ToInit>(socket)? {
                None => return Ok(()),
                Some((ToInit::Signal(signal), _)) => sys::signal_everyone(signal)?,
                Some((ToInit::Execute(order), stdio)) if payload.is_none() => {
                    payload = Some(start(plan, &order, stdio, socket)?);
                }
                Some((ToInit::Execute(_), _)) => return Err(Errno::BUSY),
            }
        }
    }
}

fn start(plan: &Plan, order: &Order, stdio: Vec<OwnedFd>, socket: &OwnedFd) -> Result<i32> {
    let stdio: [OwnedFd; 3] = stdio.try_into().map_err(|_| Errno::BADMSG)?;
    let mut become_it = || payload::become_it(&plan.payload, order, &stdio, socket);
    let pid = sys::spawn_shared(&mut become_it)?;
    Ok(pid.as_raw_nonzero().get())
}

/// The payload's status once it ended; whatever else ended is only buried.
fn reap_all(payload: Option<i32>) -> Result<Option<i32>> {
    let mut ended = None;
    while let Some((pid, status, _)) = sys::reap(-1, libc::WNOHANG)? {
        if Some(pid) == payload {
            ended = Some(status);
        }
    }
    Ok(ended)
}

fn measure(place: &CStr) -> Option<Scratch> {
    let stats = rustix::fs::statfs(place).ok()?;
    let block = u64::try_from(stats.f_bsize).ok()?;
    Some(Scratch {
        bytes_free: stats.f_bavail * block,
        files_free: stats.f_ffree,
    })
}
