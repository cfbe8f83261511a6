//! `glovebox run`.

use glovebox_model::{ByteString, Program, Result};

use super::execute::{argument, execute};
use crate::args::{Global, RunArgs};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, args: RunArgs) -> Result<Exit> {
    let mut words = args.command.into_iter().map(argument);
    let command = words.next().unwrap_or_else(|| Ok(ByteString::default()))?;
    let program = Program::Argv {
        command,
        args: words.collect::<Result<_>>()?,
    };
    execute(global, args.options, program)
}
