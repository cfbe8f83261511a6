//! The caller's end of one sandbox.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use crate::sys::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, pidfd_send_signal, waitid,
};

use crate::keeper::{self, Ends};
use crate::lease::Over;
use crate::moment::Moment;
use crate::observe::Listener;
use crate::plan::{Attachment, Plan, Told};
use crate::sys::{self, Forked};
use crate::terminal::Terminal;
use crate::way_out::WayOut;
use crate::wire::{
    self, Failure, FromInit, FromKeeper, Guard, Order, Parcel, ProcessUsage, Scratch, ToInit,
    ToKeeper,
};

/// What the sandbox reports.
#[derive(Debug)]
pub enum Event {
    /// Pid 1 exists; its pid on the host.
    Born { pid: i32 },
    /// Every step is done; an order may come.
    Ready,
    /// What was ordered gets a terminal, and this end of it is ours.
    Terminal(Terminal),
    /// A step failed; nothing was started.
    Failed(Failure),
    /// The working directory of the order cannot be entered.
    CwdFailed { errno: i32 },
    /// The command of the order cannot be executed.
    ExecFailed { errno: i32 },
    /// The payload ended; its raw wait status.
    Exited {
        status: i32,
        scratch: Option<Scratch>,
        usage: ProcessUsage,
        at: Moment,
    },
    /// What was sent into the sandbox is there.
    Attached,
    /// And is there no more.
    Detached,
    /// What was to be guarded is.
    Guards,
    /// Nothing of the sandbox is left.
    Ended {
        usage: ProcessUsage,
        /// Why the keeper ended it by itself, if it did.
        over: Option<Over>,
        at: Moment,
    },
    /// The keeper is gone without a word; pid 1 died with it.
    Vanished,
}

/// Whose child the keeper is: only a parent can wait for its child by number.
#[derive(Debug)]
enum Keeper {
    Ours(Pid),
    /// The spawner buries it; its end shows on the descriptor.
    Spawned {
        pid: Pid,
        process: OwnedFd,
    },
}

/// One sandbox to be: a keeper process that waits for its plan.
#[derive(Debug)]
pub struct Handle {
    keeper: Keeper,
    control: OwnedFd,
    init: OwnedFd,
    /// Of a layer in memory, once the sandbox is ready.
    memory: OnceLock<OwnedFd>,
    /// Once the sandbox is ready, where its plan has one.
    way_out: OnceLock<WayOut>,
    /// The same of what observes the sandbox.
    calls: OnceLock<Listener>,
    effects: OnceLock<OwnedFd>,
    gone: bool,
}

impl Handle {
    /// Forks the keeper. Call it before the first thread of the process is started; a process with
    /// threads has a [`Spawner`](crate::Spawner).
    pub fn fork() -> Result<Self> {
        let (ours, theirs) = keeper::ends()?;
        match sys::fork()? {
            Forked::Child => keeper::run(theirs, &keeper::ahead(), None),
            Forked::Parent(pid) => Ok(Self::over(Keeper::Ours(pid), ours)),
        }
    }

    /// A keeper that the spawner forked.
    pub(crate) fn spawned(pid: Pid, process: OwnedFd, ends: Ends) -> Self {
        Self::over(Keeper::Spawned { pid, process }, ends)
    }

    fn over(keeper: Keeper, Ends { control, init }: Ends) -> Self {
        Self {
            keeper,
            control,
            init,
            memory: OnceLock::new(),
            way_out: OnceLock::new(),
            calls: OnceLock::new(),
            effects: OnceLock::new(),
            gone: false,
        }
    }

    pub fn keeper_pid(&self) -> i32 {
        match &self.keeper {
            Keeper::Ours(pid) | Keeper::Spawned { pid, .. } => pid.as_raw_nonzero().get(),
        }
    }

    /// Sends the keeper into v1 cgroups ahead of the plan: entering one waits for the kernel.
    pub fn join(&self, cgroups: Vec<CString>) -> Result<()> {
        wire::send(&self.control, &ToKeeper::Join(cgroups), &[])
    }

    /// Sends the plan with the descriptors that its sources name by index.
    pub fn build(&self, plan: Plan, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        wire::send(&self.control, &ToKeeper::Build(plan), descriptors)
    }

