//! The last steps of the process that becomes the payload.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::Result;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource as Limit, Rlimit, setrlimit};

use crate::plan::{PayloadStep, Resource};
use crate::sys;
use crate::terminal;
use crate::wire::{self, At, FromInit, Order};

/// What of pid 1's the payload gets.
pub(crate) struct Descriptors {
    pub(crate) stdio: Stdio,
    /// From its descriptor 3 on: the channel of one that waits to be told, or secrets.
    pub(crate) further: Vec<OwnedFd>,
}

pub(crate) enum Stdio {
    Streams([OwnedFd; STREAMS]),
    /// The peer of a terminal.
    Terminal(OwnedFd),
}

impl Descriptors {
    pub(crate) fn of_order(mut received: Vec<OwnedFd>) -> Result<Self> {
        let further = received.drain(received.len().min(STREAMS)..).collect();
        let streams = received.try_into().map_err(|_| Errno::BADMSG)?;
        Ok(Self {
            stdio: Stdio::Streams(streams),
            further,
        })
    }

    /// The first number that is none of the payload's.
    fn end(&self) -> i32 {
        // The wire carries a few at most.
        let count = i32::try_from(self.further.len()).unwrap_or(i32::MAX - FIRST);
        FIRST + count
    }
}

const STREAMS: usize = 3;
/// The payload's number for the first after its standard streams.
const FIRST: i32 = 3;

/// Never returns: becomes the payload, or says why not and ends. Memory is shared with pid 1, which
/// waits; nothing that it holds may be changed.
pub(crate) fn become_it(
    steps: &[PayloadStep],
    order: &Order,
    descriptors: &Descriptors,
    socket: &OwnedFd,
) -> ! {
    // Whatever has one of these numbers here is about to lose it, and failures must be told.
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(socket, descriptors.end()) else {
        sys::exit(127)
    };
    let message = match prepare(steps, order, descriptors) {
        Err(message) => message,
        Ok(()) => FromInit::ExecFailed {
            errno: execute(order).raw_os_error(),
        },
    };
    let _ = wire::send(socket, &message, &[]);
    sys::exit(127)
}

fn prepare(
    steps: &[PayloadStep],
    order: &Order,
    descriptors: &Descriptors,
) -> Result<(), FromInit> {
    for step in steps {
        apply(*step)
            .at(&step.label())
            .map_err(FromInit::SetupFailed)?;
    }
    rustix::process::chdir(&order.cwd).map_err(|errno| FromInit::CwdFailed {
        errno: errno.raw_os_error(),
    })?;
    let [input, output, error] = match &descriptors.stdio {
        Stdio::Streams(streams) => streams.each_ref(),
        Stdio::Terminal(peer) => [peer; STREAMS],
    };
    rustix::stdio::dup2_stdin(input)
        .at("stdin")
        .map_err(FromInit::SetupFailed)?;
    rustix::stdio::dup2_stdout(output)
        .at("stdout")
        .map_err(FromInit::SetupFailed)?;
    rustix::stdio::dup2_stderr(error)
        .at("stderr")
        .map_err(FromInit::SetupFailed)?;
    if let Stdio::Terminal(peer) = &descriptors.stdio {
        // Its session is new, so it has none yet.
        terminal::control(peer)
            .at("terminal")
            .map_err(FromInit::SetupFailed)?;
    }
    place(descriptors)
        .at("descriptors")
        .map_err(FromInit::SetupFailed)
}

/// All out of the way first: one may have the number that another gets.
fn place(descriptors: &Descriptors) -> Result<()> {
    let aside = |fd| rustix::io::fcntl_dupfd_cloexec(fd, descriptors.end());
    let aside: Vec<OwnedFd> = descriptors
        .further
        .iter()
        .map(aside)
        .collect::<Result<_>>()?;
    for (number, descriptor) in (FIRST..).zip(&aside) {
        sys::place_at(descriptor.as_fd(), number)?;
    }
    Ok(())
}

fn apply(step: PayloadStep) -> Result<()> {
    match step {
        PayloadStep::NewSession => rustix::process::setsid().map(drop),
        // Pid 1 has the handlers already.
        PayloadStep::DefaultSignals => {
            sys::unblock_signals();
            Ok(())
        }
        PayloadStep::Umask(mask) => {
            rustix::process::umask(Mode::from_raw_mode(mask));
            Ok(())
        }
        PayloadStep::Limit(resource, most) => limit(resource, most),
        PayloadStep::CloseOthers => sys::close_on_exec_from(3),
    }
}

/// Lowers a limit. Where the host's own is lower already it stays: raising would need privilege.
fn limit(resource: Resource, most: u64) -> Result<()> {
    let resource = match resource {
        Resource::Core => Limit::Core,
        Resource::OpenFiles => Limit::Nofile,
        Resource::FileSize => Limit::Fsize,
        Resource::CpuSeconds => Limit::Cpu,
        Resource::Processes => Limit::Nproc,
        Resource::Data => Limit::Data,
        Resource::LockedMemory => Limit::Memlock,
        Resource::MessageQueues => Limit::Msgqueue,
        Resource::RealtimePriority => Limit::Rtprio,
    };
    let most = sys::hard_limit(resource)?.map_or(most, |host| host.min(most));
    setrlimit(
        resource,
        Rlimit {
            current: Some(most),
            maximum: Some(most),
        },
    )
}

/// Looks the command up as a shell would: with a slash as it is, else in each directory in turn.
fn execute(order: &Order) -> Errno {
    let Some(command) = order.argv.first() else {
        return Errno::NOENT;
    };
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|it| it.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (argv, env) = (pointers(&order.argv), pointers(&order.env));
    if command.as_bytes().contains(&b'/') {
        return attempt(command, order, &argv, &env);
    }
    if command.as_bytes().is_empty() {
        return Errno::NOENT;
    }
    let mut answer = Errno::NOENT;
    for directory in &order.path {
        let mut candidate = directory.as_bytes().to_vec();
        candidate.push(b'/');
        candidate.extend_from_slice(command.as_bytes());
        let Ok(candidate) = CString::new(candidate) else {
            continue;
        };
        match attempt(&candidate, order, &argv, &env) {
            Errno::NOENT | Errno::NOTDIR => {}
            // A file that may not be executed hides no other further on, but is the better answer.
            Errno::ACCESS => answer = Errno::ACCESS,
            other => return other,
        }
    }
    answer
}

fn attempt(
    path: &CStr,
    order: &Order,
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> Errno {
    let errno = sys::execute(path, argv, env);
    if errno != Errno::NOEXEC {
        return errno;
    }
    // A script without a first line that names its interpreter: the shell's, by old custom.
    let script: Vec<*const libc::c_char> = [c"sh".as_ptr(), path.as_ptr()]
        .into_iter()
        .chain(order.argv.iter().skip(1).map(|it| it.as_ptr()))
        .chain([std::ptr::null()])
        .collect();
    sys::execute(c"/bin/sh", &script, env)
}
