//! What every backend gives: a sandbox that is one exec's, and one that is kept for many.

use std::any::Any;
use std::fmt;
use std::os::fd::OwnedFd;

use glovebox_cage::WayOut;
use glovebox_model::{Code, Error, Isolation, Profile, Result, Stage, TerminalSize};
use glovebox_workspace::Dir;

use crate::ended::Ended;
use crate::notice::Observation;
use crate::spec::{ExecDirs, Order, Secret, Spec};
use crate::streams::{Cancel, Control, Sink};

/// One run: what, how far it may go, and who hears of it.
#[expect(missing_debug_implementations, reason = "a sink has nothing to show")]
pub struct Run<'run> {
    pub order: &'run Order,
    pub profile: &'run Profile,
    /// Directories on disk that it may write, counted together against the disk limit.
    pub watched: &'run [&'run Dir],
    /// What it reads, or what is typed on its terminal.
    pub stdin: Option<OwnedFd>,
    /// Its streams are one then: all that it puts out is standard output.
    pub terminal: Option<TerminalSize>,
    /// What this run is given, as files or descriptors, and no other run.
    pub secrets: &'run [Secret<'run>],
    pub sink: &'run mut dyn Sink,
    pub cancel: &'run Cancel,
    pub control: Option<&'run Control>,
}

/// A sandbox that is one exec's alone, standing or being built.
pub trait Sandbox: fmt::Debug + Send {
    /// What is enforced in it.
    fn isolation(&self) -> &Isolation;

    /// The sockets by which alone it reaches anything, where its profile grants a network. Whoever
    /// takes them serves them until the run is over; unserved they lead nowhere. Waits until the
    /// sandbox stands; once only.
    fn way_out(&mut self) -> Result<Option<WayOut>> {
        Ok(None)
    }

    /// What observes it beside its notices, where its spec asks for it. Waits until the sandbox
    /// stands; once only.
    fn observation(&mut self) -> Result<Option<Observation>> {
        Ok(None)
    }

    /// Runs the order and stays until no process of the sandbox is left. What still has to be taken
    /// apart goes on in the background until the second value is dropped.
    fn run(self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard);

    /// It is not needed after all.
    fn dismiss(self: Box<Self>) -> TeardownGuard;
}

/// A sandbox that stands between execs and takes one at a time. Dropping it ends what runs in it
/// and nothing else: a container stays.
pub trait Kept: fmt::Debug + Send {
    fn isolation(&self) -> &Isolation;

    /// As of a fresh sandbox: once only, and they are the same for all its runs.
    fn way_out(&mut self) -> Result<Option<WayOut>> {
        Ok(None)
    }

    /// Looked at before each use.
    fn is_alive(&mut self) -> bool;

    /// As of a fresh sandbox: when it returns, no process of this run is left, but the sandbox
    /// stands. An error that is not the program's may leave it dead.
    fn run(&mut self, room: ExecDirs<'_>, run: Run<'_>) -> Result<Ended>;

    /// Takes the sandbox down, with everything that only it had.
    fn close(self: Box<Self>) -> TeardownGuard;
}

/// A backend that has no place for secrets must not run without them.
pub(crate) fn no_secrets(backend: &str, secrets: &[Secret<'_>]) -> Result<()> {
    match secrets.first() {
        None => Ok(()),
        Some(secret) => Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!(
                "the `{backend}` backend cannot give the secret `{}` as a file or descriptor",
                secret.name
            ),
        )
        .hint("use the `native` backend: `--backend native`")),
    }
}

/// A backend that cannot look must not run as if it did.
pub(crate) fn no_observation(backend: &str, spec: &Spec<'_>) -> Result<()> {
    match spec.observe {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!("the `{backend}` backend cannot observe what a program does"),
        )
        .hint("use the `native` backend, or run it without simulating")),
    }
}

/// A program that is talked to must not run where signals and sizes do not reach it.
pub(crate) fn no_session(backend: &str, run: &Run<'_>) -> Result<()> {
    if run.control.is_none() && run.terminal.is_none() {
        return Ok(());
    }
    Err(Error::new(
        Code::BackendUnavailable,
        Stage::Run,
        format!("the `{backend}` backend keeps no sessions yet"),
    )
    .hint("use the `native` backend, or run each command as an exec of its own"))
}

/// Something on its way out. Dropping it waits until it is gone.
pub struct TeardownGuard(
    #[expect(dead_code, reason = "held to be dropped")] Option<Box<dyn Any + Send>>,
);

impl TeardownGuard {
    pub fn of(rest: impl Any + Send) -> Self {
        Self(Some(Box::new(rest)))
    }

    pub fn nothing() -> Self {
        Self(None)
    }
}

impl fmt::Debug for TeardownGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remains")
    }
}
