//! What programs may reuse.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use glovebox_model::{Bytes, Millis, SpaceId};
use glovebox_workspace::CacheName;

/// List, fill, remove and prune the caches that sandboxes are given
///
/// For the operator, on this machine. A shared cache is filled here and only read by sandboxes; a
/// user's own is written by that user's sandboxes and read by nobody else's. Which are given to
/// whom is for the configuration to say.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cache fill pip --from ./wheels
  glovebox cache ls
  glovebox cache prune --unused-for 30d")]
pub(crate) struct CacheCommand {
    #[command(subcommand)]
    pub(crate) verb: CacheVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheVerb {
    Ls(CacheLsArgs),
    Fill(CacheFillArgs),
    Rm(CacheRmArgs),
    Prune(CachePruneArgs),
}

/// Whose caches.
#[derive(Debug, Args)]
pub(crate) struct SpaceOptions {
    /// Those of this space of a server
    #[arg(long, value_name = "SPACE", default_value_t = SpaceId::local())]
    pub(crate) space: SpaceId,
}

/// List caches with their owners and sizes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cache ls
  glovebox cache ls --space team-a --json")]
pub(crate) struct CacheLsArgs {
    #[command(flatten)]
    pub(crate) of: SpaceOptions,
}

/// Fill a shared cache from a directory; what it held before is replaced in one step
///
/// Sandboxes that have the old one keep it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cache fill pip --from ./wheels
  glovebox cache fill npm --from /srv/npm --space team-a --json")]
pub(crate) struct CacheFillArgs {
    #[command(flatten)]
    pub(crate) of: SpaceOptions,
    /// Lower-case letters, digits, `.`, `_` and `-`
    #[arg(value_name = "NAME")]
    pub(crate) name: CacheName,
    /// A directory of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Refuse one that holds more than this
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub(crate) max_bytes: Bytes,
}

/// Remove a cache that no sandbox has right now
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cache rm pip
  glovebox cache rm pip --user 1000")]
pub(crate) struct CacheRmArgs {
    #[command(flatten)]
    pub(crate) of: SpaceOptions,
    #[arg(value_name = "NAME")]
    pub(crate) name: CacheName,
    /// This user's own; the shared one without it
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,
}

/// Remove users' caches that nobody needs; shared ones stay
///
/// Without a flag only what a crash or a replacement has left.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox cache prune --unused-for 30d
  glovebox cache prune --max-bytes 20G --json")]
pub(crate) struct CachePruneArgs {
    #[command(flatten)]
    pub(crate) of: SpaceOptions,
    /// Those that nobody used for so long
    #[arg(long, value_name = "TIME")]
    pub(crate) unused_for: Option<Millis>,
    /// Then the longest unused, until the rest takes no more than this
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_bytes: Option<Bytes>,
}
