//! Until when a keeper lets its sandbox go on, whatever its caller does meanwhile.

use std::time::Duration;

use rustix::event::Timespec;

use crate::lease::{Lease, Over};
use crate::moment::Moment;

/// A sleeping machine stops the kernel's waits, and not the lease.
const LOOK: Duration = Duration::from_secs(1);

pub(super) struct Terms<'keeper> {
    deadline: Moment,
    lease: Option<&'keeper Lease>,
    /// Why it was ended; it is ended once.
    over: Option<Over>,
}

impl<'keeper> Terms<'keeper> {
    pub(super) fn new(lease: Option<&'keeper Lease>) -> Self {
        Self {
            deadline: Moment::NEVER,
            // A server without a lease never has one.
            lease: lease.filter(|it| it.end() != Moment::NEVER),
            over: None,
        }
    }

    pub(super) fn until(&mut self, deadline: Moment) {
        self.deadline = deadline;
    }

    pub(super) fn over(&self) -> Option<Over> {
        self.over
    }

    /// Why it is to be ended now, if it is.
    pub(super) fn newly_over(&mut self) -> Option<Over> {
        if self.over.is_some() {
            return None;
        }
        self.over = if self.deadline != Moment::NEVER && self.deadline.is_over() {
            Some(Over::Deadline)
        } else {
            let lease = self.lease.filter(|it| it.end().is_over());
            lease.map(|_| Over::Lease)
        };
        self.over
    }

    /// How long there is nothing to look for; for ever without a deadline and a lease.
    pub(super) fn patience(&self) -> Option<Timespec> {
        if self.over.is_some() {
            return None;
        }
        let look = self.lease.map(|it| it.end().left().min(LOOK));
        let deadline = (self.deadline != Moment::NEVER).then(|| self.deadline.left());
        let soonest = look.into_iter().chain(deadline).min()?;
        Timespec::try_from(soonest).ok()
    }
}
