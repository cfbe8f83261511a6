//! `glovebox mcp`.

mod install;
mod serve;
mod tools;

use glovebox_model::Result;

use crate::args::{Global, McpCommand, McpVerb};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: McpCommand) -> Result<Exit> {
    match command.verb {
        None => serve::run(global, &command.serve),
        Some(McpVerb::Install(args)) => install::run(global, &args),
        Some(McpVerb::Tools(_)) => tools::run(global),
    }
}
