//! A path of either kind, and how a container engine is told to mount it.

use std::fmt;

use glovebox_model::Access;

use super::fault::PathFault;
use super::posix::PosixPath;
use super::windows::{Volume, WindowsPath};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPath {
    Windows(WindowsPath),
    Posix(PosixPath),
}

impl HostPath {
    /// Of whichever kind it is: for a path as another machine's engine sees it.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        match text.starts_with('/') {
            true => PosixPath::parse(text).map(Self::Posix),
            false => WindowsPath::parse(text).map(Self::Windows),
        }
    }

    /// One name further down, by the rules of its own kind.
    pub fn join(&self, name: &str) -> Result<Self, PathFault> {
        match self {
            Self::Windows(path) => path.join(name).map(Self::Windows),
            Self::Posix(path) => path.join(name).map(Self::Posix),
        }
    }

    /// For calls to the system that it is a path of.
    pub fn native(&self) -> String {
        match self {
            Self::Windows(path) => path.native(),
            Self::Posix(path) => path.to_string(),
        }
    }

    /// For the engine, which wants the short form. It mounts no share of the network.
    pub fn mount_source(&self) -> Result<String, PathFault> {
        match self {
            Self::Windows(path) => match path.volume() {
                Volume::Drive(_) | Volume::Distro(_) => Ok(path.to_string()),
                Volume::Share { .. } => Err(PathFault::NetworkShare),
            },
            Self::Posix(path) => Ok(path.to_string()),
        }
    }

    /// The value of `--mount`; None when there is nothing to mount. `--volume` is never used: it
    /// cuts at colons, of which `D:\work` has one and any directory of Linux may have more, and it
    /// makes a directory where there is none.
    pub fn mount_option(
        &self,
        target: &PosixPath,
        access: Access,
    ) -> Result<Option<String>, PathFault> {
        let suffix = match access {
            Access::None => return Ok(None),
            Access::Ro => ",readonly",
            Access::Rw => "",
        };
        let source = quoted(&format!("source={}", self.mount_source()?));
        let target = quoted(&format!("target={target}"));
        Ok(Some(format!("type=bind,{source},{target}{suffix}")))
    }

    pub(super) fn is_whole_volume(&self) -> bool {
        match self {
            Self::Windows(path) => path.names().is_empty(),
            Self::Posix(path) => path.names().is_empty(),
        }
    }
}

/// A field of comma separated values. There are no control characters in it.
fn quoted(field: &str) -> String {
    match field.contains([',', '"']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows(path) => path.fmt(f),
            Self::Posix(path) => path.fmt(f),
        }
    }
}
