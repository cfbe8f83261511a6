//! Notices of an observed sandbox: a call arrives, is read, and goes on as if nobody had looked.
//!
//! Observation is for telling, never for deciding. Another thread may change a path after it was read
//! here and before the kernel reads it, so whatever must not happen is prevented elsewhere.

mod address;
mod image;
mod memory;
mod path;
mod read;
mod tries;
mod who;

use std::os::fd::AsFd;
use std::time::Instant;

use glovebox_cage::observe::{Call, Listener, Shape};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use self::tries::{Tries, Try};
use self::who::{Acquaintances, Who};
use crate::notice::{Notice, Noticed};
use crate::spec::Order;
use crate::streams::Sink;

/// More than anybody reads; what comes after is counted.
const NOTICES_MAX: u64 = 100_000;
/// So many calls are heard before streams, clock and limits have their turn again.
const BURST: usize = 64;
/// Pid 1 of a sandbox: what it does itself is ours.
const INIT: u32 = 1;

/// Why a call is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It is wrong in itself, and the kernel will say so; or it is nobody's business.
    Nothing,
    /// It cannot be read from here.
    Hidden,
}

impl From<Errno> for Unread {
    fn from(errno: Errno) -> Self {
        match errno {
            // Memory that is not there now may be there when the kernel looks.
            Errno::PERM | Errno::ACCESS | Errno::FAULT | Errno::IO => Self::Hidden,
            _ => Self::Nothing,
        }
    }
}

pub(super) struct Notices<'run> {
    tries: Tries<'run>,
    acquaintances: Acquaintances,
    /// The order's own program was seen to start. Until then an ordinary user cannot look into the
    /// process that becomes it, and what that does is ours.
    started: bool,
    told: u64,
    dropped: u64,
    closed: bool,
}

impl<'run> Notices<'run> {
    pub(super) fn new(order: &'run Order) -> Self {
        Self {
            tries: Tries::new(order),
            acquaintances: Acquaintances::default(),
            started: false,
            told: 0,
            dropped: 0,
            closed: false,
        }
    }

    /// Calls that were let through and not told.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether anybody is left who could be observed.
    pub(super) fn is_open(&self) -> bool {
        !self.closed
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        self.tries.next_look()
    }

    /// The listener has something to say.
    pub(super) fn serve(&mut self, listener: &Listener, sink: &mut dyn Sink) {
        for _ in 0..BURST {
            match state(listener) {
                State::Silent => return,
                State::Closed => {
                    self.closed = true;
                    return;
                }
                State::Calls => {}
            }
            match listener.next() {
                Ok(Some(call)) => self.hear(listener, &call, sink),
                Ok(None) => {}
                Err(_) => self.closed = true,
            }
        }
    }

    /// It is time to see what became of those who tried to become another program.
    pub(super) fn look(&mut self, now: Instant, sink: &mut dyn Sink) {
        let settled = self.tries.look(now);
        self.tell(settled, sink);
    }

    /// Nobody is left.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        let settled = self.tries.finish();
        self.tell(settled, sink);
    }

    fn hear(&mut self, listener: &Listener, call: &Call, sink: &mut dyn Sink) {
        // It has come this far, so its last try is over. While it waits, that can be seen.
        let settled = self.tries.settle(call.thread);
        self.tell(settled, sink);
        let read = match call.watched.shape {
            Shape::End => Ok(Vec::new()),
            _ if self.told >= NOTICES_MAX => Err(Unread::Hidden),
            Shape::Execute { program, argv } => self.attempt(listener, call, (program, argv)),
            _ => self.read(listener, call),
        };
        listener.resume(call);
        match read {
            Ok(notices) => self.tell(notices, sink),
            Err(Unread::Nothing) => {}
            Err(Unread::Hidden) => self.dropped += 1,
        }
    }

    /// It is told when it is known to have become that program.
    fn attempt(
        &mut self,
        listener: &Listener,
        call: &Call,
        (program, argv): (glovebox_cage::observe::Place, u8),
    ) -> Result<Vec<Notice>, Unread> {
        let who = Who::of(call.thread).ok_or(Unread::Nothing)?;
        let exec = match read::exec(call, program, argv) {
            Ok(exec) => Some(exec),
            Err(Unread::Hidden) if who.parent == INIT && !self.started => None,
            Err(unread) => return Err(unread),
        };
        let next = Try::new(call.thread, who, exec);
        match listener.waits(call) {
            true if self.tries.add(next) => Ok(Vec::new()),
            true => Err(Unread::Hidden),
            false => Err(Unread::Nothing),
        }
    }

    fn read(&mut self, listener: &Listener, call: &Call) -> Result<Vec<Notice>, Unread> {
        let read = read::call(call);
        if read.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let who = self.acquaintances.who(call.thread);
        let who = who.filter(|who| who.pid != INIT).ok_or(Unread::Nothing)?;
        let all = match read {
            Err(Unread::Hidden) if who.parent == INIT && !self.started => {
                return Err(Unread::Nothing);
            }
            other => other?,
        };
        match listener.waits(call) {
            true => Ok(all.into_iter().map(|what| who.notice(what)).collect()),
            false => Err(Unread::Nothing),
        }
    }

    fn tell(&mut self, notices: Vec<Notice>, sink: &mut dyn Sink) {
        for notice in notices {
            self.started |= matches!(notice.what, Noticed::Exec { .. });
            if self.told < NOTICES_MAX {
                self.told += 1;
                sink.noticed(notice);
            } else {
                self.dropped += 1;
            }
        }
    }
}

enum State {
    Calls,
    Silent,
    /// Everybody who was observed is gone.
    Closed,
}

fn state(listener: &Listener) -> State {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut watched = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    match poll(&mut watched, Some(&now)) {
        Ok(0) | Err(_) => State::Silent,
        Ok(_) if watched[0].revents().contains(PollFlags::IN) => State::Calls,
        Ok(_) => State::Closed,
    }
}
