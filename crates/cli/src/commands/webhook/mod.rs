//! `glovebox webhook`.

mod deliveries;
mod list;
mod test;

use glovebox_model::Result;

use crate::args::{Global, WebhookCommand, WebhookLsArgs, WebhookVerb};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: WebhookCommand) -> Result<Exit> {
    match command.verb {
        WebhookVerb::Ls(WebhookLsArgs {}) => list::run(global),
        WebhookVerb::Deliveries(args) => deliveries::run(global, args),
        WebhookVerb::Test(args) => test::run(global, &args),
    }
}
