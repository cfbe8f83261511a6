//! Looking at execs.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use glovebox_model::Status;

/// List execs
///
/// Those that run or wait right now, or with `--all` every one that is on record, newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox ps
  glovebox ps --all --limit 10
  glovebox ps --status failed --json
  glovebox show $(glovebox ps --all --quiet --limit 1)")]
pub(crate) struct PsArgs {
    /// Also those that have ended
    #[arg(long, short, conflicts_with = "status")]
    pub(crate) all: bool,
    /// Only those that stand so
    #[arg(long, value_name = "STATUS", value_parser = status())]
    pub(crate) status: Option<Status>,
    /// Only those of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
        .try_map(|text| Status::parse(&text).ok_or("not a status"))
}

/// End an exec at a server
///
/// One that waits is canceled at once; one that runs is asked to end, and killed if it does not.
/// Returns before it has ended: `glovebox logs --follow` waits for that. One that has ended stays
/// as it is. With `--json` its record is printed as it is then, which may be `running`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cancel e_3f0c
  glovebox cancel my-own-name --json")]
pub(crate) struct CancelArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}

/// Show the record of an exec
///
/// What was asked for, what policy made of it, what was enforced, how it ended and its receipt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox show e_3f0c
  glovebox show e_3f0c --json")]
pub(crate) struct ShowArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}

/// Print what an exec wrote
///
/// Its stdout goes to standard output and its stderr to standard error. A stream that is asked for
/// alone goes to standard output.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox logs e_3f0c
  glovebox logs e_3f0c --stderr | less
  glovebox logs --follow e_3f0c
  glovebox logs --network e_3f0c")]
pub(crate) struct LogsArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
    /// Only its stdout
    #[arg(long, conflicts_with = "stderr")]
    pub(crate) stdout: bool,
    /// Only its stderr
    #[arg(long)]
    pub(crate) stderr: bool,
    /// What it did to get out, instead of what it wrote: one attempt a line
    #[arg(long, conflicts_with_all = ["stdout", "stderr"])]
    pub(crate) network: bool,
    /// Go on until it ends
    #[arg(long, short)]
    pub(crate) follow: bool,
}
