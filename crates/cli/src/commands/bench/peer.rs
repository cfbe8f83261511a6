//! Other sandboxes, if this host has them.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::ValueEnum;
use glovebox_model::Result;
use serde::Serialize;

use super::command::Invocation;
use super::container::Way;
use super::interrupt::Interrupt;
use super::stage::{Payload, Stage};
use super::{bundle, bwrap, container};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Peer {
    /// Bubblewrap
    Bwrap,
    /// The OCI runtime in C, with a bundle made for this measurement
    Crun,
    /// The OCI runtime in Go, with the same bundle
    Runc,
    /// `docker run`, through its daemon
    Docker,
    /// `docker exec` in a container that stands
    DockerExec,
    /// `docker run --runtime=runsc`: gVisor
    Runsc,
    /// `podman run`
    Podman,
}

/// Why a peer does not take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) why: String,
    /// The way out.
    pub(super) hint: String,
}

/// What takes part, for one payload.
#[derive(Debug)]
pub(super) enum Found {
    Ready(Box<Invocation>),
    Absent(Absent),
    /// It has nothing to say about this payload.
    Silent,
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Docker => "docker run",
            Self::DockerExec => "docker exec",
            Self::Runsc => "docker run, runsc",
            Self::Podman => "podman run",
        }
    }

    /// What is looked for in `PATH`.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Docker | Self::DockerExec | Self::Runsc => "docker",
            Self::Podman => "podman",
        }
    }

    /// What is compared, in a few words.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Bwrap => "whole command, our own filter and mounts; no limits of its own",
            Self::Crun | Self::Runc => "whole command, namespaces and limits; no filter",
            Self::Docker | Self::Podman => "whole command, hardened, limits on",
            Self::DockerExec => "whole command, in a container that stands, hardened, limits on",
            Self::Runsc => "whole command, hardened, limits on, a kernel of its own",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Bwrap => "bubblewrap",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Docker | Self::DockerExec | Self::Runsc => "docker.io",
            Self::Podman => "podman",
        }
    }

    pub(super) fn find(
        self,
        stage: &Stage,
        payload: Payload,
        interrupt: &Interrupt,
    ) -> Result<Found> {
        let Some(program) = in_path(self.program()) else {
            return Ok(Found::Absent(Absent {
                name: self.name(),
                why: "not found in `PATH`".into(),
                hint: format!("apt-get install {}", self.package()),
            }));
        };
        let way = match self {
            Self::Bwrap => {
                let invocation = bwrap::invocation(program, stage, payload)?;
                return Ok(Found::Ready(Box::new(invocation)));
            }
            // One of them is enough beside Node.
            Self::Crun | Self::Runc if payload == Payload::Node => return Ok(Found::Silent),
            Self::Crun | Self::Runc => {
                let invocation = bundle::invocation(program, stage, payload)?;
                return Ok(Found::Ready(Box::new(invocation)));
            }
            Self::Docker | Self::Podman => Way::Run(None),
            Self::Runsc => Way::Run(Some("runsc")),
            Self::DockerExec => Way::Exec,
        };
        container::find(self, way, program, stage, payload, interrupt)
    }
}

fn in_path(name: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| {
            let facts = std::fs::metadata(file);
            facts.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        })
        .map(PathBuf::into_os_string)
}
