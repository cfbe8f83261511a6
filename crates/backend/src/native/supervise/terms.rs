//! What the keeper is told of a run's time, and what it says when it ended the run by itself.

use std::time::{Duration, Instant};

use glovebox_cage::{Moment, Over};
use glovebox_model::{Code, Error, LimitKind, Profile, Result, Stage};

use super::{Force, Reason, Run, Stopping};
use crate::native::sandbox::{Seat, broken};

/// From the end of its time to when the keeper ends it, if we have not: later than we would, and
/// within a second.
const LATE: Duration = Duration::from_millis(900);
/// How often the keeper hears that the clock has not started yet.
const WORD: Duration = Duration::from_millis(250);
/// A start that is so close to the last word needs none of its own.
const CLOSE: Duration = Duration::from_millis(100);

/// The whole of its time, from now on.
pub(super) fn allow(seat: &Seat, profile: &Profile) -> Result<()> {
    let long = profile.limits.wall_ms.duration().saturating_add(LATE);
    let told = seat.handle.until(Moment::now().after(long));
    told.map_err(|errno| broken(&errno))
}

impl Run<'_> {
    /// Until its time starts, when the keeper hears next that it has not.
    pub(super) fn next_word(&self) -> Option<Instant> {
        self.started.is_none().then(|| self.told + WORD)
    }

    pub(super) fn tell_keeper(&mut self, now: Instant) {
        if self.next_word().is_some_and(|at| now >= at) {
            self.told = now;
            let _ = allow(self.seat, self.profile);
        }
    }

    pub(super) fn tell_keeper_of_start(&mut self, now: Instant) {
        if now > self.told + CLOSE {
            let _ = allow(self.seat, self.profile);
        }
    }

    /// The keeper did what was ours to do; a program that had ended by itself has.
    pub(super) fn ended_by_keeper(&mut self, over: Option<Over>) {
        match over {
            Some(Over::Deadline) if self.stopping.is_none() && self.report.status.is_none() => {
                self.stopping = Some(Stopping {
                    reason: Reason::Limit(LimitKind::Wall),
                    harder_at: Instant::now(),
                    force: Force::Killed,
                });
            }
            Some(Over::Lease) if self.report.status.is_none() => {
                self.report.refusal.get_or_insert_with(lease_over);
            }
            Some(Over::Deadline | Over::Lease) | None => {}
        }
    }
}

/// Its server did not renew its lease in time, so nothing of it may go on.
pub(crate) fn lease_over() -> Error {
    Error::new(
        Code::Lost,
        Stage::Run,
        "the server's lease on its database ran out while the program ran, so it was ended",
    )
    .hint("look at the workspace before running it again")
}
