//! `glovebox workspace`.

mod list;
mod rollback;
mod waiting;
mod whole;

use glovebox_model::Result;

use crate::args::{Global, WorkspaceCommand, WorkspaceVerb};
use crate::exit::Exit;

pub(crate) use waiting::{change_count, decision, show as show_changes};

pub(crate) fn run(global: &Global, command: WorkspaceCommand) -> Result<Exit> {
    match command.verb {
        WorkspaceVerb::Ls(_) => list::all(global),
        WorkspaceVerb::Info(args) => list::one(global, &args),
        WorkspaceVerb::Seed(args) => whole::seed(global, &args),
        WorkspaceVerb::Reset(args) => whole::reset(global, &args),
        WorkspaceVerb::Undo(args) => whole::undo(global, &args),
        WorkspaceVerb::Rollback(args) => rollback::run(global, &args),
        WorkspaceVerb::Fork(args) => whole::fork(global, &args),
        WorkspaceVerb::Changes(args) => waiting::show(global, &args),
        WorkspaceVerb::Keep(args) => waiting::keep(global, &args.exec),
        WorkspaceVerb::Discard(args) => waiting::discard(global, &args.exec),
        WorkspaceVerb::Rm(args) => whole::remove(global, &args),
    }
}
