//! Who is told of what by itself.

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use glovebox_model::DeliveryState;

use super::options::{id, words};

/// List webhooks, and what became of their messages
///
/// They are told of approvals and of the ends of execs. Webhooks are `[[webhook]]` sections of the
/// configuration. Only a server sends: what a `glovebox run` on the state directory of a server does
/// is told by that server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox webhook ls
  glovebox webhook test ops
  glovebox --server URL webhook deliveries --state failed")]
pub(crate) struct WebhookCommand {
    #[command(subcommand)]
    pub(crate) verb: WebhookVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookVerb {
    Ls(WebhookLsArgs),
    Deliveries(DeliveriesArgs),
    Test(WebhookTestArgs),
}

/// List the webhooks of the configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox webhook ls
  glovebox --server URL webhook ls --json")]
pub(crate) struct WebhookLsArgs {}

/// List messages and what came of them, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox --server URL webhook deliveries
  glovebox --server URL webhook deliveries --webhook ops --state failed --json")]
pub(crate) struct DeliveriesArgs {
    /// Only those to this webhook
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub(crate) webhook: Option<String>,
    /// Only those that stand so
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub(crate) state: Option<DeliveryState>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Send a test message, and say whether it arrived
///
/// A server sends it as it sends all others; without `--server` this command does so itself, once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox webhook test ops
  glovebox --server URL webhook test ops --json")]
pub(crate) struct WebhookTestArgs {
    /// Its name in the configuration
    #[arg(value_name = "NAME", value_parser = id)]
    pub(crate) name: String,
}

fn state() -> impl TypedValueParser<Value = DeliveryState> {
    words(DeliveryState::ALL.map(|it| (it.as_str(), it)))
}
