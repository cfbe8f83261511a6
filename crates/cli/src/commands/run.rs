//! `glovebox run`.

use std::ffi::OsString;

use glovebox_model::{ByteString, Program, Result};

use super::execute::{argument, execute};
use super::session::{AtTerminal, run_at_terminal};
use crate::args::{Global, LifeOptions, RunArgs};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, args: RunArgs) -> Result<Exit> {
    let (mut options, program) = (args.options, program(args.command)?);
    if !args.tty {
        options.exec.stdin |= args.interactive;
        return execute(global, options, program);
    }
    // All that is typed goes to its terminal.
    options.exec.stdin = false;
    run_at_terminal(
        global,
        AtTerminal {
            what: "`-t`",
            options,
            life: LifeOptions::default(),
            detach: args.detach.detach_key,
            program,
        },
    )
}

/// A command line as the thing to be run.
pub(super) fn program(command: Vec<OsString>) -> Result<Program> {
    let mut words = command.into_iter().map(argument);
    let command = words.next().unwrap_or_else(|| Ok(ByteString::default()))?;
    Ok(Program::Argv {
        command,
        args: words.collect::<Result<_>>()?,
    })
}
