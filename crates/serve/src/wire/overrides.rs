//! The policy that a request asks for: the names of the configuration, and those of system 0.

use std::collections::BTreeSet;

use glovebox_model::{
    Access, BackendRef, Code, Guarantee, LimitsDemand, NetworkMode, PartialProfile, SecurityMode,
    Tier,
};
use glovebox_policy::LimitField;
use serde::Deserialize;
use utoipa::ToSchema;

use super::amount::{Duration, Processors, Size};
use super::{BackendText, Destination, EnvPattern, ImageName, RuntimeName};
use crate::failure::{Answer, Failure};

/// What the request wants of its policy; never more than policy allows. A field that is not set
/// has no opinion.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyOverrides {
    /// Time from start to end.
    timeout: Option<Duration>,
    /// Processor time of all processes together.
    cpu_time: Option<Duration>,
    memory: Option<Size>,
    #[schema(minimum = 1, maximum = 4194304)]
    pids: Option<u64>,
    cpus: Option<Processors>,
    /// New bytes on disk.
    disk: Option<Size>,
    /// New files on disk.
    #[schema(minimum = 16, maximum = 4294967296i64)]
    files: Option<u64>,
    stdout: Option<Size>,
    stderr: Option<Size>,
    artifacts: Option<Size>,
    #[schema(minimum = 16, maximum = 1048576)]
    open_files: Option<u64>,
    /// Graphics processors.
    #[schema(minimum = 0, maximum = 1024)]
    gpus: Option<u64>,
    /// Tensor processors.
    #[schema(minimum = 0, maximum = 1024)]
    tpus: Option<u64>,
    /// Bytes over the network, in both directions together.
    egress_bytes: Option<Size>,
    /// Connections over the network.
    #[schema(minimum = 1, maximum = 4294967296i64)]
    egress_connections: Option<u64>,
    /// The network is closed this long after the start.
    network_time: Option<Duration>,
    network: Option<NetworkMode>,
    #[schema(max_items = 1000)]
    allow_net: Option<BTreeSet<Destination>>,
    workspace: Option<Access>,
    #[schema(max_items = 1000)]
    env_allow: Option<BTreeSet<EnvPattern>>,
    tier: Option<Tier>,
    security: Option<SecurityMode>,
    limits_demand: Option<LimitsDemand>,
    /// Guarantees that must be the kernel's, beside those that policy demands anyway.
    #[schema(max_items = 100)]
    require: Option<BTreeSet<Guarantee>>,
    backend: Option<BackendText>,
    runtime: Option<RuntimeName>,
    image: Option<ImageName>,
    /// Another name of `timeout`.
    #[schema(minimum = 1, maximum = 2592000000i64)]
    timeout_ms: Option<u64>,
    /// Another name of `memory`.
    #[schema(minimum = 8, maximum = 67108864)]
    memory_mb: Option<u64>,
    /// Another name of `cpus`.
    cpu_cores: Option<Processors>,
    /// Another name of `stdout`.
    #[schema(minimum = 1, maximum = 68719476736i64)]
    max_stdout_bytes: Option<u64>,
    /// Another name of `stderr`.
    #[schema(minimum = 1, maximum = 68719476736i64)]
    max_stderr_bytes: Option<u64>,
    /// Another name of `artifacts`.
    #[schema(minimum = 0, maximum = 1125899906842624i64)]
    max_artifacts_bytes_total: Option<u64>,
    /// Another name of `network`.
    net: Option<NetOverrides>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetOverrides {
    mode: Option<NetworkMode>,
}

impl PolicyOverrides {
    /// What is said about each limit, under either of its names.
    fn limits(&self) -> [(LimitField, Answer<Option<u64>>); LimitField::COUNT] {
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
            };
            (field, said)
        })
    }

    pub(crate) fn profile(self) -> Answer<PartialProfile> {
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
            return Err(Failure::new(
                Code::Conflict,
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
            let backend: BackendRef = text.0.parse().map_err(Failure::invalid)?;
            profile
                .name_backend(backend)
                .map_err(|why| Failure::new(Code::Conflict, why))?;
        }
        profile.image = self.image.map(|it| it.0);
        Ok(profile)
    }
}

pub(super) fn destinations(
    list: BTreeSet<Destination>,
) -> Answer<BTreeSet<glovebox_model::HostPort>> {
    let read = |it: Destination| {
        it.0.parse()
            .map_err(|error| Failure::invalid(format!("{error}")))
    };
    list.into_iter().map(read).collect()
}

fn either(field: LimitField, one: Answer<Option<u64>>, other: Option<u64>) -> Answer<Option<u64>> {
    match (one?, other) {
        (Some(one), Some(other)) if one != other => Err(said_twice(field.key())),
        (one, other) => Ok(one.or(other)),
    }
}

fn said_twice(field: &str) -> Failure {
    Failure::new(
        Code::Conflict,
        format!("`{field}` is given twice, under two names"),
    )
}
