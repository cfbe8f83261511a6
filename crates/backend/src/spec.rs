//! What a sandbox is asked to be, and what to run in it.

use std::ffi::CString;
use std::fmt;
use std::path::PathBuf;

use glovebox_model::{Access, ByteString, Limits, Profile, SecretName};
use glovebox_workspace::Dir;

use crate::host_mount::HostMount;

/// A directory of the host's, given by handle so that nobody can exchange it under way.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'dir> {
    pub directory: &'dir Dir,
    pub access: Access,
}

/// A directory or file of the host's shown read-only at a path of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainMount {
    pub host: PathBuf,
    pub guest: PathBuf,
}

/// A link in the sandbox's own root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainLink {
    pub guest: PathBuf,
    pub target: PathBuf,
}

/// What stands at one of the three places of a workspace.
#[derive(Debug, Clone, Copy)]
pub enum Place<'dir> {
    /// Nothing of the host's; the working directory is part of the scratch space then, and the
    /// artifacts are part of a layer in memory, if there is one.
    Empty,
    Tree(Tree<'dir>),
    /// A directory that is known only when the sandbox is given to an exec.
    Later(Access),
}

/// Where the writes of one exec go instead of into its workspace.
#[derive(Debug, Clone, Copy)]
pub enum Layer<'dir> {
    /// A directory on disk with two empty ones in it, `upper` and `work`. What is written there has
    /// to be watched.
    Disk(&'dir Dir),
    /// Memory, which the kernel limits. It counts as the sandbox's memory, so this much must be
    /// left of that.
    Memory { bytes: u64, files: u64 },
    /// Nothing can be written: for a workspace that is only read.
    None,
}

/// What stands over a workspace in one sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'dir> {
    /// Entries that stand before the workspace's own. A name in it stays as it is there, whatever
    /// happens to that name in the workspace. Directories in it carry the mode and owner of those
    /// that they stand before.
    pub over: Option<&'dir Dir>,
    pub writes: Layer<'dir>,
}

impl<'dir> From<Layer<'dir>> for Layers<'dir> {
    fn from(writes: Layer<'dir>) -> Self {
        Self { over: None, writes }
    }
}

impl Layer<'_> {
    /// As much memory as these limits leave for it: filling it must end in "no space left", before
    /// it and the scratch space together use up the sandbox's memory.
    pub fn in_memory(limits: &Limits) -> Self {
        let (bytes, files) = Self::memory_of(limits);
        Self::Memory { bytes, files }
    }

    /// How many bytes and files that is.
    pub fn memory_of(limits: &Limits) -> (u64, u64) {
        let bytes = limits.disk_bytes.get().min(limits.memory_bytes.get() / 4);
        (bytes, limits.disk_files.get())
    }
}

#[derive(Debug)]
pub struct Spec<'dir> {
    pub profile: &'dir Profile,
    pub work: Place<'dir>,
    pub inputs: Place<'dir>,
    pub artifacts: Place<'dir>,
    /// The home directory, when it outlives the sandbox.
    pub home: Option<&'dir Dir>,
    /// The root of an image, instead of the host's own programs.
    pub image: Option<&'dir Dir>,
    pub toolchains: Vec<ToolchainMount>,
    pub links: Vec<ToolchainLink>,
    pub caches: Vec<CacheMount<'dir>>,
    /// Directories of the host's that the operator granted.
    pub mounts: Vec<&'dir HostMount>,
    /// Covered in the sandbox's own root, where they are: neither read nor entered.
    pub masked: Vec<PathBuf>,
    /// No file may get larger, where that is less than the profile says.
    pub largest_file: Option<u64>,
    /// A bundle of certificates in PEM, shown where programs look for those that they trust, and
    /// at `/run/ca-certificates.crt` in any case.
    pub trust: Option<&'dir [u8]>,
    pub secrets: SecretFiles,
    /// What is told of the programs while they run. Such a sandbox is made for one run.
    pub observe: Option<Observe>,
}

impl<'dir> Spec<'dir> {
    /// With nothing in it but what the profile says.
    pub fn new(profile: &'dir Profile) -> Self {
        Self {
            profile,
            work: Place::Empty,
            inputs: Place::Empty,
            artifacts: Place::Empty,
            home: None,
            image: None,
            toolchains: Vec::new(),
            links: Vec::new(),
            caches: Vec::new(),
            mounts: Vec::new(),
            masked: Vec::new(),
            largest_file: None,
            trust: None,
            secrets: SecretFiles::Never,
            observe: None,
        }
    }
}

/// How a sandbox is observed. Nothing is forbidden or allowed by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observe {
    /// It always has a way out, whatever its profile says, and a socket by which tools tell of
    /// themselves: who asks for it serves both, and decides there what really leaves. What is addressed
    /// and what is written is told too.
    pub simulates: bool,
    /// The same is told where nothing is simulated: what was tried and refused is seen nowhere else.
    pub attempts: bool,
    /// Files that are opened to be read are told too.
    pub reads: bool,
    /// A program of the host's that is shown as `/run/glovebox/glovebox-effect`, for programs that
    /// tell of themselves.
    pub effect_command: Option<PathBuf>,
}

/// Whether runs can have secrets as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretFiles {
    #[default]
    Never,
    /// At `/run/secrets`, in memory, each for its run alone.
    PerRun,
}

/// One secret of one run. The backend keeps no copy of it.
#[derive(Clone, Copy)]
pub struct Secret<'run> {
    pub name: &'run SecretName,
    pub value: &'run [u8],
    pub form: SecretForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretForm {
    /// `/run/secrets/NAME`, for the sandbox's user alone.
    File,
    /// An open descriptor: 3 for the first of them, 4 for the next.
    Descriptor,
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}, {:?})", self.name, self.form)
    }
}

/// What programs may reuse, at a path of its own.
#[derive(Debug, Clone)]
pub struct CacheMount<'dir> {
    pub tree: Tree<'dir>,
    pub guest: PathBuf,
}

/// The directories of one exec, for the places that were left for later.
#[derive(Debug, Clone, Copy)]
pub struct ExecDirs<'dir> {
    pub work: Option<&'dir Dir>,
    pub inputs: Option<&'dir Dir>,
    pub artifacts: &'dir Dir,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub argv: Vec<ByteString>,
    /// Complete: nothing is inherited.
    pub env: Vec<(ByteString, ByteString)>,
    /// Absolute, inside.
    pub cwd: ByteString,
    /// Where commands are looked for, inside.
    pub path: Vec<ByteString>,
}

/// Types without NUL on both sides make this conversion total.
pub(crate) fn c_string(bytes: &ByteString) -> CString {
    CString::new(bytes.as_bytes()).unwrap_or_default()
}
