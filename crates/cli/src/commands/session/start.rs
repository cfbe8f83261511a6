//! `glovebox session start`, and how a session is started by whatever command.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_api::{ExecRequest, SessionInfo, SessionOptions, SessionOutput};
use glovebox_engine::Dispatcher;
use glovebox_model::{Code, Error, ExecId, Program, Result, Stage, Status, WorkspaceRef};

use super::approver::{self, Asked};
use super::at_terminal::{AtTerminal, run_at_terminal};
use crate::args::{Global, LifeOptions, RunOptions, SessionStartArgs};
use crate::commands::execute::{call, tell_end};
use crate::commands::run::program;
use crate::context::Context;
use crate::exit::Exit;
use crate::progress_meter::ProgressLine;
use crate::sessions::{From, Sessions, bytes_of};
use crate::terminal_filter::{Passing, TerminalFilter};
use crate::{interrupt, render, stdout};

/// How long the first output is waited for if nothing is said, and how often it is looked for.
const YIELD: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(global: &Global, args: SessionStartArgs) -> Result<Exit> {
    let program = program(args.command)?;
    let options = args.what.run_options();
    if options.exec.stdin {
        return Err(refused("--stdin")
            .hint("`glovebox session send SESSION -` types standard input into it"));
    }
    if args.attach {
        return run_at_terminal(
            global,
            AtTerminal {
                what: "`--attach`",
                options,
                life: args.life,
                detach: args.detach.detach_key,
                program,
            },
        );
    }
    // The id is told before anything is waited for.
    let patience = args.yield_ms.map_or(YIELD, Duration::from_millis);
    let asked = SessionOptions {
        terminal: match (args.terminal, args.no_terminal) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        size: args.size,
        yield_ms: Some(0),
        ..SessionOptions::default()
    };
    let no_wait = options.exec.no_wait;
    let (presses, _asker) = interrupt::presses()?;
    let begun = begin(global, options, &args.life, asked, program)?;
    tell(global, begun, no_wait, (patience, &presses))
}

fn tell(
    global: &Global,
    begun: Begun,
    no_wait: bool,
    (patience, presses): (Duration, &OwnedFd),
) -> Result<Exit> {
    let permitted = begun.permitted(global, no_wait)?;
    if permitted == Permitted::TakenBack {
        return Ok(Exit::CANCELED);
    }
    let Begun {
        sessions,
        mut output,
        ..
    } = begun;
    let id = output.session.session_id.clone();
    if !global.json {
        stdout::text(&format!("{id}\n"))?;
    }
    let mut interrupted = false;
    if permitted == Permitted::Yes {
        (output, interrupted) = first_output(&sessions, &id, patience, presses)?;
    }
    let info = output.session.clone();
    if global.json {
        stdout::json(&output)?;
    } else if !global.quiet {
        let mut filter = TerminalFilter::new(Passing::Text);
        let mut first = filter.pass(&bytes_of(output.stdout)?);
        first.extend(filter.pass(&bytes_of(output.stderr)?));
        first.extend(filter.reset());
        // The first words are a courtesy.
        let _ = std::io::stderr().write_all(&first);
    }
    if permitted == Permitted::Later {
        return Ok(Exit::WAITING);
    }
    if interrupted && !info.state.is_final() {
        render::note(&format!(
            "`{id}` goes on: `glovebox session kill {id}` ends it"
        ));
        return Ok(Exit::CANCELED);
    }
    if !info.state.is_final() {
        return Ok(Exit::SUCCESS);
    }
    let record = sessions.record(&id)?;
    tell_end(global, &record);
    Ok(Exit::of_record(&record))
}

/// As soon as its program waits for input or has ended, and after this long at the latest; whether
/// somebody did not want to wait.
fn first_output(
    sessions: &Sessions,
    id: &ExecId,
    patience: Duration,
    presses: &OwnedFd,
) -> Result<(SessionOutput, bool)> {
    let deadline = Instant::now() + patience;
    loop {
        let output = sessions.output_surely(id, From::default(), Duration::ZERO)?;
        let session = &output.session;
        let has_any = session.stdout.end + session.stderr.end > 0;
        let left = deadline.saturating_duration_since(Instant::now());
        if output.complete || (has_any && session.waiting_for_input) || left.is_zero() {
            return Ok((output, false));
        }
        if interrupt::is_pressed_within(presses, LOOK.min(left)) {
            return Ok((output, true));
        }
    }
}

/// One that was started just now.
pub(super) struct Begun {
    pub(super) sessions: Arc<Sessions>,
    pub(super) output: SessionOutput,
    /// Of this process, when no server has it.
    dispatcher: Option<Arc<Dispatcher>>,
}