    /// Puts secrets into the cupboard for the payload that is executed next: they lie in `content`,
    /// one after the other. When they cannot be put there, nothing is executed.
    pub fn deliver(&self, parcels: Vec<Parcel>, content: BorrowedFd<'_>) -> Result<()> {
        let message = ToInit::Deliver(parcels);
        gone_is_fine(wire::send(&self.init, &message, &[content]))
    }

    /// Sends what to execute, with the payload's standard input, output and error unless it asks for
    /// a terminal, and what it has from descriptor 3 on. A sandbox that failed meanwhile has said why,
    /// and its events are still there to be read.
    pub fn execute(
        &self,
        order: Order,
        stdio: Option<[BorrowedFd<'_>; 3]>,
        further: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let all = [stdio.as_ref().map_or(&[][..], |it| it), further].concat();
        gone_is_fine(wire::send(&self.init, &ToInit::Execute(order), &all))
    }

    /// The same in a sandbox that stands: once what was sent with [`attach`](Self::attach) is there.
    pub fn execute_attached(
        &self,
        order: Order,
        stdio: Option<[BorrowedFd<'_>; 3]>,
        further: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let all = [stdio.as_ref().map_or(&[][..], |it| it), further].concat();
        let message = ToInit::ExecuteAttached(order);
        gone_is_fine(wire::send(&self.init, &message, &all))
    }

    /// Starts a payload that will be told later what to do, through its descriptor 3: the last of
    /// the four.
    pub fn preload(&self, order: Order, descriptors: [BorrowedFd<'_>; 4]) -> Result<()> {
        gone_is_fine(wire::send(
            &self.init,
            &ToInit::Preload(order),
            &descriptors,
        ))
    }

    /// Shows trees in a sandbox that stands. Told to us it is answered by `Attached`; a failure
    /// always is told, and ends the sandbox. Root only.
    pub fn attach(
        &self,
        trees: Vec<Attachment>,
        told: Told,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let message = ToKeeper::Attach(trees, told);
        gone_is_fine(wire::send(&self.control, &message, descriptors))
    }

    /// Takes them away again; answered by `Detached`.
    pub fn detach(&self, targets: Vec<CString>) -> Result<()> {
        gone_is_fine(wire::send(&self.control, &ToKeeper::Detach(targets), &[]))
    }

    /// When the keeper ends everything inside by itself, whatever becomes of this process; instead
    /// of what was said before. What is detached has no deadline any more.
    pub fn until(&self, deadline: Moment) -> Result<()> {
        gone_is_fine(wire::send(&self.control, &ToKeeper::Until(deadline), &[]))
    }

    /// Has the keeper watch over what it did not build, answered by `Guards`. A deadline may follow;
    /// `release` lets it go, and an end that it made by itself is told as `Ended`.
    pub fn guard(&self, guard: Guard) -> Result<()> {
        wire::send(&self.control, &ToKeeper::Guard(guard), &[])
    }

    /// Leaves the keeper to its work, without waiting for it: its sockets close.
    pub fn leave(mut self) {
        self.gone = true;
    }

    /// Ends everybody inside but pid 1, which stays if its plan says so.
    pub fn sweep(&self) -> Result<()> {
        gone_is_fine(wire::send(&self.init, &ToInit::Sweep, &[]))
    }

    /// A signal to every process inside but pid 1. A sandbox that is gone needs none.
    pub fn signal(&self, signal: i32) -> Result<()> {
        gone_is_fine(wire::send(&self.init, &ToInit::Signal(signal), &[]))
    }

    /// Ends everything inside at once.
    pub fn kill(&self) -> Result<()> {
        gone_is_fine(wire::send(&self.control, &ToKeeper::Kill, &[]))
    }

    /// Lets the keeper go. Until then it stays, to clean up should this process be killed.
    pub fn release(&self) -> Result<()> {
        gone_is_fine(wire::send(&self.control, &ToKeeper::Release, &[]))
    }

    /// The two descriptors to poll for reading; each has its `next_` method.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    pub fn init_fd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }

    /// Blocks until the keeper says something.
    pub fn next_control(&self) -> Result<Event> {
        let message = wire::receive::<FromKeeper>(&self.control)?;
        Ok(match message {
            None => Event::Vanished,
            Some((FromKeeper::Born { pid }, _)) => Event::Born { pid },
            Some((FromKeeper::Failed(failure), _)) => Event::Failed(failure),
            Some((FromKeeper::Attached, _)) => Event::Attached,
            Some((FromKeeper::Detached, _)) => Event::Detached,
            Some((FromKeeper::Guards, _)) => Event::Guards,
            Some((FromKeeper::Ended { usage, over, at }, _)) => Event::Ended { usage, over, at },
        })
    }

    /// Blocks until pid 1 says something; `None` when it is gone.
    pub fn next_init(&self) -> Result<Option<Event>> {
        let Some((message, mut handed)) = wire::receive::<FromInit>(&self.init)? else {
            return Ok(None);
        };
        Ok(Some(match message {
            FromInit::Ready {
                way_out,
                calls,
                effects,
            } => {
                if let Some(counts) = way_out {
                    let _ = self.way_out.set(WayOut::of(counts, &mut handed)?);
                }
                // Fewer arrive when this process may open no more files.
                let mut take = || match handed.is_empty() {
                    true => Err(Errno::MFILE),
                    false => Ok(handed.remove(0)),
                };
                if calls {
                    let _ = self.calls.set(Listener::new(take()?));
                }
                if effects {
                    let _ = self.effects.set(take()?);
                }
                for memory in handed {
                    let _ = self.memory.set(memory);
                }
                Event::Ready
            }
            // It does not arrive when this process may open no more files.
            FromInit::Terminal => Event::Terminal(Terminal::of(handed.pop().ok_or(Errno::MFILE)?)),
            FromInit::SetupFailed(failure) => Event::Failed(failure),
            FromInit::CwdFailed { errno } => Event::CwdFailed { errno },
            FromInit::ExecFailed { errno } => Event::ExecFailed { errno },
            FromInit::Exited {
                status,
                scratch,
                usage,
                at,
            } => Event::Exited {
                status,
                scratch,
                usage,
                at,
            },
        }))
    }

    /// What was written to a layer in memory; none before the sandbox was ready.
    pub fn take_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// The sockets of the way out; none before the sandbox was ready, and once only.
    pub fn take_way_out(&mut self) -> Option<WayOut> {
        self.way_out.take()
    }

    /// Where the sandbox's calls are seen; none before it was ready. Each of them waits for its
    /// answer, so whoever asked for it must look.
    pub fn calls(&self) -> Option<&Listener> {
        self.calls.get()
    }

    /// The socket for what programs tell of themselves; none before the sandbox was ready, and once
    /// only.
    pub fn take_effects(&mut self) -> Option<OwnedFd> {
        self.effects.take()
    }

    /// Kills the keeper itself, whatever holds it up. Pid 1 dies with it, and everything inside.
    pub fn end_keeper(&self) -> Result<()> {
        match &self.keeper {
            Keeper::Ours(pid) => kill_process(*pid, Signal::KILL),
            Keeper::Spawned { process, .. } => pidfd_send_signal(process, Signal::KILL),
        }
    }

    /// Waits until the keeper itself is gone, so that its cgroups are empty.
    pub fn wait_keeper(&mut self) -> Result<()> {
        while !self.gone {
            let waited = match &self.keeper {
                Keeper::Ours(pid) => sys::reap(pid.as_raw_nonzero().get(), 0).map(drop),
                Keeper::Spawned { process, .. } => wait_for_other(process),
            };
            match waited {
                Err(Errno::INTR) => {}
                other => {
                    other?;
                    self.gone = true;
                }
            }
        }
        Ok(())
    }
}

/// Waits for a process that is not our child.
fn wait_for_other(process: &OwnedFd) -> Result<()> {
    poll(&mut [PollFd::new(process, PollFlags::IN)], None)?;
    // It is ours after all when the spawner died first and we are the host's pid 1.
    let now = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = waitid(WaitId::PidFd(process.as_fd()), now);
    Ok(())
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.gone {
            // The keeper ends the sandbox and itself when its socket closes; nobody may be left.
            let _ = self.kill();
            let _ = self.release();
            let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Both);
            let _ = self.wait_keeper();
        }
    }
}

fn gone_is_fine(sent: Result<()>) -> Result<()> {
    match sent {
        Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(()),
        other => other,
    }
}
