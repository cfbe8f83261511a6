//! What the engine says about itself, and what follows from that for each guarantee.

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_model::{Evidence, Grade, Guarantee, Isolation, NetworkMode, Result};
use serde::Deserialize;

use super::cli::{Cli, Program, unreachable};
use super::inspect::read;

const PATIENCE: Duration = Duration::from_secs(10);
/// gVisor has about 60 threads beside a small program, on two processors. With fewer it hangs, or
/// ends the program with a code of its own; a third more, for busy hosts.
const GVISOR_LEAST: u64 = 80;

/// An engine that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    pub program: Program,
    pub cli: String,
    pub client_version: String,
    pub server_version: String,
    pub context: String,
    /// Each with the program behind it.
    pub runtimes: BTreeMap<String, String>,
    pub default_runtime: String,
    pub cgroup_driver: String,
    pub cgroup_version: String,
    pub cpus: u32,
    pub kernel: String,
    pub seccomp: bool,
    /// Ids inside are other ids outside.
    pub own_users: bool,
    /// Run by an ordinary user.
    pub rootless: bool,
    pub limits_memory: bool,
    pub limits_pids: bool,
    pub limits_cpu: bool,
    /// Of the default image; not known before it was looked for.
    pub image_present: Option<bool>,
}

/// What an engine gives here and now.
#[derive(Debug, Clone)]
pub struct Probe {
    pub usable: Result<EngineFacts>,
    pub evidence: Vec<Evidence>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct DockerInfo {
    server_version: String,
    cgroup_driver: String,
    cgroup_version: String,
    kernel_version: String,
    #[serde(rename = "NCPU")]
    cpus: u32,
    runtimes: BTreeMap<String, DockerRuntime>,
    default_runtime: String,
    security_options: Vec<String>,
    memory_limit: bool,
    pids_limit: bool,
    cpu_cfs_quota: bool,
    #[serde(rename = "OSType")]
    os_type: String,
    server_errors: Vec<String>,
    client_info: ClientInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DockerRuntime {
    path: String,
    #[serde(rename = "runtimeType")]
    kind: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ClientInfo {
    version: String,
    context: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodmanInfo {
    host: PodmanHost,
    version: PodmanVersion,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodmanHost {
    cgroup_manager: String,
    cgroup_version: String,
    cgroup_controllers: Vec<String>,
    cpus: u32,
    kernel: String,
    oci_runtime: PodmanRuntime,
    security: PodmanSecurity,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PodmanRuntime {
    name: String,
    path: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodmanSecurity {
    rootless: bool,
    seccomp_enabled: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct PodmanVersion {
    version: String,
}

impl EngineFacts {
    pub(super) fn ask(cli: &Cli) -> Result<Self> {
        let args: &[&str] = match cli.program {
            Program::Docker => &["info", "--format={{json .}}"],
            Program::Podman => &["info", "--format=json"],
        };
        let answer = cli.ask(args, PATIENCE)?;
        match cli.program {
            Program::Docker => Self::of_docker(cli, read(&answer)?),
            Program::Podman => Ok(Self::of_podman(cli, read(&answer)?)),
        }
    }

    fn of_docker(cli: &Cli, info: DockerInfo) -> Result<Self> {
        // The command itself succeeds when only the engine is missing.
        if info.server_version.is_empty() {
            let why = info.server_errors.first().map(String::as_str);
            return Err(unreachable(why.unwrap_or("it says nothing about itself")));
        }
        if info.os_type != "linux" {
            return Err(unreachable(&format!(
                "its containers are of `{}`, not of Linux",
                info.os_type
            )));
        }
        let option = |name: &str| {
            let name = format!("name={name}");
            let options = info.security_options.iter();
            options
                .filter_map(|option| option.split(',').next())
                .any(|option| option == name)
        };
        let rootless = option("rootless");
        Ok(Self {
            program: Program::Docker,
            cli: cli.path.display().to_string(),
            client_version: info.client_info.version,
            server_version: info.server_version,
            context: info.client_info.context,
            seccomp: option("seccomp"),
            own_users: option("userns") || rootless,
            rootless,
            runtimes: info
                .runtimes
                .into_iter()
                .map(|(name, it)| (name, if it.path.is_empty() { it.kind } else { it.path }))
                .collect(),
            default_runtime: info.default_runtime,
            cgroup_driver: info.cgroup_driver,
            cgroup_version: info.cgroup_version,
            cpus: info.cpus,
            kernel: info.kernel_version,
            limits_memory: info.memory_limit,
            limits_pids: info.pids_limit,
            limits_cpu: info.cpu_cfs_quota,
            image_present: None,
        })
    }

    fn of_podman(cli: &Cli, info: PodmanInfo) -> Self {
        let host = info.host;
        let has = |name: &str| host.cgroup_controllers.iter().any(|it| it == name);
        Self {
            program: Program::Podman,
            cli: cli.path.display().to_string(),
            client_version: info.version.version.clone(),
            server_version: info.version.version,
            context: String::new(),
            seccomp: host.security.seccomp_enabled,
            own_users: host.security.rootless,
            rootless: host.security.rootless,
            limits_memory: has("memory"),
            limits_pids: has("pids"),
            limits_cpu: has("cpu"),
            runtimes: BTreeMap::from([(host.oci_runtime.name.clone(), host.oci_runtime.path)]),
            default_runtime: host.oci_runtime.name,
            cgroup_driver: host.cgroup_manager,
            cgroup_version: host.cgroup_version,
            cpus: host.cpus,
            kernel: host.kernel,
            image_present: None,
        }
    }

    /// Podman takes any runtime that is installed; docker those that it was told of.
    pub(super) fn knows(&self, runtime: &str) -> bool {
        self.program == Program::Podman || self.runtimes.contains_key(runtime)
    }

    /// Whether programs talk to a kernel of their own: gVisor's, or that of a virtual machine.
    pub fn own_kernel(&self, runtime: Option<&str>) -> bool {
        let program = self.program_of(runtime);
        program.starts_with("runsc") || program.starts_with("kata")
    }

    /// The fewest processes that a runtime can be limited to: its own threads count.
    pub(super) fn least_pids(&self, runtime: Option<&str>) -> u64 {
        match self.program_of(runtime).starts_with("runsc") {
            true => GVISOR_LEAST,
            false => 0,
        }
    }

    fn program_of<'a>(&'a self, runtime: Option<&'a str>) -> &'a str {
        let runtime = runtime.unwrap_or(&self.default_runtime);
        let program = self.runtimes.get(runtime).map_or(runtime, String::as_str);
        let program = program.rsplit('/').next().unwrap_or(program);
        program.strip_prefix("io.containerd.").unwrap_or(program)
    }

    /// One line for each guarantee, for a container as it is made by default.
    pub(super) fn evidence(&self, asked: &Asked<'_>) -> Vec<Evidence> {
        let line = |guarantee| {
            let (grade, evidence, fix) = self.judge(guarantee, asked);
            Evidence {
                guarantee,
                grade,
                evidence,
                fix,
            }
        };
        Guarantee::ALL.into_iter().map(line).collect()
    }

    pub(super) fn isolation(&self, asked: &Asked<'_>) -> Isolation {
        let graded = |it| (it, self.judge(it, asked).0);
        Isolation(Guarantee::ALL.into_iter().map(graded).collect())
    }

    fn judge(&self, it: Guarantee, asked: &Asked<'_>) -> (Grade, String, Option<String>) {
        let own_kernel = self.own_kernel(asked.runtime);
        let runtime = asked.runtime.unwrap_or(&self.default_runtime);
        let engine = format!("{:?} {}", self.program, self.server_version);
        let kernel = |how: &str| (Grade::Kernel, format!("{engine}: {how}"), None);
        let missing = |why: &str, fix: &str| {
            let evidence = format!("{engine}: {why}");
            (Grade::Unavailable, evidence, Some(fix.to_owned()))
        };
        let limit = |on: bool, what: &str| {
            if on {
                kernel(&format!(
                    "limits {what} by control group {}",
                    self.cgroup_version
                ))
            } else {
                missing(
                    &format!("does not limit {what}"),
                    "give the engine this control group, or run rootful",
                )
            }
        };
        match it {
            Guarantee::OwnKernel if own_kernel => kernel(&format!(
                "the runtime `{runtime}` answers system calls itself"
            )),
            Guarantee::OwnKernel => missing(
                &format!("the runtime `{runtime}` shares the host's kernel"),
                "install gVisor and set `runtime = \"runsc\"`",
            ),
            Guarantee::OwnUsers if self.own_users => kernel("ids inside are others outside"),
            Guarantee::OwnUsers if own_kernel => kernel("ids are the inner kernel's own"),
            Guarantee::OwnUsers => missing(
                "ids inside are the host's ids",
                "set `userns-remap` for the engine, or use rootless mode or gVisor",
            ),
            Guarantee::FileRules => missing(
                "has no file rules; mounts alone decide",
                "use the `native` backend where rules per file are required",
            ),
            Guarantee::SyscallFilter if own_kernel => kernel("the inner kernel is the filter"),
            Guarantee::SyscallFilter if self.seccomp => kernel("seccomp profile in use"),
            Guarantee::SyscallFilter => missing(
                "was built or started without seccomp",
                "use an engine with seccomp, or gVisor",
            ),
            Guarantee::MemoryLimit => limit(self.limits_memory, "memory"),
            Guarantee::PidsLimit => limit(self.limits_pids, "processes"),
            Guarantee::CpuLimit => limit(self.limits_cpu, "the processor"),
            Guarantee::DiskLimit if asked.read_only_root => (
                Grade::Supervised,
                "the workspace is watched; the rest is memory of a fixed size".to_owned(),
                None,
            ),
            Guarantee::DiskLimit => missing(
                "the container's own root is writable and not counted",
                "set `read_only_root = true`",
            ),
            Guarantee::ReadOnlyRoot if asked.read_only_root => kernel("`--read-only`"),
            Guarantee::ReadOnlyRoot => {
                missing("the root is writable", "set `read_only_root = true`")
            }
            Guarantee::NoNetwork if asked.network == NetworkMode::Unrestricted => {
                missing("the policy grants a network", "`network = \"none\"`")
            }
            Guarantee::EgressOnly if asked.network == NetworkMode::Unrestricted => missing(
                "a container reaches whatever its engine's network does",
                "use the `native` backend",
            ),
            // No network namespace holds AF_VSOCK, and engines' own filters leave ways to it.
            Guarantee::NoNetwork | Guarantee::EgressOnly if own_kernel => {
                kernel("`--network none`, and the inner kernel has no AF_VSOCK")
            }
            Guarantee::NoNetwork | Guarantee::EgressOnly if self.seccomp && asked.own_filter => {
                kernel("`--network none`, and our filter of system calls closes AF_VSOCK")
            }
            Guarantee::NoNetwork | Guarantee::EgressOnly => missing(
                "`--network none`, but nothing that we know of closes AF_VSOCK",
                "use an engine with seccomp and leave `seccomp_profile` out, or gVisor",
            ),
            Guarantee::OwnPids => kernel("a process namespace, with an init of its own"),
            Guarantee::OwnMounts => kernel("a mount namespace"),
            Guarantee::OwnIpc => kernel("`--ipc private`"),
            Guarantee::OwnHostname => kernel("a host name of its own"),
            Guarantee::OwnCgroupView => kernel("`--cgroupns private`"),
            Guarantee::NoCapabilities => kernel("`--cap-drop ALL`, never root"),
            Guarantee::NoNewPrivileges => kernel("`no-new-privileges`"),
            Guarantee::NoSurvivors => kernel("a container ends with all its processes"),
        }
    }
}

/// What of an exec's wishes decides over guarantees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) runtime: Option<&'a str>,
    pub(super) read_only_root: bool,
    pub(super) network: NetworkMode,
    /// The filter of system calls is ours, and not one that the operator names.
    pub(super) own_filter: bool,
}

/// Nothing can be promised by an engine that does not answer.
pub(super) fn no_evidence(why: &glovebox_model::Error) -> Vec<Evidence> {
    let line = |guarantee| Evidence {
        guarantee,
        grade: Grade::Unavailable,
        evidence: why.to_string(),
        fix: why.hints.first().cloned(),
    };
    Guarantee::ALL.into_iter().map(line).collect()
}
