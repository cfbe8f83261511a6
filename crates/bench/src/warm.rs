//! Warm sandboxes: made before their program is known, with their limits in force, and used once.

use std::time::{Duration, Instant};

use glovebox_backend::{Ground, Native, Place, Preload, Sandbox, Warm};
use glovebox_engine::Spawner;
use glovebox_model::{Access, Result};

use crate::interrupt::Interrupt;
use crate::native::{self, Output, Trial, failed};
use crate::payload::Payload;
use crate::process::{self, ProcessMemory};
use crate::setup::Setup;

/// An interpreter takes a few dozen milliseconds to start; a host under load more.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(10);

/// What was started in a warm sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// Pid 1, for any program.
    Plain,
    /// The payload's interpreter, for its code.
    Interpreter,
}

/// The time from a warm sandbox to the result: checked, given its directories, run.
pub(crate) fn measure(
    setup: &Setup,
    preparation: Preparation,
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Duration> {
    let trial = Trial::new(setup, payload)?;
    let mut output = Output::default();
    let mut warm = start(
        native::ready_in_group()?,
        setup,
        preparation,
        &trial,
        payload,
    )?;

    let started = Instant::now();
    if !warm.is_alive() {
        return Err(failed(&"it died before it was used"));
    }
    let bound = Box::new(warm.bind(&trial.room())?);
    let watched = [&trial.work];
    let (ended, remains) = bound.run(trial.run(setup, &watched, &mut output, interrupt));
    let took = started.elapsed();
    drop(remains);
    interrupt.check()?;
    trial.check(ended, &output).map(|()| took)
}

/// As the pool makes them: all directories come with the exec.
fn start(
    native: Native,
    setup: &Setup,
    preparation: Preparation,
    trial: &Trial,
    payload: Payload,
) -> Result<Warm> {
    let (writable, readable) = (Place::Later(Access::Rw), Place::Later(Access::Ro));
    let spec = native::spec(setup, writable, readable, Place::Later(Access::Rw));
    let preload = match (preparation, payload.language()) {
        (Preparation::Interpreter, Some(language)) => Some(Preload {
            language,
            command: trial.order.argv.first().cloned().unwrap_or_default(),
            env: trial.order.env.clone(),
            path: trial.order.path.clone(),
        }),
        (Preparation::Interpreter, None) => return Err(failed(&"it has no interpreter")),
        (Preparation::Plain, _) => None,
    };
    let mut warm = native.warm(&spec, &setup.state(), preload)?;
    warm.settle(Instant::now() + START_TIMEOUT)?;
    Ok(warm)
}

/// The processes of an idle warm sandbox. Another one is idle beside it, so that pages which both
/// share count as neither's. Their keepers come from a spawner, as a server's do: one forked from
/// this process would seem to own every page that this process changes afterwards.
pub(crate) fn idle_memory(
    setup: &Setup,
    spawner: &Spawner,
    preparation: Preparation,
    payload: Payload,
) -> Result<Vec<ProcessMemory>> {
    let trial = Trial::new(setup, payload)?;
    let start = |number: u8| {
        let mut native = Native::spawn(&Ground::look(), spawner)?;
        native.reserve(&format!("glovebox-bench-{}-{number}", spawner.pid()))?;
        start(native, setup, preparation, &trial, payload)
    };
    let (other, one) = (start(0)?, start(1)?);
    let memory = one.pids().into_iter().filter_map(process::memory).collect();
    drop((one.dismiss(), other.dismiss()));
    Ok(memory)
}
