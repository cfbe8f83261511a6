//! What an operator says about containers. The limits of an exec are not here: they come from its
//! profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// A limit of one process, soft and hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ulimit {
    pub soft: u64,
    pub hard: u64,
}

/// When an image is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// An image that is not there is an error that says how to get it.
    #[default]
    Never,
    Missing,
}

/// How containers are made: every field decided. Part of a sandbox's configuration, so a change of
/// any field makes a kept container another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DockerConfig {
    /// The docker or podman program, by name or path.
    pub cli: String,
    pub image: String,
    pub pull: Pull,
    /// Such as `linux/amd64`; the engine's own when unset.
    pub platform: Option<String>,
    /// `runsc`, `kata` or another that the engine knows; its default when unset.
    pub runtime: Option<String>,
    pub container_prefix: String,
    pub read_only_root: bool,
    /// Each `/path` or `/path:options`.
    pub tmpfs: Vec<String>,
    /// The network of a sandbox whose policy grants one; without that it is always `none`.
    pub network: Option<String>,
    /// `uid:gid` inside; never root.
    pub user: String,
    pub cap_drop: Vec<String>,
    /// Variables of every container, declared by the operator.
    pub env: BTreeMap<String, String>,
    /// Run once with `sh -lc` after a kept container was made.
    pub setup_command: Option<String>,
    /// Memory and swap together; by default as much as memory, which means no swap.
    pub memory_swap: Option<Bytes>,
    pub ulimits: BTreeMap<String, Ulimit>,
    /// A file with a profile; the engine's default when unset. `unconfined` is refused.
    pub seccomp_profile: Option<String>,
    pub apparmor_profile: Option<String>,
    /// SELinux options such as `type:svirt_t`. `disable` is refused.
    pub selinux_label: Option<String>,
    pub dns: Vec<String>,
    /// Each `name:address`.
    pub extra_hosts: Vec<String>,
    /// Each `source:target[:ro|rw]`, `ro` by default.
    pub binds: Vec<String>,
    /// Sources of binds must lie below one of these.
    pub bind_roots: Vec<String>,
    /// Ports inside that are published on a free port of the host's loopback.
    pub publish: Vec<u16>,
    /// `/dev/shm`; 64 MiB by default.
    pub shm_size: Option<Bytes>,
    /// Where the state directory lies for the engine, when Glovebox itself runs in a container
    /// that shares the host's socket.
    pub host_state_dir: Option<String>,
}

impl Default for DockerConfig {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self {
            cli: "docker".to_owned(),
            image: "glovebox-sandbox:latest".to_owned(),
            pull: Pull::Never,
            platform: None,
            runtime: None,
            container_prefix: "glovebox-".to_owned(),
            read_only_root: true,
            tmpfs: words(&["/tmp", "/var/tmp", "/run"]),
            network: None,
            user: "1000:1000".to_owned(),
            cap_drop: words(&["ALL"]),
            env: BTreeMap::new(),
            setup_command: None,
            memory_swap: None,
            ulimits: BTreeMap::new(),
            seccomp_profile: None,
            apparmor_profile: None,
            selinux_label: None,
            dns: Vec::new(),
            extra_hosts: Vec::new(),
            binds: Vec::new(),
            bind_roots: Vec::new(),
            publish: Vec::new(),
            shm_size: None,
            host_state_dir: None,
        }
    }
}
