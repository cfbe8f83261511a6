//! Asking people, and what they answer.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use glovebox_model::{ApprovalId, ApprovalState, ExecId, GrantId, Millis};

use super::options::{id, words};
use crate::narrowing::Narrowing;

/// Answer what waits for a person, and see what was answered
///
/// At a server with `--server`. Without one it is about what was asked on this machine: a run that
/// needs a person asks at its own terminal, so here is mostly what was answered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox --server URL approval watch
  glovebox --server URL approval approve apr_3f0c… --reason 'the release'
  glovebox approval ls --all
  glovebox approval grants")]
pub(crate) struct ApprovalCommand {
    #[command(subcommand)]
    pub(crate) verb: ApprovalVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalVerb {
    Ls(ApprovalLsArgs),
    Info(ApprovalInfoArgs),
    Approve(Box<ApproveArgs>),
    Deny(DenyArgs),
    Watch(ApprovalWatchArgs),
    Grants(GrantsArgs),
    Revoke(RevokeArgs),
}

/// List what waits for an answer, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval ls
  glovebox approval ls --all --json
  glovebox approval ls --state denied --conversation c-17")]
pub(crate) struct ApprovalLsArgs {
    /// Also those that have ended
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Only those that stand so
    #[arg(long, value_name = "STATE", value_parser = state(), conflicts_with = "all")]
    pub(crate) state: Option<ApprovalState>,
    /// Only those about this exec
    #[arg(long, value_name = "EXEC")]
    pub(crate) exec: Option<ExecId>,
    /// Only those of this conversation
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) conversation: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Show all that is asked, and what was replied
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval info apr_3f0c…
  glovebox approval info apr_3f0c… --json")]
pub(crate) struct ApprovalInfoArgs {
    #[arg(value_name = "APPROVAL")]
    pub(crate) id: ApprovalId,
}

/// Say yes: once, to its kind, to less of it, or to another program
///
/// Nobody approves their own request. What needs several people starts when enough of them have
/// said yes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval approve apr_3f0c…
  glovebox approval approve apr_3f0c… --kind --expires 2h
  glovebox --server URL approval approve apr_3f0c… --run
  glovebox approval approve apr_3f0c… --narrow memory=512M --narrow network=none
  glovebox approval approve apr_3f0c… --edit better.py --reason 'without the rm'")]
pub(crate) struct ApproveArgs {
    #[arg(value_name = "APPROVAL")]
    pub(crate) id: ApprovalId,
    /// This, and its kind in this conversation until it expires or `glovebox approval revoke`
    #[arg(long, conflicts_with_all = ["narrow", "edit"])]
    pub(crate) kind: bool,
    /// How long its kind stays allowed (`30m`, `8h`); as policy says without it
    #[arg(long, value_name = "TIME", requires = "kind")]
    pub(crate) expires: Option<Millis>,
    /// With less than it asks for, under the names of the configuration; may be given more than
    /// once
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "edit")]
    pub(crate) narrow: Vec<Narrowing>,
    /// The program in this file instead (`-` is standard input), which is assessed anew: code in
    /// the same language, or the words of a command as a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) edit: Option<PathBuf>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Then follow the exec: print its output as it comes and exit with its code, as `glovebox run`
    /// does
    #[arg(long)]
    pub(crate) run: bool,
}

/// Say no
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval deny apr_3f0c…
  glovebox approval deny apr_3f0c… --reason 'not on a Friday'")]
pub(crate) struct DenyArgs {
    #[arg(value_name = "APPROVAL")]
    pub(crate) id: ApprovalId,
    /// Why; whoever asked is told
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Wait for what needs an answer, and ask at the terminal for each
///
/// Where there is no terminal, or with `--json`, each is only printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox --server URL approval watch
  glovebox --server URL approval watch --json
  glovebox --server URL approval watch --limit 1")]
pub(crate) struct ApprovalWatchArgs {
    /// End after so many
    #[arg(long, short = 'n', value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}

/// List the kinds that people have allowed in a conversation
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval grants
  glovebox approval grants --all --conversation c-17 --json")]
pub(crate) struct GrantsArgs {
    /// Also those that were revoked or have expired
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Only those of this conversation
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) conversation: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Take a grant back: from now on people are asked again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox approval revoke grt_3f0c…")]
pub(crate) struct RevokeArgs {
    #[arg(value_name = "GRANT")]
    pub(crate) id: GrantId,
}

fn state() -> impl TypedValueParser<Value = ApprovalState> {
    words(ApprovalState::ALL.map(|it| (it.as_str(), it)))
}
