//! A keeper for what is not its child, as a container is not: the engine that runs it lets it run on
//! whatever becomes of us. Its end is a command here, given when the deadline or the lease is over,
//! or when the caller is gone.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;

use super::terms::Terms;
use crate::moment::Moment;
use crate::sys::{self, Forked, Result};
use crate::wire::{self, At, Failure, FromKeeper, Guard, ProcessUsage, ToKeeper};

/// A command that hangs is given up, and given again.
const ANSWER: Duration = Duration::from_secs(20);
/// Between two tries, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) fn run(control: &OwnedFd, guard: &Guard, mut terms: Terms<'_>) -> Result<(), Failure> {
    come_home().at("namespaces of the host")?;
    let _locked = lock(guard).at("lock")?;
    let _ = wire::send(control, &FromKeeper::Guards, &[]);
    let mut again: Option<Pause> = None;
    loop {
        if terms.newly_over().is_some() {
            again = Some(Pause::default());
        }
        if again.as_ref().is_some_and(|it| it.at.is_over()) {
            again = match succeeds(&guard.end, &guard.env) {
                true => {
                    let ended = FromKeeper::Ended {
                        usage: ProcessUsage::default(),
                        over: terms.over(),
                        at: Moment::now(),
                    };
                    let _ = wire::send(control, &ended, &[]);
                    None
                }
                false => again.map(Pause::next),
            };
        }
        let pause = again.as_ref().map(|it| it.at.left());
        let pause = pause.and_then(|left| Timespec::try_from(left).ok());
        let patience = pause.into_iter().chain(terms.patience()).min();
        match poll(
            &mut [PollFd::new(control, PollFlags::IN)],
            patience.as_ref(),
        ) {
            Ok(0) | Err(Errno::INTR) => continue,
            other => other.at("watch")?,
        };
        match wire::receive::<ToKeeper>(control) {
            Ok(Some((ToKeeper::Until(deadline), _))) => terms.until(deadline),
            Ok(Some((ToKeeper::Release, _))) => return Ok(()),
            // Asked to, or the caller is gone.
            Ok(_) | Err(_) => {
                clear(guard);
                return Ok(());
            }
        }
    }
}

fn lock(guard: &Guard) -> Result<Option<OwnedFd>> {
    let Some(path) = &guard.lock else {
        return Ok(None);
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    flock(&file, FlockOperation::LockShared)?;
    Ok(Some(file))
}

fn clear(guard: &Guard) {
    let until = Moment::now().after(guard.patience);
    let mut pause = Pause::default();
    while !succeeds(&guard.clear, &guard.env) && !until.is_over() {
        pause = pause.next();
        std::thread::sleep(pause.at.left());
    }
}

/// When it is tried again.
struct Pause {
    long: Duration,
    at: Moment,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            long: PAUSE,
            at: Moment::now(),
        }
    }
}

impl Pause {
    fn next(self) -> Self {
        Self {
            long: (self.long * 2).min(LONGEST_PAUSE),
            at: Moment::now().after(self.long),
        }
    }
}

/// A keeper of root's has a network of its own already, for a sandbox that is not built now: an
/// engine elsewhere would be out of reach.
fn come_home() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let parent = getppid().ok_or(Errno::SRCH)?;
    let path = format!("/proc/{}/ns/net", parent.as_raw_nonzero());
    let network = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
}

fn succeeds(command: &[CString], env: &[CString]) -> bool {
    matches!(carried_out(command, env), Ok(0))
}

/// Its wait status.
fn carried_out(command: &[CString], env: &[CString]) -> Result<i32> {
    let program = command.first().ok_or(Errno::NOENT)?;
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let all = strings.iter().map(|it| it.as_ptr());
        all.chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(command), pointers(env));
    let pid = match sys::fork()? {
        Forked::Child => {
            sys::default_signals();
            sys::execute(program, &argv, &env);
            sys::exit(127)
        }
        Forked::Parent(pid) => pid,
    };
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Moment::now().after(ANSWER);
    loop {
        let left = Timespec::try_from(deadline.left()).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            Ok(0) => drop(pidfd_send_signal(&process, Signal::KILL)),
            other => {
                other?;
                break;
            }
        }
    }
    let ended = sys::reap(pid.as_raw_nonzero().get(), 0)?;
    ended.map(|(_, status, _)| status).ok_or(Errno::CHILD)
}
