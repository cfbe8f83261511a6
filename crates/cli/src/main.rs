//! The `glovebox` command: parse, call the engine, print.

mod args;
mod commands;
mod context;
mod exit;
mod interrupt;
mod output;
mod render;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.global.json;
    let ended = match cli.command {
        Command::Run(run) => commands::run::run(&cli.global, run),
        Command::Code(code) => commands::code::run(&cli.global, code),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            render::error(&error, json);
            Exit::of_error(&error).into()
        }
    }
}
