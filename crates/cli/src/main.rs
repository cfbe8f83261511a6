//! The `glovebox` command: parse, call the engine, print.

mod approvals;
mod args;
mod attach;
mod change;
mod commands;
mod context;
mod cut_off;
mod effect_line;
mod effect_tool;
mod exit;
mod expiry;
mod fresh_file;
mod human;
mod interrupt;
mod key_values;
mod narrowing;
mod output;
mod paint;
mod patch;
mod progress_meter;
mod prompt;
mod records;
mod render;
mod rewrite;
mod sandboxes;
mod screen;
mod secrets_key;
mod session_keeper;
mod sessions;
mod stdout;
mod stop;
mod table;
mod terminal;
mod terminal_filter;
mod token_admin;
mod workspaces;

use std::process::ExitCode;

use args::{Cli, Command, DoctorArgs, McpVerb, PolicyVerb, SecretVerb, SkillVerb};
use exit::Exit;
use glovebox_model::{Code, Error, Result, Stage};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

fn main() -> ExitCode {
    // Secrets pass through here: a crash must not write them down.
    // Where the kernel refuses even this, no sandbox can be built, and its set-up says so.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_CORE) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, most);
    }
    if effect_tool::is_called() {
        return effect_tool::run();
    }
    if session_keeper::is_called() {
        return session_keeper::run();
    }
    let taken = secrets_key::take();
    let cli = Cli::of_process().unwrap_or_else(|error| refuse(&error));
    let json = cli.global.json;
    let ended = taken
        .and_then(|()| check_server(&cli))
        .and_then(|()| carry_out(cli));
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::error(&error, json);
            Exit::of_error(&error).into()
        }
    }
}

fn carry_out(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Run(run) => commands::run::run(&cli.global, run),
        Command::Code(code) => commands::code::run(&cli.global, code),
        Command::Exec(exec) => commands::exec::run(&cli.global, exec),
        Command::Shell(shell) => commands::shell::run(&cli.global, *shell),
        Command::Session(session) => commands::session::run(&cli.global, session),
        Command::Ps(ps) => commands::ps::run(&cli.global, ps),
        Command::Show(show) => commands::show::run(&cli.global, &show),
        Command::Logs(logs) => commands::logs::run(&cli.global, &logs),
        Command::Cancel(cancel) => commands::cancel::run(&cli.global, &cancel),
        Command::Effects(effects) => commands::effects::show(&cli.global, &effects),
        Command::Diff(changes) => commands::effects::diff(&cli.global, &changes),
        Command::Apply(apply) => commands::effects::apply(&cli.global, &apply),
        Command::Discard(discard) => commands::effects::discard(&cli.global, &discard),
        Command::Serve(serve) => commands::serve::run(&cli.global, &serve),
        Command::Mcp(mcp) => commands::mcp::run(&cli.global, mcp),
        Command::Token(token) => commands::token::run(&cli.global, token),
        Command::Settings(settings) => commands::settings::run(&cli.global, settings),
        Command::Sandbox(sandbox) => commands::sandbox::run(&cli.global, sandbox),
        Command::Workspace(workspace) => commands::workspace::run(&cli.global, workspace),
        Command::Snapshot(snapshot) => commands::snapshot::run(&cli.global, snapshot),
        Command::File(file) => commands::file::run(&cli.global, file),
        Command::Artifact(artifact) => commands::artifact::run(&cli.global, artifact),
        Command::Cache(cache) => commands::cache::run(&cli.global, cache),
        Command::Retrieve(retrieve) => commands::retrieve::run(&cli.global, retrieve),
        Command::Skill(skill) => commands::skill::run(&cli.global, skill),
        Command::Webhook(webhook) => commands::webhook::run(&cli.global, webhook),
        Command::Image(image) => commands::image::run(&cli.global, image),
        Command::Backend(backend) => commands::backend::run(&cli.global, backend),
        Command::Doctor(DoctorArgs {}) => commands::doctor::run(&cli.global),
        Command::Bench(bench) => commands::bench::run(&cli.global, bench),
        Command::Policy(policy) => commands::policy::run(&cli.global, policy),
        Command::Approval(approval) => commands::approval::run(&cli.global, approval),
        Command::Secret(secret) => commands::secret::run(&cli.global, secret),
        Command::Audit(audit) => commands::audit::run(&cli.global, audit),
        Command::Completions(shell) => commands::completions::run(&shell),
        Command::Man(man) => commands::man::run(&man),
    }
}

/// Rejects `--server` on commands that work on this machine alone. `GLOVEBOX_SERVER` may be set for
/// them.
fn check_server(cli: &Cli) -> Result<()> {
    let here = match &cli.command {
        Command::Serve(_) => "serve",
        Command::Image(_) => "image",
        Command::Cache(_) => "cache",
        Command::Doctor(_) => "doctor",
        Command::Bench(_) => "bench",
        Command::Policy(policy) if matches!(policy.verb, PolicyVerb::Check(_)) => "policy check",
        Command::Secret(secret) if matches!(secret.verb, SecretVerb::RotateKey(_)) => {
            "secret rotate-key"
        }
        Command::Skill(skill) => match skill.verb {
            SkillVerb::Check(_) => "skill check",
            SkillVerb::Add(_) => "skill add",
            SkillVerb::Rm(_) => "skill rm",
            SkillVerb::Ls(_) | SkillVerb::Info(_) | SkillVerb::Run(_) => return Ok(()),
        },
        Command::Mcp(mcp) => match mcp.verb {
            None => "mcp",
            Some(McpVerb::Tools(_)) => "mcp tools",
            Some(McpVerb::Install(_)) => return Ok(()),
        },
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
        _ => return Ok(()),
    };
    let Some(server) = &cli.global.server else {
        return Ok(());
    };
    let message = format!("`glovebox {here}` works on this machine and asks no server");
    let error = Error::new(Code::InvalidArgument, Stage::Parse, message);
    let error = error.hint("leave out `--server`");
    Err(match &cli.command {
        Command::Mcp(_) => error.hint(format!(
            "a server has the same tools at `{server}/mcp`: \
             `glovebox mcp install HOST --server {server}` tells a host"
        )),
        _ => error,
    })
}

/// What clap says, and what people most often meant.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    let words: Vec<_> = std::env::args_os().collect();
    let hint = match words.get(1).and_then(|word| word.to_str()) {
        Some("run") => "put `--` before the command: `glovebox run -- CMD ARGS…`",
        Some("session") if words.get(2).is_some_and(|it| it == "start") => {
            "put `--` before the command: `glovebox session start -- CMD ARGS…`"
        }
        Some("exec") => "put `--` before the command: `glovebox exec SANDBOX -- CMD ARGS…`",
        Some("shell") => "put `--` before the command: `glovebox shell -- CMD ARGS…`",
        _ => "",
    };
    if error.use_stderr() && !hint.is_empty() && !words.iter().any(|word| word == "--") {
        render::hint(hint);
    }
    #[expect(clippy::exit, reason = "nothing was opened yet")]
    std::process::exit(error.exit_code())
}
