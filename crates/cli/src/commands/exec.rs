//! `glovebox exec`.

use glovebox_model::Result;

use super::execute::execute;
use super::run::program;
use crate::args::{BackendOptions, ExecArgs, Global, PlaceOptions, RunOptions, SimulationOptions};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, args: ExecArgs) -> Result<Exit> {
    let options = RunOptions {
        place: PlaceOptions {
            sandbox: Some(args.sandbox),
            ..PlaceOptions::default()
        },
        backend: BackendOptions::default(),
        limits: args.limits,
        who: args.who,
        exec: args.options,
        simulation: SimulationOptions::default(),
    };
    execute(global, options, program(args.command)?)
}
