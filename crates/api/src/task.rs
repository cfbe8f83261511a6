//! A task's own wishes for its sandbox, in the words of workflow engines: what they mean here.
//! Whatever cannot be kept is refused: nobody is given less than they asked for without knowing.

use glovebox_model::{
    Access, BackendName, Bytes, Code, Count, Cpus, Error, HostPort, Lifetime, Millis, Mode,
    NetworkMode, PartialLimits, PartialProfile, Result, Stage,
};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// `sandboxConfig` of a task.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxTask {
    /// Without a sandbox it would run on the host itself, which an operator must have opened.
    #[serde(default = "crate::yes")]
    pub enabled: bool,
    /// Forces `type` `simulation`.
    #[serde(default)]
    pub simulation_mode: bool,
    #[serde(default, rename = "type")]
    pub kind: TaskKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<TaskPermissions>,
    /// A sandbox that outlives the exec: its agent's.
    #[serde(default)]
    pub persistent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Effects are captured and nothing happens.
    Simulation,
    /// Policy is asked, and nothing is run.
    #[default]
    Mock,
    /// The native backend.
    Process,
    /// The docker backend.
    Container,
    /// There is none yet: refused.
    Vm,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskPermissions {
    #[serde(default)]
    pub filesystem: FilesystemPermissions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPermissions>,
    #[serde(default)]
    pub resources: ResourcePermissions,
    /// None are ever given.
    #[serde(default, rename = "capabilities")]
    #[schema(max_items = 0)]
    pub _capabilities: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesystemPermissions {
    /// `ro` for the workspace when nothing is `rw`.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub read_only_paths: Vec<String>,
    /// The workspace, or nothing.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub read_write_paths: Vec<String>,
    #[schema(minimum = 4096, maximum = 1099511627776i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_disk_usage: Option<u64>,
    #[schema(minimum = 1, maximum = 100000000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_count: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkPermissions {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default)]
    #[schema(max_items = 64)]
    pub allowed_domains: Vec<String>,
    #[serde(default)]
    #[schema(max_items = 16)]
    pub allowed_ports: Vec<Port>,
}

#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourcePermissions {
    /// Processors, in thousandths.
    #[schema(minimum = 100, maximum = 1024000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_milli: Option<u32>,
    /// Bytes.
    #[schema(minimum = 1048576, maximum = 1099511627776i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<u64>,
    /// Milliseconds.
    #[schema(minimum = 1, maximum = 1209600000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_execution_time: Option<u64>,
    #[schema(minimum = 1, maximum = 32768)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Port(u16);

impl PartialSchema for Port {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(65535))
            .into()
    }
}

impl ToSchema for Port {}

/// What it comes to.
#[derive(Debug)]
pub struct TaskTerms {
    pub mode: Mode,
    /// Of the request's layer.
    pub overrides: PartialProfile,
    pub lifetime: Option<Lifetime>,
}

impl SandboxTask {
    pub fn terms(self) -> Result<TaskTerms> {
        let kind = match self.simulation_mode {
            true => TaskKind::Simulation,
            false => self.kind,
        };
        let (mode, backend) = match (self.enabled, kind) {
            (false, _) => (Mode::Run, BackendName::Host),
            (true, TaskKind::Simulation) => (Mode::Simulate, BackendName::Native),
            (true, TaskKind::Mock) => (Mode::Mock, BackendName::Native),
            (true, TaskKind::Process) => (Mode::Run, BackendName::Native),
            (true, TaskKind::Container) => (Mode::Run, BackendName::Docker),
            (true, TaskKind::Vm) => {
                let message = "there is no backend `vm` here";
                return Err(Error::new(Code::BackendUnavailable, Stage::Parse, message)
                    .hint("`container` with the runtime `runsc` has a kernel of its own"));
            }
        };
        if self.persistent && mode != Mode::Run {
            return Err(refuse(
                "what is simulated or mocked has no sandbox that could stay",
            ));
        }
        let mut overrides = self.permissions.unwrap_or_default().overrides()?;
        overrides.backend = Some(backend);
        Ok(TaskTerms {
            mode,
            overrides,
            lifetime: self.persistent.then_some(Lifetime::Agent),
        })
    }
}

impl TaskPermissions {
    fn overrides(self) -> Result<PartialProfile> {
        let FilesystemPermissions {
            read_only_paths,
            read_write_paths,
            max_disk_usage,
            max_file_count,
        } = self.filesystem;
        for path in read_only_paths.iter().chain(&read_write_paths) {
            if !["/workspace", "/workspace/work", "."].contains(&path.trim_end_matches('/')) {
                let shown: String = path.chars().take(80).collect();
                return Err(refuse(format!(
                    "`{shown}` is no part of a sandbox that can be given"
                ))
                .hint("the workspace is `/workspace/work`; other directories are `mounts`"));
            }
        }
        let workspace = match (read_only_paths.is_empty(), read_write_paths.is_empty()) {
            (_, false) | (true, true) => None,
            (false, true) => Some(Access::Ro),
        };
        let (network, allow_net) = match self.network {
            None => (None, None),
            Some(it) if !it.enabled => (Some(NetworkMode::None), None),
            Some(it) => {
                let ports = match it.allowed_ports.is_empty() {
                    true => vec![80, 443],
                    false => it.allowed_ports.iter().map(|port| port.0).collect(),
                };
                let mut all = std::collections::BTreeSet::new();
                for domain in &it.allowed_domains {
                    for port in &ports {
                        let parsed = format!("{domain}:{port}").parse::<HostPort>();
                        all.insert(parsed.map_err(|error| refuse(error.to_string()))?);
                    }
                }
                (Some(NetworkMode::Allowlist), Some(all))
            }
        };
        let resources = self.resources;
        Ok(PartialProfile {
            limits: PartialLimits {
                cpus_milli: resources.max_cpu_milli.map(Cpus),
                memory_bytes: resources.max_memory.map(Bytes),
                wall_ms: resources.max_execution_time.map(Millis),
                pids: resources.max_processes.map(Count),
                disk_bytes: max_disk_usage.map(Bytes),
                disk_files: max_file_count.map(Count),
                ..PartialLimits::default()
            },
            workspace,
            network,
            allow_net,
            ..PartialProfile::default()
        })
    }
}

/// A well-formed wish that nobody can keep.
fn refuse(message: impl Into<String>) -> Error {
    Error::new(Code::Conflict, Stage::Parse, message)
}
