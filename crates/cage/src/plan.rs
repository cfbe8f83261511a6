//! What a sandbox is made of, as data: pid 1 runs the steps in order, one loop, nothing else. A test
//! can read a plan, and remove any one step of it.

use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use crate::observe::Watch;
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
    /// What pid 1 does when the payload has ended.
    pub after: After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum After {
    /// It ends too, and the kernel ends everything else inside.
    End,
    /// It ends everybody else, buries them, reports and waits for what comes next.
    Stay,
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
    /// What lies at a path below the n-th descriptor, as it is: no link is followed on the way.
    Below { index: usize, path: CString },
}

/// Where what is written to a layered tree goes instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upper {
    /// A directory with two empty ones in it, `upper` and `work`.
    Directory(Source),
    /// The same in memory, limited by the kernel. A handle to it comes with the word that the
    /// sandbox is ready, and keeps what was written when the sandbox is gone.
    Memory {
        bytes: u64,
        files: u64,
        /// A further directory of it, `beside`, that stands at this place: one limit for both.
        beside: Option<CString>,
    },
    /// Nothing can be written.
    None,
}

/// What makes the way out the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Steering {
    /// Every address is the sandbox itself.
    Route,
    /// All TCP and all questions for names go to the sockets of the way out.
    Redirect,
    /// Everything else is refused.
    Refuse,
}

impl Steering {
    pub const ALL: [Self; 3] = [Self::Route, Self::Redirect, Self::Refuse];
}

/// Who hears that what was attached is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Pid 1, which has an order that waits for it.
    Init,
    Caller,
}

/// A tree that goes into a sandbox that stands already, onto a directory of its sealed root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub source: Source,
    pub target: CString,
    pub attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    DropGroups,
    BecomeUser,
    /// Dies when the keeper dies.
    DieWithKeeper,
    Hostname,
    LoopbackUp,
    /// All that is sent goes to sockets that are served outside, and come with the word that the
    /// sandbox is ready. Only in a network namespace of the sandbox's own.
    WayOut(Vec<Steering>),
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
    /// A tree that looks writable and never is written: everything goes to `upper`, which nobody
    /// inside can reach in any other way.
    Layer {
        lower: Source,
        /// A directory whose entries stand before those of `lower`. A name that it holds stays as it
        /// is there, whatever happens to that name in `lower`.
        over: Option<Source>,
        upper: Upper,
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
    /// Covers one file with the sandbox's own /dev/null, a directory with an empty one.
    Mask(CString),
    /// A file of the root's own.
    File {
        path: CString,
        content: Vec<u8>,
    },
    /// Shows one file of the root's own in the place of another, if that is there.
    Cover {
        path: CString,
        with: CString,
    },
    /// A directory in memory that is never written to disk, filled by pid 1 alone, for one payload
    /// at a time.
    Cupboard {
        path: CString,
        attributes: Vec<Attribute>,
    },
    EnterRoot,
    DetachHost,
    /// A socket of the root's own, which programs inside may connect to. It is served outside, and
    /// comes with the word that the sandbox is ready.
    Effects(CString),
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
    /// From here on these calls are seen outside before they are done, through a descriptor that comes
    /// with the word that the sandbox is ready. Nothing is denied by it.
    Observe {
        watches: Vec<Watch>,
        /// What pid 1 says and its end are not observed: it shows this number, which nobody else
        /// knows.
        seal: u64,
    },
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

impl Plan {
    /// How the way out is made, where there is one.
    pub(crate) fn steering(&self) -> Option<&[Steering]> {
        self.steps.iter().find_map(|step| match step {
            Step::WayOut(steering) => Some(steering.as_slice()),
            _ => None,
        })
    }

    /// What lets pid 1's own calls through, where calls are observed.
    pub(crate) fn seal(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Observe { seal, .. } => Some(*seal),
            _ => None,
        })
    }
}

impl Step {
    /// What it mounts, in the order in which it takes them.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&Source, &CStr)> {
        let (sources, target) = match self {
            Self::Mount { source, target, .. } => ([Some(source), None, None], Some(target)),
            Self::Layer {
                lower,
                over,
                upper,
                target,
                ..
            } => {
                let upper = match upper {
                    Upper::Directory(upper) => Some(upper),
                    Upper::Memory { .. } | Upper::None => None,
                };
                ([Some(lower), over.as_ref(), upper], Some(target))
            }
            _ => ([None; 3], None),
        };
        let sources = sources.into_iter().flatten();
        sources.filter_map(move |source| Some((source, target?.as_c_str())))
    }

    /// The name of the step in errors and reports.
    pub fn label(&self) -> String {
        match self {
            Self::DropGroups => "drop groups".into(),
            Self::BecomeUser => "become user".into(),
            Self::DieWithKeeper => "die with keeper".into(),
            Self::Hostname => "hostname".into(),
            Self::LoopbackUp => "loopback up".into(),
            Self::WayOut(_) => "way out".into(),
            Self::NewRoot { .. } => "new root".into(),
            Self::Directory { path, .. } => format!("directory {}", path.to_string_lossy()),
            Self::Symlink { path, .. } => format!("link {}", path.to_string_lossy()),
            Self::Mount { target, .. } => format!("mount {}", target.to_string_lossy()),
            Self::Layer { target, .. } => format!("layer {}", target.to_string_lossy()),
            Self::Scratch { .. } => "scratch".into(),
            Self::Proc { .. } => "proc".into(),
            Self::Terminals { .. } => "terminals".into(),
            Self::Mask(path) => format!("mask {}", path.to_string_lossy()),
            Self::File { path, .. } => format!("file {}", path.to_string_lossy()),
            Self::Cover { path, .. } => format!("cover {}", path.to_string_lossy()),
            Self::Cupboard { path, .. } => format!("cupboard {}", path.to_string_lossy()),
            Self::EnterRoot => "enter root".into(),
            Self::DetachHost => "detach host".into(),
            Self::Effects(_) => "effects".into(),
            Self::SealRoot { .. } => "seal root".into(),
            Self::Processors(_) => "processors".into(),
            Self::EmptyBoundingSet => "empty bounding set".into(),
            Self::NoNewPrivileges => "no new privileges".into(),
            Self::DropCapabilities => "drop capabilities".into(),
            Self::FileRules(_) => "file rules".into(),
            Self::Undumpable => "undumpable".into(),
            Self::Observe { .. } => "observe".into(),
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
