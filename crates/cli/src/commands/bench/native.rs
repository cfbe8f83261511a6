//! The native sandbox alone: no command to start, no ledger to write.

use std::time::{Duration, Instant};

use glovebox_backend::{
    Ended, Ending, Ground, Native, Order, Place, Room, Run, Sandbox, Spec, Tree,
};
use glovebox_engine::{Keeper, Sink, Stream};
use glovebox_model::{Access, ByteString, Code, Error, Result, Stage as PathStage};
use glovebox_workspace::Dir;

use super::interrupt::Interrupt;
use super::process;
use super::stage::{ENVIRONMENT, Payload, Stage};

/// How memory, processes and processors are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limiter {
    /// Watched and by resource limits: no control group is made.
    Supervised,
    /// By a control group, made, entered and removed within the measured time.
    ControlGroup,
}

/// Where the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// A keeper waits, with whatever it prepares before it knows its plan; the host is known.
    Keeper,
    /// Nothing is there yet: the keeper is forked and the host is looked at.
    Nothing,
}

/// A long settling keeper would be measured as a slow sandbox.
const SETTLING: Duration = Duration::from_secs(2);

/// Until nothing of the sandbox is left.
pub(super) fn measure(
    stage: &Stage,
    (begin, limiter): (Begin, Limiter),
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Duration> {
    let trial = Trial::new(stage, payload)?;
    let spec = Spec {
        profile: stage.profile(),
        work: tree(&trial.work),
        inputs: Place::Empty,
        artifacts: tree(&trial.artifacts),
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
    };
    let mut output = Output::default();

    let mut started = Instant::now();
    let keeper = Keeper::fork().map_err(|errno| failed(&errno))?;
    let group = group(&keeper);
    if begin == Begin::Keeper {
        settle(&keeper)?;
    }
    let mut native = Native::new(&Ground::look(), keeper);
    if begin == Begin::Keeper {
        started = Instant::now();
    }
    if limiter == Limiter::ControlGroup {
        native.reserve(&group)?;
    }
    let prepared = Box::new(native.open(&spec, &stage.state())?);
    let watched = [&trial.work];
    let (ended, remains) = prepared.run(trial.run(stage, &watched, &mut output, interrupt));
    // Until the result is there; what the kernel tidies up afterwards goes on without the caller.
    let took = started.elapsed();
    drop(remains);
    interrupt.check()?;
    trial.judge(ended, &output).map(|()| took)
}

/// A keeper that has settled, in a control group of its own.
pub(super) fn seat() -> Result<Native> {
    let keeper = Keeper::fork().map_err(|errno| failed(&errno))?;
    let group = group(&keeper);
    settle(&keeper)?;
    let mut native = Native::new(&Ground::look(), keeper);
    native.reserve(&group)?;
    Ok(native)
}

fn group(keeper: &Keeper) -> String {
    format!("glovebox-bench-{}", keeper.keeper_pid())
}

/// The keeper's own start is not part of an exec: wait until it sleeps in its socket.
fn settle(keeper: &Keeper) -> Result<()> {
    let deadline = Instant::now() + SETTLING;
    while !process::sleeps_as(keeper.keeper_pid(), "glovebox-keeper") {
        if Instant::now() > deadline {
            return Err(failed(&"the keeper does not come up"));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// One run of what everybody runs.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) work: Dir,
    artifacts: Dir,
    pub(super) order: Order,
    payload: Payload,
}

impl Trial {
    pub(super) fn new(stage: &Stage, payload: Payload) -> Result<Self> {
        Ok(Self {
            work: directory(&stage.work())?,
            artifacts: directory(&stage.artifacts())?,
            order: order(payload),
            payload,
        })
    }

    /// For a sandbox that stood before this run was known.
    pub(super) fn room(&self) -> Room<'_> {
        Room {
            work: Some(&self.work),
            inputs: None,
            artifacts: &self.artifacts,
        }
    }

    pub(super) fn run<'run>(
        &'run self,
        stage: &'run Stage,
        watched: &'run [&'run Dir],
        output: &'run mut Output,
        interrupt: &'run Interrupt,
    ) -> Run<'run> {
        Run {
            order: &self.order,
            profile: stage.profile(),
            watched,
            stdin: None,
            secrets: &[],
            sink: output,
            cancel: interrupt.cancel(),
        }
    }

    /// It counts only if the program did what it should.
    pub(super) fn judge(&self, ended: Result<Ended>, output: &Output) -> Result<()> {
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

pub(super) fn tree(directory: &Dir) -> Place<'_> {
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

pub(super) fn failed(cause: &dyn std::fmt::Display) -> Error {
    let message = "the native sandbox failed";
    Error::new(Code::SetupFailed, PathStage::Run, message).caused_by(cause)
}

#[derive(Debug, Default)]
pub(super) struct Output(Vec<u8>);

impl Sink for Output {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout {
            self.0.extend_from_slice(bytes);
        }
    }
}
