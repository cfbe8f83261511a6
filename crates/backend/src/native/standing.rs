//! A sandbox that stands: built and locked before it is known what runs in it, or between two runs.
//! Its places that were left for later are filled by the keeper, from outside.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use glovebox_cage::{Attachment, Event, Told, leaves_out};
use glovebox_model::{Access, Code, Error, Isolation, Result, Stage};
use glovebox_workspace::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::baseline::Baseline;
use super::birth::Birth;
use super::layout::{ARTIFACTS, INPUTS, WORK, attributes, by_handle};
use super::sandbox::{Seat, broken, mutated_attributes};
use crate::spec::{ExecDirs, Place, Spec};

#[derive(Debug)]
pub(super) struct Standing {
    pub(super) seat: Seat,
    pub(super) isolation: Isolation,
    later: Later,
    birth: Birth,
    baseline: Baseline,
}

/// The places that were left for later, and how each is shown.
#[derive(Debug, Clone, Copy)]
struct Later {
    work: Option<Access>,
    inputs: Option<Access>,
    artifacts: Option<Access>,
}

impl Standing {
    pub(super) fn new(seat: Seat, isolation: Isolation, spec: &Spec<'_>) -> Self {
        let access = |place: &Place<'_>| match place {
            Place::Later(access) => Some(*access),
            Place::Empty | Place::Tree(_) => None,
        };
        Self {
            seat,
            isolation,
            later: Later {
                work: access(&spec.work),
                inputs: access(&spec.inputs),
                artifacts: access(&spec.artifacts),
            },
            birth: Birth::default(),
            baseline: Baseline::default(),
        }
    }

    /// Waits until it stands. Whatever it used until then is nobody's.
    pub(super) fn settle(&mut self, deadline: Instant) -> Result<()> {
        self.birth.settle(&self.seat.handle, deadline)
    }

    /// It is at rest: from here on it counts.
    pub(super) fn rest(&mut self) {
        if let Some(init) = self.init() {
            self.baseline = Baseline::take(self.seat.group.as_mut(), init);
        }
    }

    pub(super) fn init(&self) -> Option<i32> {
        self.birth.init()
    }

    pub(super) fn baseline(&self) -> Baseline {
        self.baseline
    }

    /// At rest nobody says anything; an end does.
    pub(super) fn is_silent(&self) -> bool {
        let handle = &self.seat.handle;
        silent(&[handle.control_fd(), handle.init_fd()])
    }

    /// Sends the directories of an exec on their way, and returns where they go. What follows waits
    /// for them by itself.
    pub(super) fn attach(&self, room: &ExecDirs<'_>, told: Told) -> Result<Vec<CString>> {
        let mut trees = Vec::new();
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
        for (access, directory, target) in self.later.with(room)? {
            if let Some(attributes) = attributes(access) {
                trees.push(Attachment {
                    source: by_handle(directory.as_fd(), &mut descriptors)?,
                    target: target.into(),
                    attributes: mutated_attributes(attributes),
                });
            }
        }
        let targets = trees.iter().map(|tree| tree.target.clone()).collect();
        let sent = self.seat.handle.attach(trees, told, &descriptors);
        sent.map_err(|errno| broken(&errno))?;
        Ok(targets)
    }

    /// Takes them away again. The sandbox cannot be used any more when it fails.
    pub(super) fn detach(&self, targets: Vec<CString>, deadline: Instant) -> Result<()> {
        if leaves_out("detach") {
            return Ok(());
        }
        let handle = &self.seat.handle;
        handle.detach(targets).map_err(|errno| broken(&errno))?;
        loop {
            if ready([handle.control_fd()], deadline)? != [true] {
                continue;
            }
            match handle.next_control().map_err(|errno| broken(&errno))? {
                Event::Detached => return Ok(()),
                event => return Err(broken(&format!("unexpected {event:?}"))),
            }
        }
    }
}

impl Later {
    fn with<'dir>(
        &self,
        room: &ExecDirs<'dir>,
    ) -> Result<impl Iterator<Item = (Access, &'dir Dir, &'static CStr)>> {
        let work = place("work", self.work, room.work)?;
        // A sandbox with a place for inputs may get none.
        let inputs = match room.inputs {
            None => None,
            given => place("inputs", self.inputs, given)?,
        };
        let artifacts = self.artifacts.map(|access| (access, room.artifacts));
        let all = [(work, WORK), (inputs, INPUTS), (artifacts, ARTIFACTS)];
        let all = all.into_iter();
        Ok(all.filter_map(|(place, target)| place.map(|(access, dir)| (access, dir, target))))
    }
}

/// A directory without a place, or a place without a directory, is a mistake and no program's.
fn place<'dir>(
    name: &str,
    access: Option<Access>,
    directory: Option<&'dir Dir>,
) -> Result<Option<(Access, &'dir Dir)>> {
    match (access, directory) {
        (Some(access), Some(directory)) => Ok(Some((access, directory))),
        (None, None) | (Some(Access::None), None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(Error::new(
            Code::Internal,
            Stage::Admit,
            format!("this sandbox and its exec disagree about `{name}`"),
        )),
    }
}

/// Which of them have something to say; an error after the deadline.
pub(super) fn ready<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    deadline: Instant,
) -> Result<[bool; N]> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(|_| broken(&"clock"))?;
    let mut watched = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut watched, Some(&timeout)) {
        Ok(0) => Err(broken(&"it was not ready in time")),
        Ok(_) | Err(Errno::INTR) => Ok(watched.map(|fd| !fd.revents().is_empty())),
        Err(errno) => Err(broken(&errno)),
    }
}

pub(super) fn silent(fds: &[BorrowedFd<'_>]) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut watched: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    poll(&mut watched, Some(&now)) == Ok(0)
}
