//! Native sandboxes that stand before their program is known, with their limits in force: made
//! ahead and used once, or kept for many.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use glovebox_backend::{Ground, Kept, KeptNative, Native, Place, Preload, Sandbox, Spec, Warm};
use glovebox_cage::Spawner;
use glovebox_model::{Access, Result};

use super::interrupt::Interrupt;
use super::native::{self, Output, Trial, failed, tree};
use super::process::{self, Memory};
use super::stage::{Payload, Stage};

/// An interpreter takes a few dozen milliseconds to start; a host under load more.
const SETTLING: Duration = Duration::from_secs(10);

/// What waits in a sandbox that was made ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Pid 1, for any program.
    Plain,
    /// The payload's interpreter, for its code.
    Interpreter,
}

/// From a sandbox that waits to the result: looked at, given its directories, run.
pub(super) fn measure_warm(
    stage: &Stage,
    ahead: Ahead,
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Duration> {
    let trial = Trial::new(stage, payload)?;
    let mut output = Output::default();
    let mut warm = warm(native::seat()?, stage, ahead, &trial, payload)?;

    let started = Instant::now();
    if !warm.is_alive() {
        return Err(failed(&"it died before it was used"));
    }
    let bound = Box::new(warm.bind(&trial.room())?);
    let watched = [&trial.work];
    let (ended, remains) = bound.run(trial.run(stage, &watched, &mut output, interrupt));
    let took = started.elapsed();
    drop(remains);
    interrupt.check()?;
    trial.judge(ended, &output).map(|()| took)
}

fn warm(
    native: Native,
    stage: &Stage,
    ahead: Ahead,
    trial: &Trial,
    payload: Payload,
) -> Result<Warm> {
    let spec = Spec {
        work: Place::Later(Access::Rw),
        ..later(stage)
    };
    let preload = match (ahead, payload.language()) {
        (Ahead::Interpreter, Some(language)) => Some(Preload {
            language,
            command: trial.order.argv.first().cloned().unwrap_or_default(),
            env: trial.order.env.clone(),
            path: trial.order.path.clone(),
        }),
        (Ahead::Interpreter, None) => return Err(failed(&"it has no interpreter")),
        (Ahead::Plain, _) => None,
    };
    let mut warm = native.warm(&spec, &stage.state(), preload)?;
    warm.settle(Instant::now() + SETTLING)?;
    Ok(warm)
}

/// As the pool makes them: everything of one exec comes later.
fn later(stage: &Stage) -> Spec<'_> {
    Spec {
        profile: stage.profile(),
        work: Place::Empty,
        inputs: Place::Later(Access::Ro),
        artifacts: Place::Later(Access::Rw),
        home: None,
        image: None,
        toolchains: Vec::new(),
        links: Vec::new(),
        caches: Vec::new(),
        mounts: Vec::new(),
        masked: Vec::new(),
        largest_file: None,
        trust: None,
        secrets: glovebox_backend::SecretFiles::Never,
        observe: None,
    }
}

/// One sandbox for all rounds, made with the first.
#[derive(Debug, Default)]
pub(super) struct Standing(RefCell<Option<KeptNative>>);

impl Standing {
    /// One exec in it, until nothing of that exec is left and the next could come.
    pub(super) fn measure(
        &self,
        stage: &Stage,
        payload: Payload,
        interrupt: &Interrupt,
    ) -> Result<Duration> {
        let trial = Trial::new(stage, payload)?;
        let mut output = Output::default();
        let mut kept = match self.0.take() {
            Some(kept) => kept,
            None => keep(stage, &trial)?,
        };
        let room = glovebox_backend::Room {
            work: None,
            ..trial.room()
        };

        let started = Instant::now();
        if !kept.is_alive() {
            return Err(failed(&"it died between two runs"));
        }
        let watched = [&trial.work];
        let ended = kept.run(room, trial.run(stage, &watched, &mut output, interrupt));
        let took = started.elapsed();
        interrupt.check()?;
        trial.judge(ended, &output)?;
        self.0.replace(Some(kept));
        Ok(took)
    }
}

/// The workspace is the sandbox's own; what differs from exec to exec comes later.
fn keep(stage: &Stage, trial: &Trial) -> Result<KeptNative> {
    let spec = Spec {
        work: tree(&trial.work),
        inputs: Place::Empty,
        ..later(stage)
    };
    let mut kept = native::seat()?.keep(&spec, &stage.state())?;
    kept.settle(Instant::now() + SETTLING)?;
    Ok(kept)
}

/// The processes of one that waits beside another, so that what both share counts as neither's. Their
/// keepers come from a spawner, as a server's do: one forked from here would seem to own every page
/// that this process changes afterwards.
pub(super) fn idle(
    stage: &Stage,
    spawner: &Spawner,
    ahead: Ahead,
    payload: Payload,
) -> Result<Vec<Memory>> {
    let trial = Trial::new(stage, payload)?;
    let stand = |number: u8| {
        let mut native = Native::spawn(&Ground::look(), spawner)?;
        native.reserve(&format!("glovebox-bench-{}-{number}", spawner.pid()))?;
        warm(native, stage, ahead, &trial, payload)
    };
    let (other, one) = (stand(0)?, stand(1)?);
    let found = one.pids().into_iter().filter_map(process::memory).collect();
    drop((one.dismiss(), other.dismiss()));
    Ok(found)
}
