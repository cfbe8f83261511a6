//! What execs can run in.

use clap::{Args, Subcommand};
use glovebox_model::BackendRef;

use super::options::BackendParser;

/// Show what execs can run in here, and what each enforces
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox backend ls
  glovebox backend probe docker --runtime runsc --run")]
pub(crate) struct BackendCommand {
    #[command(subcommand)]
    pub(crate) verb: BackendVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackendVerb {
    Ls(BackendLsArgs),
    Probe(ProbeArgs),
}

/// List every guarantee and how each backend keeps it
///
/// `kernel`: by the kernel or the engine's own. `supervised`: watched from outside. `-`: not at all,
/// so an exec that demands it is refused there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox backend ls
  glovebox backend ls --json
  glovebox --server http://127.0.0.1:7070 backend ls")]
pub(crate) struct BackendLsArgs {}

/// Say what was seen of a backend, guarantee by guarantee, with what would fix the rest
///
/// Exits with 0 when it can be used and 1 when it cannot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox backend probe native
  glovebox backend probe docker:runsc
  glovebox backend probe docker --run --json")]
pub(crate) struct ProbeArgs {
    /// Its name; `docker:runsc` names a runtime too
    #[arg(value_name = "NAME", value_parser = BackendParser)]
    pub(crate) name: BackendRef,
    /// The container runtime, instead of the engine's own choice
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Also run a small program in it, which stays on record
    #[arg(long)]
    pub(crate) run: bool,
}
