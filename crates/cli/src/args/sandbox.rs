//! Sandboxes that outlive an exec.

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use glovebox_model::{Lifetime, ProjectId, SandboxState};

use super::options::{lifetime, words};
use super::{BackendOptions, LimitOptions, WhoOptions};

/// Those that are kept for somebody.
const KEPT: [Lifetime; 3] = [Lifetime::Session, Lifetime::Agent, Lifetime::Shared];

/// Make, list, explain and remove sandboxes that outlive an exec
///
/// One is kept for a session, for an agent or for everybody, and works on one workspace. At a server
/// with `--server`, which keeps them standing; else in the state directory, where one stands while
/// something runs in it and is built again for the next.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox create --lifetime agent --agent builder --project demo
  glovebox sandbox ls
  glovebox sandbox recreate --mismatched
  glovebox sandbox rm glovebox-builder-0a1b2c3d")]
pub(crate) struct SandboxCommand {
    #[command(subcommand)]
    pub(crate) verb: SandboxVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxVerb {
    Create(Box<SandboxCreateArgs>),
    Ls(SandboxLsArgs),
    Info(SandboxInfoArgs),
    Explain(Box<SandboxExplainArgs>),
    Recreate(SandboxRecreateArgs),
    Prune(SandboxPruneArgs),
    Rm(SandboxRmArgs),
}

/// Whose it is.
#[derive(Debug, Args)]
pub(crate) struct ScopeOptions {
    /// How long it lives, and so for whom: with `agent` or `session` say which
    #[arg(long, value_name = "HOW", value_parser = lifetime(&KEPT), help_heading = "Sandbox")]
    pub(crate) lifetime: Option<Lifetime>,
    /// The workspace that it works on, by name
    #[arg(long, value_name = "ID", help_heading = "Sandbox")]
    pub(crate) project: Option<ProjectId>,
    #[command(flatten)]
    pub(crate) who: WhoOptions,
    #[command(flatten)]
    pub(crate) backend: BackendOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// Make a sandbox and wait until it stands; its name is printed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox create --lifetime agent --agent builder --project demo
  glovebox sandbox create --lifetime session --session s1 --project demo --memory 2G --pids 256
  glovebox sandbox create --lifetime shared --project tools --backend docker --runtime runsc --json")]
pub(crate) struct SandboxCreateArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
}

/// List sandboxes, the last used first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox ls
  glovebox sandbox ls --lifetime agent --state idle
  glovebox sandbox ls --quiet
  glovebox --server http://127.0.0.1:7070 sandbox ls --json")]
pub(crate) struct SandboxLsArgs {
    /// Only those that live so long
    #[arg(long, value_name = "HOW", value_parser = lifetime(&KEPT))]
    pub(crate) lifetime: Option<Lifetime>,
    /// Only those of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Only those of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only those that stand so
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub(crate) state: Option<SandboxState>,
}

/// Show a sandbox: whose it is, how it stands, what it was made with
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox info glovebox-builder-0a1b2c3d
  glovebox sandbox info sb_3f0c7d2a9b1e4f5a8c6d7e8f90a1b2c3 --json")]
pub(crate) struct SandboxInfoArgs {
    /// Its name or its id
    #[arg(value_name = "SANDBOX")]
    pub(crate) sandbox: String,
}

/// Say which sandbox somebody would get, what it would be made with, and why
///
/// Nothing is made. Name one that is there, or say whose it would be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox explain glovebox-builder-0a1b2c3d
  glovebox sandbox explain --lifetime agent --agent builder --project demo
  glovebox sandbox explain --lifetime shared --project tools --backend docker --json")]
pub(crate) struct SandboxExplainArgs {
    /// The name or the id of one that is there
    #[arg(value_name = "SANDBOX", conflicts_with_all = ["lifetime", "project", "agent", "session"])]
    pub(crate) sandbox: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
}

/// Make sandboxes anew from today's configuration
///
/// Each is taken down with everything that only it had, and built again when it is next used. Its
/// workspace stays.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = false)]
#[command(after_help = "Examples:
  glovebox sandbox recreate glovebox-builder-0a1b2c3d
  glovebox sandbox recreate --mismatched
  glovebox sandbox recreate --agent builder --json")]
pub(crate) struct SandboxRecreateArgs {
    /// Its name or its id
    #[arg(value_name = "SANDBOX")]
    pub(crate) sandbox: Option<String>,
    /// Those that would be made otherwise now
    #[arg(long)]
    pub(crate) mismatched: bool,
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
    /// Those of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Those of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Remove sandboxes that nobody used for too long, or that are too old
///
/// How long is for `prune_idle` and `prune_age` of `[sandbox]` in the configuration to say. One that
/// cannot be removed is named and does not stop the rest; the exit code is 1 then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox prune
  glovebox sandbox prune --json")]
pub(crate) struct SandboxPruneArgs {}

/// Remove sandboxes with everything that only they had; their workspaces stay
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox sandbox rm glovebox-builder-0a1b2c3d
  glovebox sandbox rm $(glovebox sandbox ls --quiet --agent builder)")]
pub(crate) struct SandboxRmArgs {
    /// Their names or ids
    #[arg(value_name = "SANDBOX", required = true)]
    pub(crate) sandboxes: Vec<String>,
}

fn state() -> impl TypedValueParser<Value = SandboxState> {
    words(SandboxState::ALL.map(|it| (it.as_str(), it)))
}
