//! Asking policy.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RunOptions;

/// Ask what policy decides, and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy explain --memory 8G -- make test
  glovebox policy check glovebox.toml
  glovebox policy replay glovebox.toml")]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    Explain(Box<ExplainArgs>),
    Check(CheckArgs),
    Replay(ReplayArgs),
    Shadow(ShadowArgs),
}

/// Say what policy would decide for a run, and why; nothing is run
///
/// Takes the options of `glovebox run`. Prints each field's value, the layer that decided it with
/// its file and line, and what would change it. Exits with 0 when it is allowed and 3 when it is
/// denied.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy explain -- pytest
  glovebox policy explain --tier high --net allowlist -- curl https://example.com
  glovebox --config team.toml policy explain --json -- make")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Read a configuration and say what is wrong with it, and where
///
/// The examples of its rules are tried. Exits with 0 when it is good and 2 when it is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy check glovebox.toml")]
pub(crate) struct CheckArgs {
    /// The configuration, in TOML
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Say which recorded execs another policy would decide otherwise; nothing is run
///
/// Records do not hold the values of variables, nor what has changed in files since.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy replay stricter.toml
  glovebox policy replay stricter.toml --limit 1000 --json
  glovebox --server URL policy replay stricter.toml")]
pub(crate) struct ReplayArgs {
    /// The configuration, in TOML
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// So many records, from the newest on
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) limit: u64,
}

/// List what the policy of `--shadow-policy` would have decided otherwise, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy shadow
  glovebox policy shadow --limit 500 --json")]
pub(crate) struct ShadowArgs {
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}
