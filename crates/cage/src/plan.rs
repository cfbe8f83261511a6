//! What a sandbox is made of, as data: pid 1 runs the steps in order, one loop, nothing else. A test
//! can read a plan, and remove any one step of it.

use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use crate::seccomp::Filter;

/// What every sandbox is called inside.
pub(crate) const HOSTNAME: &CStr = c"sandbox";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub namespaces: Vec<Namespace>,
    pub ids: Ids,
    /// The v2 cgroup that pid 1 is born in; on v1 it inherits the keeper's.
    pub cgroup: Option<CString>,
    /// Who opens what is mounted.
    pub opener: Opener,
    /// Run by pid 1 before anything else.
    pub steps: Vec<Step>,
    /// Run by the payload's process just before it becomes the payload.
    pub payload: Vec<PayloadStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Namespace {
    User,
    Mount,
    Pid,
    Net,
    Ipc,
    Uts,
    Cgroup,
}

impl Namespace {
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Mount,
        Self::Pid,
        Self::Net,
        Self::Ipc,
        Self::Uts,
        Self::Cgroup,
    ];

    pub(crate) const fn flag(self) -> u64 {
        (match self {
            Self::User => libc::CLONE_NEWUSER,
            Self::Mount => libc::CLONE_NEWNS,
            Self::Pid => libc::CLONE_NEWPID,
            Self::Net => libc::CLONE_NEWNET,
            Self::Ipc => libc::CLONE_NEWIPC,
            Self::Uts => libc::CLONE_NEWUTS,
            Self::Cgroup => libc::CLONE_NEWCGROUP,
        }) as u64
    }
}

/// The one user and group that exist inside, and who they are outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    pub inner: u32,
    pub outer_uid: u32,
    pub outer_gid: u32,
    /// An ordinary user may map its group only after giving up `setgroups`.
    pub deny_setgroups: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Attribute {
    ReadOnly,
    NoSuid,
    NoDev,
    NoExec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opener {
    /// Root: it may open what the sandbox's user may not even reach.
    Keeper,
    /// An ordinary user has power over mounts only in the sandbox's own namespaces.
    Init,
}

/// Where a mounted tree comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A path of the host. With an identity (device, inode) it must still be that very directory.
    Path {
        path: CString,
        identity: Option<(u64, u64)>,
    },
    /// The n-th descriptor handed over with the plan. Needs root outside: its owner on disk is
    /// shown as the sandbox's user, so that files keep their owner.
    Handle { index: usize, uid: u32, gid: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    DropGroups,
    BecomeUser,
    /// Dies when the keeper dies.
    DieWithKeeper,
    Hostname,
    LoopbackUp,
    /// An empty memory file system with a quota, where the root is built. It also holds the scratch
    /// space: the root itself is sealed later, its writable places are not.
    NewRoot {
        bytes: Option<u64>,
        files: Option<u64>,
        attributes: Vec<Attribute>,
    },
    Directory {
        path: CString,
        mode: u32,
    },
    Symlink {
        path: CString,
        target: CString,
    },
    Mount {
        source: Source,
        target: CString,
        attributes: Vec<Attribute>,
    },
    /// Directories of the root's own that stay writable, with the attributes it has now.
    Scratch {
        places: Vec<(CString, u32)>,
    },
    Proc {
        hide_others: bool,
        attributes: Vec<Attribute>,
    },
    Terminals {
        attributes: Vec<Attribute>,
    },
    /// Covers one file with the sandbox's own /dev/null.
    Mask(CString),
    EnterRoot,
    DetachHost,
    SealRoot {
        attributes: Vec<Attribute>,
    },
    /// Only the first n processors of those the caller may use.
    Processors(u32),
    EmptyBoundingSet,
    NoNewPrivileges,
    DropCapabilities,
    FileRules(Vec<FileRule>),
    /// Nobody inside can look into pid 1.
    Undumpable,
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRule {
    pub path: CString,
    pub rights: Rights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rights {
    /// Read files and directories, execute.
    Read,
    /// Everything a directory of one's own needs.
    Write,
    /// Read, write and control one device file.
    Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayloadStep {
    /// A session of its own, so no terminal of the host's.
    NewSession,
    DefaultSignals,
    Umask(u32),
    Limit(Resource, u64),
    CloseOthers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Resource {
    Core,
    OpenFiles,
    FileSize,
    CpuSeconds,
    Processes,
    Data,
    LockedMemory,
    MessageQueues,
    RealtimePriority,
}

impl Step {
    /// The name of the step in errors and reports.
    pub fn label(&self) -> String {
        match self {
            Self::DropGroups => "drop groups".into(),
            Self::BecomeUser => "become user".into(),
            Self::DieWithKeeper => "die with keeper".into(),
            Self::Hostname => "hostname".into(),
            Self::LoopbackUp => "loopback up".into(),
            Self::NewRoot { .. } => "new root".into(),
            Self::Directory { path, .. } => format!("directory {}", path.to_string_lossy()),
            Self::Symlink { path, .. } => format!("link {}", path.to_string_lossy()),
            Self::Mount { target, .. } => format!("mount {}", target.to_string_lossy()),
            Self::Scratch { .. } => "scratch".into(),
            Self::Proc { .. } => "proc".into(),
            Self::Terminals { .. } => "terminals".into(),
            Self::Mask(path) => format!("mask {}", path.to_string_lossy()),
            Self::EnterRoot => "enter root".into(),
            Self::DetachHost => "detach host".into(),
            Self::SealRoot { .. } => "seal root".into(),
            Self::Processors(_) => "processors".into(),
            Self::EmptyBoundingSet => "empty bounding set".into(),
            Self::NoNewPrivileges => "no new privileges".into(),
            Self::DropCapabilities => "drop capabilities".into(),
            Self::FileRules(_) => "file rules".into(),
            Self::Undumpable => "undumpable".into(),
            Self::Filter(_) => "filter".into(),
        }
    }
}

impl PayloadStep {
    pub fn label(self) -> String {
        match self {
            Self::NewSession => "new session".into(),
            Self::DefaultSignals => "default signals".into(),
            Self::Umask(_) => "umask".into(),
            Self::Limit(resource, _) => format!("limit {resource:?}"),
            Self::CloseOthers => "close others".into(),
        }
    }
}
