//! The native sandbox alone: no command to start, no ledger to write.

use std::time::{Duration, Instant};

use glovebox_backend::{
    Ended, Ending, ExecDirs, Ground, Native, Order, Place, Run, Sandbox, SecretFiles, Spec, Tree,
};
use glovebox_engine::{Keeper, Sink};
use glovebox_model::{Access, ByteString, Code, Error, Result, Stage, Stream};
use glovebox_workspace::Dir;

use crate::interrupt::Interrupt;
use crate::payload::Payload;
use crate::process;
use crate::setup::{ENVIRONMENT, Setup};

/// How memory, processes and processors are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limiter {
    /// Watched and by resource limits: no control group is made.
    Supervised,
    /// By a control group, made, entered and removed within the measured time.
    ControlGroup,
}

/// Where the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockStart {
    /// A keeper waits and has prepared what needs no plan; the facts of the host are known.
    KeeperReady,
    /// Before the keeper is forked and the facts of the host are read.
    BeforeFork,
}

/// A keeper that takes long to start would be measured as a slow sandbox.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(2);

/// The time until the result is there.
pub(crate) fn measure(
    setup: &Setup,
    (start, limiter): (ClockStart, Limiter),
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Duration> {
    let trial = Trial::new(setup, payload)?;
    let spec = spec(
        setup,
        tree(&trial.work),
        Place::Empty,
        tree(&trial.artifacts),
    );
    let mut output = Output::default();

    let mut started = Instant::now();
    let keeper = Keeper::fork().map_err(|errno| failed(&errno))?;
    let group = group(&keeper);
    if start == ClockStart::KeeperReady {
        wait_for(&keeper)?;
    }
    let mut native = Native::new(&Ground::look(), keeper);
    if start == ClockStart::KeeperReady {
        started = Instant::now();
    }
    if limiter == Limiter::ControlGroup {
        native.reserve(&group)?;
    }
    let prepared = Box::new(native.open(&spec, &setup.state())?);
    let watched = [&trial.work];
    let (ended, remains) = prepared.run(trial.run(setup, &watched, &mut output, interrupt));
    // What the kernel removes afterwards is not waited for by the caller of an exec.
    let took = started.elapsed();
    drop(remains);
    interrupt.check()?;
    trial.check(ended, &output).map(|()| took)
}

/// A keeper that is ready, in a control group of its own.
pub(crate) fn ready_in_group() -> Result<Native> {
    let keeper = Keeper::fork().map_err(|errno| failed(&errno))?;
    let group = group(&keeper);
    wait_for(&keeper)?;
    let mut native = Native::new(&Ground::look(), keeper);
    native.reserve(&group)?;
    Ok(native)
}

fn group(keeper: &Keeper) -> String {
    format!("glovebox-bench-{}", keeper.keeper_pid())
}

/// The keeper's own start is not part of an exec: waits until it sleeps in its socket.
fn wait_for(keeper: &Keeper) -> Result<()> {
    let deadline = Instant::now() + KEEPER_TIMEOUT;
    while !process::is_asleep(keeper.keeper_pid(), "glovebox-keeper") {
        if Instant::now() > deadline {
            return Err(failed(&"the keeper does not come up"));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// A sandbox with these directories and nothing else of the host's.
pub(crate) fn spec<'dir>(
    setup: &'dir Setup,
    work: Place<'dir>,
    inputs: Place<'dir>,
    artifacts: Place<'dir>,
) -> Spec<'dir> {
    Spec {
        profile: setup.profile(),
        work,
        inputs,
        artifacts,
        home: None,
        image: None,
        toolchains: Vec::new(),
        links: Vec::new(),
        caches: Vec::new(),
        mounts: Vec::new(),
        masked: Vec::new(),
        largest_file: None,
        trust: None,
        secrets: SecretFiles::Never,
        observe: None,
    }
}

/// One run of a payload.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) work: Dir,
    artifacts: Dir,
    pub(crate) order: Order,
    payload: Payload,
}

impl Trial {
    pub(crate) fn new(setup: &Setup, payload: Payload) -> Result<Self> {
        Ok(Self {
            work: directory(&setup.work())?,
            artifacts: directory(&setup.artifacts())?,
            order: order(payload),
            payload,
        })
    }

    /// For a sandbox that was made before this run was known.
    pub(crate) fn room(&self) -> ExecDirs<'_> {
        ExecDirs {
            work: Some(&self.work),
            inputs: None,
            artifacts: &self.artifacts,
        }
    }

    pub(crate) fn run<'run>(
        &'run self,
        setup: &'run Setup,
        watched: &'run [&'run Dir],
        output: &'run mut Output,
        interrupt: &'run Interrupt,
    ) -> Run<'run> {
        Run {
            order: &self.order,
            profile: setup.profile(),
            watched,
            stdin: None,
            terminal: None,
            secrets: &[],
            sink: output,
            cancel: interrupt.cancel(),
            control: None,
        }
    }

    /// Fails unless the program ended with 0 and printed what it should.
    pub(crate) fn check(&self, ended: Result<Ended>, output: &Output) -> Result<()> {
        let ended = ended?;
        let expected = self.payload.expected().as_bytes();
        if ended.ending == (Ending::Exited { code: 0 }) && output.0 == expected {
            return Ok(());
        }
        let printed = String::from_utf8_lossy(&output.0).into_owned();
        Err(failed(&format!(
            "{:?}, and it printed `{printed}`",
            ended.ending
        )))
    }
}

fn directory(path: &std::path::Path) -> Result<Dir> {
    Dir::open_trusted(path).map_err(|error| failed(&error))
}

pub(crate) fn tree(directory: &Dir) -> Place<'_> {
    Place::Tree(Tree {
        directory,
        access: Access::Rw,
    })
}

fn order(payload: Payload) -> Order {
    let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
    Order {
        argv: payload.argv().into_iter().map(text).collect(),
        env: ENVIRONMENT
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect(),
        cwd: text("/workspace/work"),
        path: vec![text("/usr/bin"), text("/bin")],
    }
}

pub(crate) fn failed(cause: &dyn std::fmt::Display) -> Error {
    let message = "the native sandbox failed";
    Error::new(Code::SetupFailed, Stage::Run, message).caused_by(cause)
}

/// The standard output of a run.
#[derive(Debug, Default)]
pub(crate) struct Output(Vec<u8>);

impl Sink for Output {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout {
            self.0.extend_from_slice(bytes);
        }
    }
}
