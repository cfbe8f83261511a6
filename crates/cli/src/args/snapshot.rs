//! A workspace as it was.

use clap::{Args, Subcommand};

use super::WhichOptions;

/// Take, list, compare, restore and remove snapshots of a workspace
///
/// One holds every file as it was, and takes only the room of what no other snapshot has. Which
/// workspace: `--project NAME`, else the current directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot take --label release
  glovebox snapshot diff
  glovebox snapshot restore snap_3f0c
  glovebox snapshot ls --project demo --json")]
pub(crate) struct SnapshotCommand {
    #[command(subcommand)]
    pub(crate) verb: SnapshotVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotVerb {
    Take(TakeArgs),
    Ls(SnapshotLsArgs),
    Show(SnapshotShowArgs),
    Diff(DiffArgs),
    Restore(RestoreArgs),
    Rm(SnapshotRmArgs),
    Gc(GcArgs),
    Verify(SnapshotVerifyArgs),
}

/// Take a snapshot; its id is printed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot take
  glovebox snapshot take --label before-upgrade --note 'all tests pass'
  glovebox snapshot take --project demo --live --json")]
pub(crate) struct TakeArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// What it is called; it is never removed by age then
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// A remark
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Even while execs run; what they write meanwhile may be half in it
    #[arg(long)]
    pub(crate) live: bool,
}

/// List the snapshots of a workspace, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot ls
  glovebox snapshot ls --project demo --quiet")]
pub(crate) struct SnapshotLsArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
}

/// Show a snapshot: when it was taken, of what, and what is not in it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot show snap_3f0c
  glovebox snapshot show snap_3f0c --json")]
pub(crate) struct SnapshotShowArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Its id, or enough of the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Show what differs between two snapshots, or between one and the workspace as it is now
///
/// From the newest to now, when nothing is named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot diff
  glovebox snapshot diff snap_3f0c --stat
  glovebox snapshot diff snap_3f0c snap_9a1b --project demo --json")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// The older side: an id, or enough of the beginning of it
    #[arg(value_name = "FROM")]
    pub(crate) from: Option<String>,
    /// The newer side; the workspace as it is now when it is left out
    #[arg(value_name = "TO")]
    pub(crate) to: Option<String>,
    /// Only which files and how many lines
    #[arg(long)]
    pub(crate) stat: bool,
}

/// Make a workspace what a snapshot says
///
/// What stands there now is kept as a snapshot first. Refused while execs run in it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot restore snap_3f0c
  glovebox snapshot restore snap_3f0c --project demo --json")]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Its id, or enough of the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Do not keep what stands there now; it is lost then
    #[arg(long)]
    pub(crate) no_snapshot_before: bool,
}

/// Remove snapshots; the room that they alone took is free after the next `gc`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot rm snap_3f0c
  glovebox snapshot rm snap_3f0c snap_9a1b --project demo")]
pub(crate) struct SnapshotRmArgs {
    #[command(flatten)]
    pub(crate) which: WhichOptions,
    /// Their ids, or enough of the beginning of each
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Remove the snapshots that the configuration keeps no longer, and what nobody needs any more
///
/// Of all workspaces. How long they stay is for `[workspace]` of the configuration to say; those
/// with a label stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot gc
  glovebox snapshot gc --json")]
pub(crate) struct GcArgs {}

/// Read all snapshots of all workspaces, and say what is damaged and whom it hurts
///
/// The exit code is 1 when something is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox snapshot verify
  glovebox snapshot verify --json")]
pub(crate) struct SnapshotVerifyArgs {}
