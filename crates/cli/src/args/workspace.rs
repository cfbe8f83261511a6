//! Workspaces as a whole.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use glovebox_model::ProjectId;

/// Which workspace is meant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WhichOptions {
    /// A workspace that Glovebox keeps, by name, instead of the current directory
    #[arg(long, value_name = "ID", help_heading = "Workspace")]
    pub(crate) project: Option<ProjectId>,
}

/// List, undo, fork and remove workspaces; keep or discard changes that wait
///
/// A workspace is the current directory, as `glovebox run` takes it, or one that Glovebox keeps
/// (`--project`). At a server with `--server`, which has only the second kind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace undo
  glovebox workspace changes e_3f0c
  glovebox workspace keep e_3f0c
  glovebox workspace fork --project demo demo-2
  glovebox --server http://127.0.0.1:7070 workspace ls")]
pub(crate) struct WorkspaceCommand {
    #[command(subcommand)]
    pub(crate) verb: WorkspaceVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceVerb {
    Ls(WorkspaceLsArgs),
    Info(WorkspaceInfoArgs),
    Seed(SeedArgs),
    Reset(ResetArgs),
    Undo(UndoArgs),
    Rollback(RollbackArgs),
    Fork(ForkArgs),
    Changes(ChangesArgs),
    Keep(KeepArgs),
    Discard(DiscardArgs),
    Rm(WorkspaceRmArgs),
}

/// List the workspaces that Glovebox keeps, by name
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace ls
  glovebox workspace ls --quiet")]
pub(crate) struct WorkspaceLsArgs {}

/// Show a workspace: how large it is, its newest snapshot, which changes wait
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace info
  glovebox workspace info --project demo --json")]
pub(crate) struct WorkspaceInfoArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
}

/// Copy a template into a workspace; nothing that is there is touched
///
/// Without `--from` it is the operator's template: `template` in `[workspace]` of the configuration.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace seed --project demo --from ./template
  glovebox workspace seed --project demo")]
pub(crate) struct SeedArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// A directory of this machine; one that is not there yet is made for `--project`
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// Empty a workspace that Glovebox keeps, and seed it again
///
/// The current directory is never emptied. Snapshots stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace reset --project demo --yes
  glovebox workspace reset --project demo --inputs --artifacts --yes")]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// The files of `--input` as well
    #[arg(long)]
    pub(crate) inputs: bool,
    /// Output and artifacts of its execs as well
    #[arg(long)]
    pub(crate) artifacts: bool,
    /// Everything in it goes; without this nothing does
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Take back what an exec did to a workspace
///
/// Goes back to the snapshot that was taken before the last exec that changed something, or before
/// the named one and everything after it. Again, it goes one further. What stands there now is kept
/// as a snapshot first, so this can be undone as well. Which execs have a snapshot taken before them
/// is for `snapshot_before` in `[workspace]` of the configuration to say.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace undo
  glovebox workspace undo e_3f0c --json")]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: Option<String>,
    /// Do not keep what stands there now; it is lost then
    #[arg(long)]
    pub(crate) no_snapshot_before: bool,
}

/// Go back to a snapshot that was verified
///
/// To the newest that `glovebox snapshot verify` found sound, or to the named one, which it has to
/// have found sound. What stands there now is kept as a snapshot first. Snapshots that were only
/// kept so are never the newest; name one to go back to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace rollback
  glovebox workspace rollback --to snap_3f0c --project demo --json")]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Its id, or enough of the beginning of it
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) to: Option<String>,
    /// Do not keep what stands there now; it is lost then
    #[arg(long)]
    pub(crate) no_snapshot_before: bool,
}

/// Make a new workspace from a snapshot, or from what stands in the workspace now
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = "Examples:
  glovebox workspace fork experiment
  glovebox workspace fork --project demo snap_3f0c demo-2")]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Its id, or enough of the beginning of it
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: Option<String>,
    /// What the new one is called
    #[arg(value_name = "NAME")]
    pub(crate) name: ProjectId,
}

/// Show what an exec changed that waits to be kept or discarded
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace changes e_3f0c
  glovebox workspace changes e_3f0c --stat
  glovebox workspace changes e_3f0c --json")]
pub(crate) struct ChangesArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
    /// Only which files, without their lines
    #[arg(long)]
    pub(crate) stat: bool,
}

/// Carry the changes of an exec that wait into its workspace: all of them, or none
///
/// Refused when the workspace has changed meanwhile in one of the same places.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace keep e_3f0c")]
pub(crate) struct KeepArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}

/// Drop the changes of an exec that wait
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace discard e_3f0c")]
pub(crate) struct DiscardArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}

/// Remove workspaces with their inputs and artifacts; records, ledger and snapshots stay
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox workspace rm demo
  glovebox workspace rm $(glovebox workspace ls --quiet)")]
pub(crate) struct WorkspaceRmArgs {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<ProjectId>,
}
