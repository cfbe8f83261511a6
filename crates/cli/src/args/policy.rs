//! Asking policy.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RunOptions;

/// Ask what policy decides, and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy explain --memory 8G -- make test
  glovebox policy check glovebox.toml")]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    Explain(Box<ExplainArgs>),
    Check(CheckArgs),
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
/// Exits with 0 when it is good and 2 when it is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox policy check glovebox.toml")]
pub(crate) struct CheckArgs {
    /// The configuration, in TOML
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
