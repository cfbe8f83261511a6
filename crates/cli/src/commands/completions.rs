//! `glovebox completions`.

use clap::CommandFactory;
use glovebox_model::Result;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::stdout;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "glovebox", &mut script);
    stdout::write(&script)?;
    Ok(Exit::SUCCESS)
}
