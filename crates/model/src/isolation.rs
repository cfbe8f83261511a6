//! What a backend promises and what was enforced. Isolation is there or the exec is refused;
//! limits have a grade.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing a backend can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Guarantee {
    OwnUsers,
    OwnPids,
    OwnMounts,
    OwnIpc,
    OwnHostname,
    OwnCgroupView,
    NoNetwork,
    /// Nothing is sent but through us, which decides where to.
    EgressOnly,
    ReadOnlyRoot,
    NoCapabilities,
    NoNewPrivileges,
    SyscallFilter,
    FileRules,
    NoSurvivors,
    MemoryLimit,
    PidsLimit,
    CpuLimit,
    DiskLimit,
    /// The program's system calls are answered by a kernel of the sandbox's own.
    OwnKernel,
}

impl Guarantee {
    pub const ALL: [Self; 19] = [
        Self::OwnUsers,
        Self::OwnPids,
        Self::OwnMounts,
        Self::OwnIpc,
        Self::OwnHostname,
        Self::OwnCgroupView,
        Self::NoNetwork,
        Self::EgressOnly,
        Self::ReadOnlyRoot,
        Self::NoCapabilities,
        Self::NoNewPrivileges,
        Self::SyscallFilter,
        Self::FileRules,
        Self::NoSurvivors,
        Self::MemoryLimit,
        Self::PidsLimit,
        Self::CpuLimit,
        Self::DiskLimit,
        Self::OwnKernel,
    ];

    /// A limit may be supervised; everything else is enforced by the kernel or refused.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::MemoryLimit | Self::PidsLimit | Self::CpuLimit | Self::DiskLimit
        )
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnUsers => "own_users",
            Self::OwnPids => "own_pids",
            Self::OwnMounts => "own_mounts",
            Self::OwnIpc => "own_ipc",
            Self::OwnHostname => "own_hostname",
            Self::OwnCgroupView => "own_cgroup_view",
            Self::NoNetwork => "no_network",
            Self::EgressOnly => "egress_only",
            Self::ReadOnlyRoot => "read_only_root",
            Self::NoCapabilities => "no_capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::SyscallFilter => "syscall_filter",
            Self::FileRules => "file_rules",
            Self::NoSurvivors => "no_survivors",
            Self::MemoryLimit => "memory_limit",
            Self::PidsLimit => "pids_limit",
            Self::CpuLimit => "cpu_limit",
            Self::DiskLimit => "disk_limit",
            Self::OwnKernel => "own_kernel",
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a guarantee is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    Unavailable,
    /// Watched from outside and ended when passed; may overshoot for a moment.
    Supervised,
    Kernel,
}

/// What a probe saw on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Evidence {
    pub guarantee: Guarantee,
    pub grade: Grade,
    pub evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What was enforced for one exec.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Isolation(pub BTreeMap<Guarantee, Grade>);
