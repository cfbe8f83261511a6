//! What execs left.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// List and get what an exec put into `/workspace/artifacts`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox artifact ls e_3f0c
  glovebox artifact get e_3f0c report.pdf --output report.pdf")]
pub(crate) struct ArtifactCommand {
    #[command(subcommand)]
    pub(crate) verb: ArtifactVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactVerb {
    Ls(ArtifactLsArgs),
    Get(ArtifactGetArgs),
}

/// List the artifacts of an exec, with their sizes and digests
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox artifact ls e_3f0c
  glovebox artifact ls e_3f0c --json")]
pub(crate) struct ArtifactLsArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}

/// Print an artifact, or write it to a file; its digest is held against the manifest
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox artifact get e_3f0c report.txt
  glovebox artifact get e_3f0c report.pdf --output report.pdf")]
pub(crate) struct ArtifactGetArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
    /// As `ls` shows it
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,
    /// A new file for it; standard output when it is left out or `-`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