/// Starts one on the workspace that was named, or on the current directory.
pub(super) fn begin(
    global: &Global,
    options: RunOptions,
    life: &LifeOptions,
    asked: SessionOptions,
    program: Program,
) -> Result<Begun> {
    refuse_what_is_no_sessions(&options)?;
    let session_time = life.session_time.or(options.exec.timeout);
    let mut call = call(options, program)?;
    // On whose behalf is for the token to say.
    call.ids.user_id = None;
    call.overrides.limits.wall_ms = None;
    call.overrides.limits.session_ms = session_time;
    let context = Context::new(global);
    let (client, dispatcher) = match context.server()? {
        Some(remote) => (remote, None),
        None => {
            let directory = match &call.workspace {
                WorkspaceRef::Adopted(_) => Some(here()?),
                WorkspaceRef::Project(_) | WorkspaceRef::Scratch => None,
            };
            let progress = ProgressLine::new(global);
            let api = context.local_api(directory.as_deref(), &progress)?;
            if let Some(project) = api.project() {
                call.workspace = WorkspaceRef::Project(project.clone());
            }
            let dispatcher = Arc::clone(api.dispatcher());
            (api.client, Some(dispatcher))
        }
    };
    let mut request = ExecRequest::of(call, None)?;
    request.session = Some(asked.ended_when_idle(life.idle_timeout));
    let sessions = Sessions::of(client);
    let output = sessions.start(&request)?;
    Ok(Begun {
        sessions: Arc::new(sessions),
        output,
        dispatcher,
    })
}

fn here() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| {
        let message = "cannot tell where the current directory is";
        Error::new(Code::WorkspaceRefused, Stage::Parse, message)
            .caused_by(error)
            .hint("change into a directory that is there, or use `--project NAME` or `--scratch`")
    })
}

/// What only makes sense for something that is left alone until its end.
fn refuse_what_is_no_sessions(options: &RunOptions) -> Result<()> {
    let (place, exec, simulation) = (&options.place, &options.exec, &options.simulation);
    let odd = [
        (!place.toolchain.is_empty(), "--toolchain"),
        (exec.hold, "--hold"),
        (exec.keep_if_ok, "--keep-if-ok"),
        (simulation.simulate, "--simulate"),
        (simulation.transactional, "--transactional"),
        (simulation.over.is_some(), "--over"),
    ];
    match odd.iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => {
            Err(refused(flag).hint("`glovebox run` without `-t` runs a command with it"))
        }
        None => Ok(()),
    }
}

fn refused(flag: &str) -> Error {
    let message = format!("`{flag}` does not go with a session, whose program is talked to");
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

/// Whether a session may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permitted {
    Yes,
    /// It waits for a person.
    Later,
    /// The person at this terminal took it back; nothing of it is left.
    TakenBack,
}

impl Begun {
    /// Asks the person at this terminal where they may answer. Without a server nobody else can: where
    /// there is nobody to ask it is refused, as a run is.
    pub(super) fn permitted(&self, global: &Global, no_wait: bool) -> Result<Permitted> {
        let info = &self.output.session;
        let id = &info.session_id;
        if info.status == Status::AwaitingApproval
            && let Some(dispatcher) = &self.dispatcher
        {
            let asked = match no_wait {
                true => Asked::Nowhere,
                false => approver::ask(dispatcher, &self.sessions.record(id)?)?,
            };
            match asked {
                Asked::Answered => return Ok(Permitted::Yes),
                Asked::Later => {}
                Asked::Closed => {
                    self.sessions.kill(id)?;
                    return Ok(Permitted::TakenBack);
                }
                Asked::Nowhere => {
                    self.sessions.kill(id)?;
                    let message = "policy asks a person first, and nobody can be asked here";
                    return Err(
                        Error::new(Code::ApprovalUnavailable, Stage::Obtain, message)
                            .hint(
                                "start it at a terminal, without `--no-wait`: you are asked there",
                            )
                            .hint("or at a server, where another person answers")
                            .of_exec(id.clone()),
                    );
                }
            }
        }
        Ok(match waits_for_people(global, &self.sessions, info)? {
            true => Permitted::Later,
            false => Permitted::Yes,
        })
    }
}

/// Tells how to answer, when people are asked first.
pub(super) fn waits_for_people(
    global: &Global,
    sessions: &Sessions,
    info: &SessionInfo,
) -> Result<bool> {
    if info.status != Status::AwaitingApproval {
        return Ok(false);
    }
    let approval = sessions.record(&info.session_id)?.approval_id;
    if let (Some(approval), false) = (approval, global.quiet) {
        let server = Context::new(global).address()?;
        let at = server.map_or(String::new(), |it| format!("--server {it} "));
        render::note(&format!(
            "`{}` waits for a person to answer `{approval}`; another person answers with\n\
             glovebox {at}approval approve {approval}\n\
             glovebox {at}approval deny {approval}",
            info.session_id
        ));
    }
    Ok(true)
}
