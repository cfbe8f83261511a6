//! Everything that is measured, in the order of the table.

use std::ffi::OsString;
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage as PathStage};
use serde::Serialize;

use super::command::{Environment, Invocation};
use super::interrupt::Interrupt;
use super::native::{self, Begin, Limiter};
use super::peer::{Absent, Found, Peer};
use super::stage::{Payload, Stage};
use super::standing::{self, Ahead, Standing};

/// What a row stands for when rows are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
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
    /// A sandbox that was made ahead, with its limits in force.
    Warm,
    /// The same with the payload's interpreter started.
    Interpreter,
    /// A sandbox that stands from run to run, with its limits in force.
    Kept,
    /// `glovebox run`, from shell to shell, ledger durable.
    Run,
    Peer(Peer),
}

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) role: Role,
    pub(super) payload: Payload,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Command(Invocation),
    Native(Begin, Limiter),
    Warm(Ahead),
    Kept(Box<Standing>),
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

    pub(super) fn name(&self) -> &'static str {
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

    pub(super) fn what(&self) -> &'static str {
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
                "engine side: it stands in its control group; from its directories to the result"
            }
            Role::Interpreter => "the same, its interpreter started and waiting for code",
            Role::Kept => "engine side: the same sandbox each time, until the next run could begin",
            Role::Run => {
                "whole command, ledger durable, limits by control group where there is one"
            }
            Role::Peer(peer) => peer.what(),
        }
    }

    /// What a reader can type; empty for what happens inside this process.
    pub(super) fn argv(&self) -> Vec<String> {
        match &self.action {
            Action::Native(..) | Action::Warm(_) | Action::Kept(_) => Vec::new(),
            Action::Command(invocation) => invocation
                .argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        }
    }

    pub(super) fn invocation(&self) -> Option<&Invocation> {
        match &self.action {
            Action::Native(..) | Action::Warm(_) | Action::Kept(_) => None,
            Action::Command(invocation) => Some(invocation),
        }
    }

    pub(super) fn measure(&self, stage: &Stage, interrupt: &Interrupt) -> Result<Duration> {
        match &self.action {
            Action::Command(invocation) => invocation.measure(interrupt),
            Action::Native(begin, limiter) => {
                native::measure(stage, (*begin, *limiter), self.payload, interrupt)
            }
            Action::Warm(ahead) => standing::measure_warm(stage, *ahead, self.payload, interrupt),
            Action::Kept(standing) => standing.measure(stage, self.payload, interrupt),
        }
    }
}

/// All that take part, and the peers that cannot.
pub(super) fn gather(
    stage: &Stage,
    peers: &[Peer],
    interrupt: &Interrupt,
) -> Result<(Vec<Contender>, Vec<Absent>)> {
    let own = std::env::current_exe().map_err(|error| {
        let message = "cannot find this very program to measure it";
        Error::new(Code::Internal, PathStage::Parse, message).caused_by(error)
    })?;
    let (mut contenders, mut absent) = (Vec::new(), Vec::new());
    for payload in Payload::ALL.into_iter().filter(|it| it.is_here()) {
        contenders.extend(ours(&own.clone().into_os_string(), stage, payload));
        for peer in peers {
            match peer.find(stage, payload, interrupt)? {
                Found::Ready(invocation) => {
                    contenders.push(Contender::command(Role::Peer(*peer), payload, *invocation));
                }
                Found::Absent(missing) if payload == Payload::True => absent.push(missing),
                Found::Absent(_) | Found::Silent => {}
            }
        }
    }
    Ok((contenders, absent))
}

fn ours(own: &OsString, stage: &Stage, payload: Payload) -> Vec<Contender> {
    let invocation = |argv: Vec<OsString>, expected| Invocation {
        argv,
        expected,
        environment: Environment::Empty,
        directory: stage.work(),
        inherited: None,
        within: None,
    };
    let plain: Vec<OsString> = payload.argv().into_iter().map(OsString::from).collect();
    let baseline = invocation(plain.clone(), payload.expected());
    let mut whole: Vec<OsString> = vec![own.clone(), "--state-dir".into(), stage.state().into()];
    whole.extend(["--quiet", "run", "--"].map(OsString::from));
    whole.extend(plain);
    let inside = |role, action| Contender {
        role,
        payload,
        action,
    };
    let native = |role, begin, limiter| inside(role, Action::Native(begin, limiter));
    let mut found = vec![
        Contender::command(Role::Baseline, payload, baseline),
        native(Role::Native, Begin::Keeper, Limiter::Supervised),
        inside(Role::Warm, Action::Warm(Ahead::Plain)),
    ];
    if payload.language().is_some() {
        found.push(inside(Role::Interpreter, Action::Warm(Ahead::Interpreter)));
    }
    found.push(inside(Role::Kept, Action::Kept(Box::default())));
    if payload == Payload::True {
        found.extend([
            native(Role::NativeFork, Begin::Nothing, Limiter::Supervised),
            native(Role::NativeGroup, Begin::Keeper, Limiter::ControlGroup),
        ]);
        let version = invocation(vec![own.clone(), "--version".into()], VERSION);
        found.push(Contender::command(Role::Start, payload, version));
    }
    let whole = invocation(whole, payload.expected());
    found.push(Contender::command(Role::Run, payload, whole));
    found
}

const VERSION: &str = concat!("glovebox ", env!("CARGO_PKG_VERSION"), "\n");
