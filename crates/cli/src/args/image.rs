//! Images for the native backend.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use glovebox_engine::ImageReference;
use glovebox_workspace::image::ImageName;

/// Import, list and remove images for native sandboxes
///
/// An image is the root directory of a sandbox. It lies unpacked in the state directory and is only
/// read. It comes from a registry, or as a file, a directory or standard input.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox image pull docker.io/python:3.12
  docker save python:3.12 | glovebox image import - --name python:3.12
  glovebox image ls
  glovebox run --image python:3.12 -- python3 -V
  glovebox image rm python:3.12")]
pub(crate) struct ImageCommand {
    #[command(subcommand)]
    pub(crate) verb: ImageVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageVerb {
    Import(ImportArgs),
    Pull(PullArgs),
    Ls(ImageLsArgs),
    Rm(ImageRmArgs),
}

/// Unpack an image under a name; a name that is taken means the new image from then on
///
/// It is read with distrust: a path that leaves the image, a device or a hidden bomb in it is left
/// out or refused. Owners and set-id bits are not kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox image import python.tar --name python:3.12
  glovebox image import layout/ --name tools --format oci
  docker save python:3.12 | glovebox image import - --name python:3.12
  glovebox image import rootfs.tar.zst --name debian --format rootfs --json")]
pub(crate) struct ImportArgs {
    /// An archive (plain, gzip or zstd), the directory of an OCI layout, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// What it is called from now on
    #[arg(long, value_name = "NAME")]
    pub(crate) name: ImageName,
    /// What it is
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: ImageFormatArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImageFormatArg {
    /// Told apart by what is in it
    Auto,
    /// An OCI layout
    Oci,
    /// What `docker save` writes
    Docker,
    /// An archive of the files of a root directory
    Rootfs,
}

/// Fetch an image from a registry and unpack it under a name
///
/// As anybody, without an account. Everything is compared with its digest, and read with the same
/// distrust as an import. A registry on this machine or a private network must be listed in
/// `[network] private` of the configuration.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox image pull docker.io/python:3.12
  glovebox image pull ghcr.io/team/tools@sha256:3f0c… --name tools
  glovebox image pull 127.0.0.1:5000/team/tools:2 --plain-http --json")]
pub(crate) struct PullArgs {
    /// The registry, the repository, and a tag or a digest
    #[arg(value_name = "REGISTRY/NAME[:TAG|@DIGEST]")]
    pub(crate) reference: ImageReference,
    /// What it is called from now on; without it, the last part of its name with its tag
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<ImageName>,
    /// Speak to the registry without TLS; only for one that is listed in `[network] private`
    #[arg(long)]
    pub(crate) plain_http: bool,
}

/// List the images that are here, by name
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox image ls
  glovebox image ls --quiet")]
pub(crate) struct ImageLsArgs {}

/// Remove images; one that a sandbox stands on stays
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox image rm python:3.12")]
pub(crate) struct ImageRmArgs {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<ImageName>,
}
