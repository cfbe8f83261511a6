//! `glovebox run`.

use std::ffi::OsString;

use glovebox_model::{ByteString, Program, Result};

use super::execute::{argument, execute};
use crate::args::{Global, RunArgs};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, args: RunArgs) -> Result<Exit> {
    execute(global, args.options, program(args.command)?)
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
