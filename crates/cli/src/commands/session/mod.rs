//! `glovebox session`.

mod approver;
mod ask;
mod at_terminal;
mod list;
mod log;
mod page;
mod recording;
mod start;

use glovebox_model::Result;

use crate::args::{Global, SessionCommand, SessionVerb};
use crate::context::Context;
use crate::exit::Exit;
use crate::sessions::Sessions;

pub(super) use at_terminal::{AtTerminal, run_at_terminal};

pub(crate) fn run(global: &Global, command: SessionCommand) -> Result<Exit> {
    let context = Context::new(global);
    let open = || Sessions::open(&context);
    match command.verb {
        SessionVerb::Start(args) => start::run(global, *args),
        SessionVerb::Ls(_) => list::run(global),
        SessionVerb::Info(args) => page::run(global, &open()?, &args.which),
        SessionVerb::Log(args) => log::run(global, &open()?, &args, args.follow),
        SessionVerb::Stream(args) => log::run(global, &open()?, &args, true),
        SessionVerb::Attach(args) => at_terminal::attach(global, open, args),
        SessionVerb::Record(args) => recording::record(global, &open()?, &args),
        SessionVerb::Replay(args) => recording::replay(global, &args),
        SessionVerb::Send(args) => ask::send(global, &open()?, &args, args.enter),
        SessionVerb::Submit(args) => ask::send(global, &open()?, &args, true),
        SessionVerb::Keys(args) => ask::keys(global, &open()?, args),
        SessionVerb::Paste(args) => ask::paste(global, &open()?, &args),
        SessionVerb::Resize(args) => ask::resize(global, &open()?, &args),
        SessionVerb::CloseInput(args) => ask::close_input(global, &open()?, &args.which),
        SessionVerb::Signal(args) => ask::signal(global, &open()?, &args),
        SessionVerb::Kill(args) => ask::kill(global, &open()?, &args.ids),
        SessionVerb::Rm(args) => ask::remove(global, &open()?, &args.ids),
    }
}
