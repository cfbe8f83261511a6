//! Everything that is measured, in the order of the table.

use std::ffi::OsString;
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};
use serde::Serialize;

use crate::command::{Environment, Invocation};
use crate::interrupt::Interrupt;
use crate::kept::KeptSandbox;
use crate::native::{self, ClockStart, Limiter};
use crate::payload::Payload;
use crate::peer::{Absent, Availability, Peer};
use crate::setup::Setup;
use crate::warm::{self, Preparation};

/// What a row is when rows are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program itself, without any sandbox.
    Baseline,
    /// The start of our own command.
    Start,
    /// The native sandbox alone.
    Native,
    /// The same with its keeper's fork.
    NativeFork,
    /// The same with a control group.
    NativeGroup,
    /// A sandbox that was made before its program was known, with its limits in force.
    Warm,
    /// The same with the payload's interpreter started.
    Interpreter,
    /// One sandbox for all runs, with its limits in force.
    Kept,
    /// `glovebox run`, from shell to shell, ledger durable.
    Run,
    Peer(Peer),
}

#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) role: Role,
    pub(crate) payload: Payload,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Command(Invocation),
    Native(ClockStart, Limiter),
    Warm(Preparation),
    Kept(Box<KeptSandbox>),
}

impl Contender {
    fn command(role: Role, payload: Payload, invocation: Invocation) -> Self {
        let action = Action::Command(invocation);
        Self {
            role,
            payload,
            action,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.role {
            Role::Baseline => "vfork+exec",
            Role::Start => "glovebox --version",
            Role::Native => "native",
            Role::NativeFork => "native + fork",
            Role::NativeGroup => "native + cgroup",
            Role::Warm => "warm native",
            Role::Interpreter => match self.payload {
                Payload::Node => "warm node",
                Payload::Python | Payload::True => "warm python",
            },
            Role::Kept => "kept native",
            Role::Run => "glovebox run",
            Role::Peer(peer) => peer.name(),
        }
    }

    pub(crate) fn what(&self) -> &'static str {
        match self.role {
            Role::Baseline => "the program itself, no sandbox",
            Role::Start => "what our own command costs before it does anything",
            Role::Native => {
                "engine side: keeper ready, from the plan to the result; limits supervised"
            }
            Role::NativeFork => {
                "the same from before its keeper is forked and the host is looked at"
            }
            Role::NativeGroup => "as native, with its control groups made, entered and removed",
            Role::Warm => {
                "engine side: idle in its control group; from its directories to the result"
            }
            Role::Interpreter => "the same, its interpreter started and waiting for code",
            Role::Kept => "engine side: the same sandbox each time, until the next run could begin",
            Role::Run => {
                "whole command, ledger durable, limits by control group where there is one"
            }
            Role::Peer(peer) => peer.what(),
        }
    }

    /// The command line; empty for what runs inside this process.
    pub(crate) fn argv(&self) -> Vec<String> {
        match &self.action {
            Action::Native(..) | Action::Warm(_) | Action::Kept(_) => Vec::new(),
            Action::Command(invocation) => invocation
                .argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        }
    }

    pub(crate) fn invocation(&self) -> Option<&Invocation> {
        match &self.action {
            Action::Native(..) | Action::Warm(_) | Action::Kept(_) => None,
            Action::Command(invocation) => Some(invocation),
        }
    }

    pub(crate) fn measure(&self, setup: &Setup, interrupt: &Interrupt) -> Result<Duration> {
        match &self.action {
            Action::Command(invocation) => invocation.measure(interrupt),
            Action::Native(start, limiter) => {
                native::measure(setup, (*start, *limiter), self.payload, interrupt)
            }
            Action::Warm(preparation) => {
                warm::measure(setup, *preparation, self.payload, interrupt)
            }
            Action::Kept(kept) => kept.measure(setup, self.payload, interrupt),
        }
    }
}

/// All contenders, and the peers that cannot be measured.
pub(crate) fn gather(
    setup: &Setup,
    peers: &[Peer],
    interrupt: &Interrupt,
) -> Result<(Vec<Contender>, Vec<Absent>)> {
    let own = std::env::current_exe().map_err(|error| {
        let message = "cannot find this very program to measure it";
        Error::new(Code::Internal, Stage::Parse, message).caused_by(error)
    })?;
    let (mut contenders, mut absent) = (Vec::new(), Vec::new());
    for payload in Payload::ALL.into_iter().filter(|it| it.is_installed()) {
        contenders.extend(ours(&own.clone().into_os_string(), setup, payload));
        for peer in peers {
            match peer.find(setup, payload, interrupt)? {
                Availability::Ready(invocation) => {
                    contenders.push(Contender::command(Role::Peer(*peer), payload, *invocation));
                }
                Availability::Absent(missing) if payload == Payload::True => absent.push(missing),
                Availability::Absent(_) | Availability::NotCompared => {}
            }
        }
    }
    Ok((contenders, absent))
}

fn ours(own: &OsString, setup: &Setup, payload: Payload) -> Vec<Contender> {
    let invocation = |argv: Vec<OsString>, expected| Invocation {
        argv,
        expected,
        environment: Environment::Empty,
        directory: setup.work(),
        inherited: None,
        container: None,
    };
    let plain: Vec<OsString> = payload.argv().into_iter().map(OsString::from).collect();
    let baseline = invocation(plain.clone(), payload.expected());
    let mut whole: Vec<OsString> = vec![own.clone(), "--state-dir".into(), setup.state().into()];
    whole.extend(["--quiet", "run", "--"].map(OsString::from));
    whole.extend(plain);
    let inside = |role, action| Contender {
        role,
        payload,
        action,
    };
    let native = |role, start, limiter| inside(role, Action::Native(start, limiter));
    let mut found = vec![
        Contender::command(Role::Baseline, payload, baseline),
        native(Role::Native, ClockStart::KeeperReady, Limiter::Supervised),
        inside(Role::Warm, Action::Warm(Preparation::Plain)),
    ];
    if payload.language().is_some() {
        found.push(inside(
            Role::Interpreter,
            Action::Warm(Preparation::Interpreter),
        ));
    }
    found.push(inside(Role::Kept, Action::Kept(Box::default())));
    if payload == Payload::True {
        found.extend([
            native(
                Role::NativeFork,
                ClockStart::BeforeFork,
                Limiter::Supervised,
            ),
            native(
                Role::NativeGroup,
                ClockStart::KeeperReady,
                Limiter::ControlGroup,
            ),
        ]);
        let version = invocation(vec![own.clone(), "--version".into()], VERSION);
        found.push(Contender::command(Role::Start, payload, version));
    }
    let whole = invocation(whole, payload.expected());
    found.push(Contender::command(Role::Run, payload, whole));
    found
}

const VERSION: &str = concat!("glovebox ", env!("CARGO_PKG_VERSION"), "\n");

/// One contender of a [`Listing`].
#[derive(Debug, Serialize)]
pub struct Listed {
    pub name: &'static str,
    pub what: &'static str,
    pub payload: Payload,
    pub argv: Vec<String>,
}

/// What would be measured.
#[derive(Debug, Serialize)]
pub struct Listing {
    pub contenders: Vec<Listed>,
    pub absent: Vec<Absent>,
}

impl Listing {
    pub(crate) fn new(contenders: &[Contender], absent: Vec<Absent>) -> Self {
        let contenders = contenders.iter().map(|contender| Listed {
            name: contender.name(),
            what: contender.what(),
            payload: contender.payload,
            argv: contender.argv(),
        });
        Self {
            contenders: contenders.collect(),
            absent,
        }
    }
}
