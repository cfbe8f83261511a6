//! A kept sandbox: one for all rounds, with its limits in force.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use glovebox_backend::{ExecDirs, Kept, KeptNative, Place};
use glovebox_model::{Access, Result};

use crate::interrupt::Interrupt;
use crate::native::{self, Output, Trial, failed, tree};
use crate::payload::Payload;
use crate::setup::Setup;
use crate::warm::START_TIMEOUT;

/// Made with the first round.
#[derive(Debug, Default)]
pub(crate) struct KeptSandbox(RefCell<Option<KeptNative>>);

impl KeptSandbox {
    /// The time of one exec, until nothing of it is left and the next could begin.
    pub(crate) fn measure(
        &self,
        setup: &Setup,
        payload: Payload,
        interrupt: &Interrupt,
    ) -> Result<Duration> {
        let trial = Trial::new(setup, payload)?;
        let mut output = Output::default();
        let mut kept = match self.0.take() {
            Some(kept) => kept,
            None => start(setup, &trial)?,
        };
        let room = ExecDirs {
            work: None,
            ..trial.room()
        };

        let started = Instant::now();
        if !kept.is_alive() {
            return Err(failed(&"it died between two runs"));
        }
        let watched = [&trial.work];
        let ended = kept.run(room, trial.run(setup, &watched, &mut output, interrupt));
        let took = started.elapsed();
        interrupt.check()?;
        trial.check(ended, &output)?;
        self.0.replace(Some(kept));
        Ok(took)
    }
}

/// The workspace is the sandbox's own; artifacts come with each exec.
fn start(setup: &Setup, trial: &Trial) -> Result<KeptNative> {
    let artifacts = Place::Later(Access::Rw);
    let spec = native::spec(setup, tree(&trial.work), Place::Empty, artifacts);
    let mut kept = native::ready_in_group()?.keep(&spec, &setup.state())?;
    kept.settle(Instant::now() + START_TIMEOUT)?;
    Ok(kept)
}
