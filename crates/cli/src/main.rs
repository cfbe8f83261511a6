//! The `glovebox` command: parse, call the engine, print.

mod args;
mod commands;
mod context;
mod exit;
mod human;
mod interrupt;
mod output;
mod paint;
mod records;
mod render;
mod stdout;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, DoctorArgs};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.global.json;
    let ended = match cli.command {
        Command::Run(run) => commands::run::run(&cli.global, run),
        Command::Code(code) => commands::code::run(&cli.global, code),
        Command::Ps(ps) => commands::ps::run(&cli.global, ps),
        Command::Show(show) => commands::show::run(&cli.global, &show),
        Command::Logs(logs) => commands::logs::run(&cli.global, &logs),
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
