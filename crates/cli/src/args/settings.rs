//! What may be changed while servers run.

use clap::{Args, Subcommand};

/// Show and change what an operator may change while servers run
///
/// At a server with `--server`, else in the state directory itself. Every server of it follows
/// within seconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox settings show
  glovebox settings set max_concurrent_execs=8 max_concurrent_per_user=2")]
pub(crate) struct SettingsCommand {
    #[command(subcommand)]
    pub(crate) verb: SettingsVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsVerb {
    Show(SettingsShowArgs),
    Set(SettingsSetArgs),
}

/// Print the settings in force
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox settings show
  glovebox --server http://127.0.0.1:7070 settings show --json")]
pub(crate) struct SettingsShowArgs {}

/// Change settings, all of them or none
///
/// `none` takes a limit away. What lies deeper is named with dots.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox settings set max_concurrent_execs=8
  glovebox settings set max_queued=1000 max_queued_per_space=100
  glovebox settings set budget.execs_per_hour=600
  glovebox settings set agent_budgets.builder.cpu_seconds_per_hour=3600
  glovebox settings set agent_budgets.builder=none")]
pub(crate) struct SettingsSetArgs {
    /// A setting and its value: a whole number, or `none`
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub(crate) change: Vec<String>,
}
