//! `glovebox session start`, and how a session is started by whatever command.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use glovebox_api::{ExecRequest, SessionInfo, SessionOptions, SessionOutput};
use glovebox_engine::Dispatcher;
use glovebox_model::{Code, Error, Program, Result, Stage, Status, WorkspaceRef};

use super::approver;
use super::at_terminal::{AtTerminal, run_at_terminal};
use crate::args::{Global, LifeOptions, RunOptions, SessionStartArgs};
use crate::commands::execute::{call, tell_end};
use crate::commands::run::program;
use crate::context::Context;
use crate::exit::Exit;
use crate::progress_meter::ProgressLine;
use crate::sessions::{Sessions, bytes_of};
use crate::terminal_filter::{Passing, TerminalFilter};
use crate::{render, stdout};

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
    let asked = SessionOptions {
        terminal: match (args.terminal, args.no_terminal) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        size: args.size,
        yield_ms: args.yield_ms,
        ..SessionOptions::default()
    };
    let no_wait = options.exec.no_wait;
    let begun = begin(global, options, &args.life, asked, program)?;
    tell(global, begun, no_wait)
}

fn tell(global: &Global, begun: Begun, no_wait: bool) -> Result<Exit> {
    let info = begun.output.session.clone();
    let waits = begun.waits_for_people(global, no_wait)?;
    let Begun {
        sessions, output, ..
    } = begun;
    if global.json {
        stdout::json(&output)?;
    } else {
        stdout::text(&format!("{}\n", info.session_id))?;
        if !global.quiet {
            let mut filter = TerminalFilter::new(Passing::Text);
            let mut first = filter.pass(&bytes_of(output.stdout)?);
            first.extend(filter.pass(&bytes_of(output.stderr)?));
            first.extend(filter.reset());
            // The first words are a courtesy.
            let _ = std::io::stderr().write_all(&first);
        }
    }
    if waits {
        return Ok(Exit::WAITING);
    }
    if !info.state.is_final() {
        return Ok(Exit::SUCCESS);
    }
    let record = sessions.record(&info.session_id)?;
    tell_end(global, &record);
    Ok(Exit::of_record(&record))
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

impl Begun {
    /// Asks the person at this terminal where they may answer. Whether it goes on waiting.
    pub(super) fn waits_for_people(&self, global: &Global, no_wait: bool) -> Result<bool> {
        let info = &self.output.session;
        if info.status == Status::AwaitingApproval
            && let (Some(dispatcher), false) = (&self.dispatcher, no_wait)
            && approver::ask(dispatcher, &self.sessions.record(&info.session_id)?)?
        {
            return Ok(false);
        }
        waits_for_people(global, &self.sessions, info)
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
