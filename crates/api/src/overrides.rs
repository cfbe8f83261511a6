//! The policy that a request asks for: the names of the configuration, and those of system 0.

use std::collections::BTreeSet;

use glovebox_model::{
    Access, BackendRef, Code, Error, Guarantee, HostPort, LimitField, LimitsDemand, NetworkMode,
    PartialProfile, Result, SecurityMode, Stage, Tier,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::{Duration, Processors, Size};
use crate::{BackendText, Destination, EnvPattern, ImageName, RuntimeName, invalid};

/// What the request wants of its policy; never more than policy allows. A field that is not set
/// has no opinion.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyOverrides {
    /// Time from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The same of a session, for which `timeout` has no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_time: Option<Duration>,
    /// Processor time of all processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    #[schema(minimum = 1, maximum = 4194304)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Processors>,
    /// New bytes on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// New files on disk.
    #[schema(minimum = 16, maximum = 4294967296i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Size>,
    #[schema(minimum = 16, maximum = 1048576)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Graphics processors.
    #[schema(minimum = 0, maximum = 1024)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// Tensor processors.
    #[schema(minimum = 0, maximum = 1024)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpus: Option<u64>,
    /// Bytes over the network, in both directions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_bytes: Option<Size>,
    /// Connections over the network.
    #[schema(minimum = 1, maximum = 4294967296i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_connections: Option<u64>,
    /// The network is closed this long after the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_time: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkMode>,
    #[schema(max_items = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_net: Option<BTreeSet<Destination>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Access>,
    #[schema(max_items = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_allow: Option<BTreeSet<EnvPattern>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_demand: Option<LimitsDemand>,
    /// Guarantees that must be the kernel's, beside those that policy demands anyway.
    #[schema(max_items = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<BTreeSet<Guarantee>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// Another name of `timeout`.
    #[schema(minimum = 1, maximum = 2592000000i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Another name of `memory`.
    #[schema(minimum = 8, maximum = 67108864)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Another name of `cpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<Processors>,
    /// Another name of `stdout`.
    #[schema(minimum = 1, maximum = 68719476736i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_stdout_bytes: Option<u64>,
    /// Another name of `stderr`.
    #[schema(minimum = 1, maximum = 68719476736i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_stderr_bytes: Option<u64>,
    /// Another name of `artifacts`.
    #[schema(minimum = 0, maximum = 1125899906842624i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_artifacts_bytes_total: Option<u64>,
    /// Another name of `network`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<NetOverrides>,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NetOverrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<NetworkMode>,
}

impl PolicyOverrides {
    /// What is said about each limit, under either of its names.
    fn limits(&self) -> [(LimitField, Result<Option<u64>>); LimitField::COUNT] {
        let time = |field: LimitField, it: &Option<Duration>| {
            it.as_ref().map(|it| it.raw(field)).transpose()
        };
        let size =
            |field: LimitField, it: &Option<Size>| it.as_ref().map(|it| it.raw(field)).transpose();
        let milli = |it: Option<Processors>| it.map(Processors::milli);
        LimitField::ALL.map(|field| {
            let said = match field {
                LimitField::Wall => either(field, time(field, &self.timeout), self.timeout_ms),
                LimitField::CpuTime => time(field, &self.cpu_time),
                LimitField::Memory => {
                    let mib = self.memory_mb.map(|it| it << 20);
                    either(field, size(field, &self.memory), mib)
                }
                LimitField::Pids => Ok(self.pids),
                LimitField::Cpus => either(field, Ok(milli(self.cpus)), milli(self.cpu_cores)),
                LimitField::Disk => size(field, &self.disk),
                LimitField::Files => Ok(self.files),
                LimitField::Stdout => {
                    either(field, size(field, &self.stdout), self.max_stdout_bytes)
                }
                LimitField::Stderr => {
                    either(field, size(field, &self.stderr), self.max_stderr_bytes)
                }
                LimitField::Artifacts => {
                    let other = self.max_artifacts_bytes_total;
                    either(field, size(field, &self.artifacts), other)
                }
                LimitField::OpenFiles => Ok(self.open_files),
                LimitField::Gpus => Ok(self.gpus),
                LimitField::Tpus => Ok(self.tpus),
                LimitField::EgressBytes => size(field, &self.egress_bytes),
                LimitField::EgressConnections => Ok(self.egress_connections),
                LimitField::NetworkTime => time(field, &self.network_time),
                LimitField::SessionTime => time(field, &self.session_time),
            };
            (field, said)
        })
    }

    pub fn profile(self) -> Result<PartialProfile> {
        let mut profile = PartialProfile::default();
        for (field, said) in self.limits() {
            if let Some(raw) = said? {
                field.set(&mut profile.limits, raw);
            }
        }
        let network = match (self.network, self.net.and_then(|net| net.mode)) {
            (Some(one), Some(other)) if one != other => return Err(said_twice("network")),
            (one, other) => one.or(other),
        };
        let lists = self.allow_net.as_ref().is_some_and(|list| !list.is_empty());
        if lists && network.is_some_and(|mode| mode != NetworkMode::Allowlist) {
            return Err(Error::new(
                Code::Conflict,
                Stage::Parse,
                "`allow_net` has no meaning with this `network`",
            )
            .hint("leave out `network`, or ask for `allowlist`"));
        }
        profile.network = network;
        profile.allow_net = self.allow_net.map(destinations).transpose()?;
        profile.workspace = self.workspace;
        profile.env_allow = self
            .env_allow
            .map(|set| set.into_iter().map(|it| it.0).collect());
        profile.tier = self.tier;
        profile.security = self.security;
        profile.limits_demand = self.limits_demand;
        profile.require = self.require.unwrap_or_default();
        profile.runtime = self.runtime.map(|it| it.0);
        if let Some(text) = self.backend {
            let backend: BackendRef = text.0.parse().map_err(invalid)?;
            profile
                .name_backend(backend)
                .map_err(|why| Error::new(Code::Conflict, Stage::Parse, why))?;
        }
        profile.image = self.image.map(|it| it.0);
        Ok(profile)
    }
}

/// As they are written, read.
pub fn destinations(list: BTreeSet<Destination>) -> Result<BTreeSet<HostPort>> {
    let read = |it: Destination| it.0.parse().map_err(|error| invalid(format!("{error}")));
    list.into_iter().map(read).collect()
}

fn either(field: LimitField, one: Result<Option<u64>>, other: Option<u64>) -> Result<Option<u64>> {
    match (one?, other) {
        (Some(one), Some(other)) if one != other => Err(said_twice(field.key())),
        (one, other) => Ok(one.or(other)),
    }
}

fn said_twice(field: &str) -> Error {
    Error::new(
        Code::Conflict,
        Stage::Parse,
        format!("`{field}` is given twice, under two names"),
    )
}
