//! A sandbox that is kept: its files stay from one exec to the next, its processes never do.

use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_cage::{Told, WayOut};
use glovebox_model::{Isolation, Result};

use super::sandbox::{Native, broken};
use super::standing::Standing;
use super::supervise::{self, Bound, Opening, Tenure};
use crate::ended::Ended;
use crate::sandbox::{Kept, Run, TeardownGuard};
use crate::spec::{ExecDirs, Spec};

/// Detaching three mounts takes a moment; a file system that hangs must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct KeptNative {
    standing: Standing,
    life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Rising,
    Stands,
    /// Nothing may run in it any more.
    Over,
}

impl Native {
    /// Sends the plan of a sandbox that takes one exec after another. Root only.
    pub fn keep(self, spec: &Spec<'_>, state: &Path) -> Result<KeptNative> {
        Ok(KeptNative {
            standing: self.stand(spec, state)?,
            life: Life::Rising,
        })
    }
}

impl KeptNative {
    /// Waits until it stands.
    pub fn settle(&mut self, deadline: Instant) -> Result<()> {
        match self.life {
            Life::Stands => Ok(()),
            Life::Over => Err(broken(&"it has ended")),
            Life::Rising => {
                let settled = self.standing.settle(deadline);
                self.standing.rest();
                self.life = match settled {
                    Ok(()) => Life::Stands,
                    Err(_) => Life::Over,
                };
                settled
            }
        }
    }

    /// Of the keeper and of pid 1, as far as they are there.
    pub fn pids(&self) -> Vec<i32> {
        let keeper = self.standing.seat.handle.keeper_pid();
        [keeper].into_iter().chain(self.standing.init()).collect()
    }

    /// Nothing runs in it from here on.
    fn give_up(&mut self) {
        self.life = Life::Over;
        let _ = self.standing.seat.handle.kill();
    }

    fn bound(&self) -> Result<Bound> {
        let init = self.standing.init();
        Ok(Bound {
            init: init.ok_or_else(|| broken(&"it does not stand"))?,
            baseline: self.standing.baseline(),
            interpreter: None,
            tenure: Tenure::Kept,
        })
    }
}

impl Kept for KeptNative {
    fn isolation(&self) -> &Isolation {
        &self.standing.isolation
    }

    fn way_out(&mut self) -> Result<Option<WayOut>> {
        self.settle(Instant::now() + PATIENCE)?;
        Ok(self.standing.seat.handle.take_way_out())
    }

    fn is_alive(&mut self) -> bool {
        match self.life {
            Life::Rising => true,
            Life::Stands => self.standing.is_silent(),
            Life::Over => false,
        }
    }

    fn run(&mut self, room: ExecDirs<'_>, run: Run<'_>) -> Result<Ended> {
        self.settle(Instant::now() + PATIENCE)?;
        let targets = self.standing.attach(&room, Told::Init)?;
        let opening = Opening::Bound(self.bound()?);
        let outcome = supervise::run(&self.standing.seat, opening, run);
        let deadline = Instant::now() + PATIENCE;
        let cleared = outcome.stands && self.standing.detach(targets, deadline).is_ok();
        match cleared {
            true => self.standing.rest(),
            // The next exec must never see what this one had.
            false => self.give_up(),
        }
        outcome.ended
    }

    fn close(self: Box<Self>) -> TeardownGuard {
        let _ = self.standing.seat.handle.kill();
        TeardownGuard::of(self.standing.seat)
    }
}
