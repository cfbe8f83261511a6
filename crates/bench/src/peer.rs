//! Other sandboxes, if this host has them.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use glovebox_model::Result;
use serde::Serialize;

use crate::command::Invocation;
use crate::container::Method;
use crate::interrupt::Interrupt;
use crate::payload::Payload;
use crate::setup::Setup;
use crate::{bundle, bwrap, container};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Bwrap,
    Crun,
    Runc,
    Docker,
    DockerExec,
    Runsc,
    Podman,
}

/// Why a peer does not take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    pub name: &'static str,
    pub why: String,
    /// The way out.
    pub hint: String,
}

/// Whether a peer can be measured with one payload.
#[derive(Debug)]
pub(crate) enum Availability {
    Ready(Box<Invocation>),
    Absent(Absent),
    /// This payload is not compared with it.
    NotCompared,
}

impl Peer {
    pub const ALL: [Self; 7] = [
        Self::Bwrap,
        Self::Crun,
        Self::Runc,
        Self::Docker,
        Self::DockerExec,
        Self::Runsc,
        Self::Podman,
    ];

    /// As a person names it to a command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Docker => "docker",
            Self::DockerExec => "docker-exec",
            Self::Runsc => "runsc",
            Self::Podman => "podman",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|peer| peer.as_str() == text)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Bwrap => "Bubblewrap",
            Self::Crun => "The OCI runtime in C, with a bundle made for this measurement",
            Self::Runc => "The OCI runtime in Go, with the same bundle",
            Self::Docker => "`docker run`, through its daemon",
            Self::DockerExec => "`docker exec` in a running container",
            Self::Runsc => "`docker run --runtime=runsc`: gVisor",
            Self::Podman => "`podman run`",
        }
    }

    /// Of its row.
    pub(crate) fn name(self) -> &'static str {
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

    /// Its program in `PATH`.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Docker | Self::DockerExec | Self::Runsc => "docker",
            Self::Podman => "podman",
        }
    }

    /// What its row measures.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Bwrap => "whole command, our own filter and mounts; no limits of its own",
            Self::Crun | Self::Runc => "whole command, namespaces and limits; no filter",
            Self::Docker | Self::Podman => "whole command, hardened, limits on",
            Self::DockerExec => "whole command, in a running container, hardened, limits on",
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

    pub(crate) fn find(
        self,
        setup: &Setup,
        payload: Payload,
        interrupt: &Interrupt,
    ) -> Result<Availability> {
        let Some(program) = in_path(self.program()) else {
            return Ok(Availability::Absent(Absent {
                name: self.name(),
                why: "not found in `PATH`".into(),
                hint: format!("apt-get install {}", self.package()),
            }));
        };
        let method = match self {
            Self::Bwrap => {
                let invocation = bwrap::invocation(program, setup, payload)?;
                return Ok(Availability::Ready(Box::new(invocation)));
            }
            // Bubblewrap is enough beside Node.
            Self::Crun | Self::Runc if payload == Payload::Node => {
                return Ok(Availability::NotCompared);
            }
            Self::Crun | Self::Runc => {
                let invocation = bundle::invocation(program, setup, payload)?;
                return Ok(Availability::Ready(Box::new(invocation)));
            }
            Self::Docker | Self::Podman => Method::Run(None),
            Self::Runsc => Method::Run(Some("runsc")),
            Self::DockerExec => Method::Exec,
        };
        container::find(self, method, program, setup, payload, interrupt)
    }
}

fn in_path(name: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| {
            let metadata = std::fs::metadata(file);
            metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        })
        .map(PathBuf::into_os_string)
}
