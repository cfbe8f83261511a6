//! The `glovebox` command: parse, call the engine, print.

mod args;
mod change;
mod commands;
mod context;
mod desk;
mod exit;
mod human;
mod interrupt;
mod output;
mod paint;
mod records;
mod remote;
mod render;
mod stdout;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, DoctorArgs, PolicyVerb};
use exit::Exit;
use glovebox_model::{Code, Error, Result, Stage};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let json = cli.global.json;
    let ended = check_server(&cli).and_then(|()| carry_out(cli));
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
        Command::Ps(ps) => commands::ps::run(&cli.global, ps),
        Command::Show(show) => commands::show::run(&cli.global, &show),
        Command::Logs(logs) => commands::logs::run(&cli.global, &logs),
        Command::Cancel(cancel) => commands::cancel::run(&cli.global, &cancel),
        Command::Serve(serve) => commands::serve::run(&cli.global, &serve),
        Command::Token(token) => commands::token::run(&cli.global, token),
        Command::Settings(settings) => commands::settings::run(&cli.global, settings),
        Command::Doctor(DoctorArgs {}) => commands::doctor::run(&cli.global),
        Command::Bench(bench) => commands::bench::run(&cli.global, bench),
        Command::Policy(policy) => commands::policy::run(&cli.global, policy),
        Command::Audit(audit) => commands::audit::run(&cli.global, audit),
        Command::Completions(shell) => commands::completions::run(&shell),
        Command::Man(man) => commands::man::run(&man),
    }
}

/// A server that was named and is not asked would surprise. One in the environment may be.
fn check_server(cli: &Cli) -> Result<()> {
    let here = match &cli.command {
        Command::Serve(_) => "serve",
        Command::Doctor(_) => "doctor",
        Command::Bench(_) => "bench",
        Command::Policy(policy) if matches!(policy.verb, PolicyVerb::Check(_)) => "policy check",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
        _ => return Ok(()),
    };
    match &cli.global.server {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("`glovebox {here}` works on this machine and asks no server"),
        )
        .hint("leave out `--server`")),
    }
}

/// What clap says, and what people most often meant.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    let words: Vec<_> = std::env::args_os().collect();
    let runs = words.get(1).is_some_and(|word| word == "run");
    if error.use_stderr() && runs && !words.iter().any(|word| word == "--") {
        render::hint("put `--` before the command: `glovebox run -- CMD ARGS…`");
    }
    #[expect(clippy::exit, reason = "nothing was opened yet")]
    std::process::exit(error.exit_code())
}
