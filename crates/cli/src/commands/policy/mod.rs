//! `glovebox policy`.

mod check;
mod explain;
mod replay;
mod shadow;

use glovebox_model::Result;

use crate::args::{Global, PolicyCommand, PolicyVerb};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: PolicyCommand) -> Result<Exit> {
    match command.verb {
        PolicyVerb::Explain(args) => explain::run(global, *args),
        PolicyVerb::Check(args) => check::run(global, &args),
        PolicyVerb::Replay(args) => replay::run(global, &args),
        PolicyVerb::Shadow(args) => shadow::run(global, args),
    }
}
