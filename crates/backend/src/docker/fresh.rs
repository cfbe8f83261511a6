//! A container for one exec: made with its command, started once, removed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use glovebox_model::{Code, Error, Isolation, Profile, Result, Stage, Usage};

use super::attend::{Attend, attend};
use super::cli::{Cli, unreachable};
use super::controls::DETACH_KEYS;
use super::create::Blueprint;
use super::ending::{ended, lost, refusal};
use super::engine::{Engine, Removal};
use super::environment::{Environment, text};
use super::guard::Guarded;
use super::inspect::{self, State};
use super::name::{ContainerName, Labels};
use super::place::Places;
use crate::ended::{Ended, Ending};
use crate::sandbox::{Run, Sandbox, TeardownGuard, no_secrets};
use crate::spec::Order;

/// From the end of its time to when the engine ends it, if none of us has.
const BACKSTOP: Duration = Duration::from_secs(2);

/// Everything about a container but its command.
#[derive(Debug)]
pub(super) struct Design {
    pub(super) engine: Arc<Engine>,
    pub(super) cli: Cli,
    pub(super) name: ContainerName,
    pub(super) labels: Labels,
    pub(super) profile: Profile,
    pub(super) image: String,
    pub(super) runtime: Option<String>,
    pub(super) cpus: u32,
    pub(super) largest_file: Option<u64>,
    pub(super) places: Places,
    pub(super) filter: Option<PathBuf>,
    pub(super) isolation: Isolation,
}

impl Design {
    pub(super) fn blueprint<'a>(
        &'a self,
        environment: &'a Environment,
        argv: &'a [String],
        cwd: &'a str,
        stdin: bool,
    ) -> Blueprint<'a> {
        Blueprint {
            program: self.cli.program,
            settings: &self.engine.settings,
            profile: &self.profile,
            name: &self.name,
            labels: &self.labels,
            image: &self.image,
            runtime: self.runtime.as_deref(),
            cpus: Some(self.cpus).filter(|cpus| *cpus > 0),
            largest_file: self.largest_file,
            user: self.places.user,
            mounts: &self.places.mounts,
            scratch: &self.places.scratch,
            environment,
            filter: self.filter.as_deref(),
            stdin,
            terminal: false,
            deadline: None,
            cwd,
            argv,
        }
    }
}

/// What to run, in words that an engine takes.
pub(super) struct Words<'a> {
    pub(super) argv: Vec<String>,
    pub(super) cwd: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(order: &'a Order) -> Result<Self> {
        let argv = order.argv.iter();
        let argv: Result<Vec<String>> = argv
            .map(|word| text(word, "an argument").map(str::to_owned))
            .collect();
        let argv = argv?;
        if argv.first().is_none_or(String::is_empty) {
            return Err(Error::new(
                Code::CommandNotFound,
                Stage::Run,
                "the command is empty",
            ));
        }
        Ok(Self {
            argv,
            cwd: text(&order.cwd, "the working directory")?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Fresh(pub(super) Design);

impl Fresh {
    fn execute(&self, run: Run<'_>) -> Result<Ended> {
        let design = &self.0;
        let (engine, cli) = (&design.engine, &design.cli);
        let words = Words::new(run.order)?;
        design.places.check_cwd(words.cwd)?;
        let environment = Environment::new(&run.order.env, &engine.settings.config.env)?;
        let stdin = run.stdin.is_some();
        let mut blueprint = design.blueprint(&environment, &words.argv, words.cwd, stdin);
        // Later than the keeper.
        let wall = run.profile.limits.wall_ms.duration();
        blueprint.terminal = run.terminal.is_some();
        blueprint.deadline = Some(wall.saturating_add(BACKSTOP));
        let id = engine.create(cli, &blueprint)?;
        if run.cancel.is_asked() {
            return Ok(never_started());
        }
        let name = design.name.as_str();
        let guard = Guarded::once(engine, cli, name)?;
        let mut start = vec!["start", "--attach"];
        if stdin {
            start.push("--interactive");
        }
        if run.terminal.is_some() {
            start.push(DETACH_KEYS);
        }
        start.push(name);
        let sink = run.sink;
        let mut attended = attend(Attend {
            cli,
            command: cli.command(&start),
            profile: run.profile,
            watched: run.watched,
            stdin: run.stdin,
            terminal: run.terminal,
            control: run.control,
            sink: &mut *sink,
            cancel: run.cancel,
            parents: &engine.parents,
            id: &id,
            standing: false,
            guard: guard.as_ref(),
            term: os(&["kill", "--signal=TERM", name]),
            // Whatever state it is in, paused or half started.
            kill: os(&["rm", "--force", "--volumes", name]),
            signal: os(&["kill", name]),
        })?;
        if attended.status.is_none() {
            engine.orphan(name);
            return Err(unreachable(
                "it did not end the program that it was told to end",
            ));
        }
        let found = inspect::container(cli, name);
        let message = attended.outlets[1].held();
        let state = match found {
            Ok(None) if attended.reason.is_none() => return Err(lost("it is not there any more")),
            Ok(Some(container)) => container.state,
            // Removed by us.
            Ok(None) => State {
                exit_code: 128 + 9,
                ..State::default()
            },
            Err(error) => return Err(error),
        };
        if state.running && attended.reason.is_none() {
            // Detached without an end: the engine went away and came back.
            return Err(unreachable("it let go of a program that still runs"));
        }
        if !state.running {
            guard.into_iter().for_each(Guarded::release);
        }
        if attended.reason.is_none() {
            if !state.was_started() {
                let said = if state.error.is_empty() {
                    &message
                } else {
                    &state.error
                };
                return Err(refusal(said).unwrap_or_else(|| not_started(said)));
            }
            let by_init =
                message.starts_with("[FATAL tini (") || message.starts_with("ERROR (catatonit");
            if let Some(refusal) = refusal(&message).filter(|_| by_init && state.exit_code != 0) {
                return Err(refusal);
            }
        }
        for outlet in &mut attended.outlets {
            outlet.release(sink);
        }
        let code = i32::try_from(state.exit_code).unwrap_or(255);
        let lasted = state.lasted().unwrap_or(attended.lasted).max(attended.seen);
        let (limits, oom) = (&run.profile.limits, state.oom_killed);
        Ok(ended(&attended, code, oom, limits, lasted))
    }
}

/// Canceled while the container was made: it is removed, and its program was never there.
fn never_started() -> Ended {
    Ended {
        ending: Ending::Canceled,
        signal: None,
        limit_hit: None,
        duration: Duration::ZERO,
        usage: Usage::default(),
        notices_dropped: 0,
    }
}

pub(super) fn not_started(why: &str) -> Error {
    Error::new(
        Code::SetupFailed,
        Stage::Run,
        "the container engine could not start the container",
    )
    .caused_by(super::cli::shorten(why))
}

pub(super) fn os(args: &[&str]) -> Vec<OsString> {
    args.iter().map(OsString::from).collect()
}

impl Sandbox for Fresh {
    fn isolation(&self) -> &Isolation {
        &self.0.isolation
    }

    fn run(self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        let outcome = no_secrets("docker", run.secrets).and_then(|()| self.execute(run));
        let design = self.0;
        if design.engine.is_orphan(design.name.as_str()) {
            // An engine that hangs would only make the next wait too.
            return (outcome, TeardownGuard::nothing());
        }
        let removal = Removal::start(&design.engine, &design.cli, design.name.as_str());
        (outcome, TeardownGuard::of(removal))
    }

    /// Nothing was made yet.
    fn dismiss(self: Box<Self>) -> TeardownGuard {
        TeardownGuard::nothing()
    }
}
