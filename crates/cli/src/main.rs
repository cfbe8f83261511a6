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

use args::{Cli, Command, DoctorArgs};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let json = cli.global.json;
    let ended = match cli.command {
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
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::error(&error, json);
            Exit::of_error(&error).into()
        }
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
