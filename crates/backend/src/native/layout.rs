//! From a spec to the cage's plan: which namespaces, mounts, rules and limits, in which order.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use glovebox_cage::seccomp::{Filter, Group};
use glovebox_cage::{
    Attribute, FileRule, Ids, Namespace, Opener, PayloadStep, Plan, Resource, Rights, Source, Step,
};
use glovebox_model::{Access, Code, Error, Limits, Result, Stage};

use super::etc::Etc;
use super::facts::{Facts, Privilege};
use crate::spec::{Spec, Tree};

/// The one user inside.
const INNER: u32 = 1000;
/// Ids for sandboxes that root starts: above every range that distributions and container tools
/// give out, below the sign bit that some programs stumble over.
const OUTER_FIRST: u32 = 0x7000_0000;
const OUTER_MASK: u32 = 0x0fff_ffff;

const READ_ONLY: [Attribute; 3] = [Attribute::ReadOnly, Attribute::NoSuid, Attribute::NoDev];
const DEVICE: [Attribute; 3] = [Attribute::ReadOnly, Attribute::NoSuid, Attribute::NoExec];
const WRITABLE: [Attribute; 2] = [Attribute::NoSuid, Attribute::NoDev];
const INERT: [Attribute; 3] = [Attribute::NoSuid, Attribute::NoDev, Attribute::NoExec];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Readable by anybody and nobody's business inside: keys of the host's users, kernel addresses.
const MASKED: [&str; 2] = ["/proc/keys", "/proc/kallsyms"];
/// Directories of the host's that a merged-/usr host has as links and an older one for real.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// A plan and the descriptors that its sources name.
pub(super) struct Layout<'fd> {
    pub(super) plan: Plan,
    pub(super) descriptors: Vec<BorrowedFd<'fd>>,
}

pub(super) fn lay_out<'fd>(
    spec: &Spec<'fd>,
    facts: &Facts,
    etc: &Etc,
    birthplace: Option<CString>,
) -> Result<Layout<'fd>> {
    let mut builder = Builder {
        facts,
        steps: Vec::new(),
        rules: Vec::new(),
        descriptors: Vec::new(),
    };
    builder.identity(&spec.profile.limits);
    builder.system(etc)?;
    builder.devices();
    builder.workspace(spec)?;
    builder.scratch(spec);
    // After the scratch space: a toolchain may lie below /tmp.
    builder.toolchains(spec)?;
    builder.lock(spec);
    builder.count_furniture();
    let plan = Plan {
        namespaces: Namespace::ALL.to_vec(),
        ids: ids(facts)?,
        cgroup: birthplace,
        opener: match facts.privilege {
            Privilege::Root => Opener::Keeper,
            Privilege::User { .. } => Opener::Init,
        },
        steps: builder.steps,
        payload: payload_steps(&spec.profile.limits, facts),
    };
    Ok(Layout {
        plan,
        descriptors: builder.descriptors,
    })
}

fn ids(facts: &Facts) -> Result<Ids> {
    match facts.privilege {
        Privilege::User { uid, gid } => Ok(Ids {
            inner: INNER,
            outer_uid: uid,
            outer_gid: gid,
            deny_setgroups: true,
        }),
        Privilege::Root => {
            let mut random = [0; 4];
            getrandom::fill(&mut random).map_err(|error| {
                Error::new(Code::Internal, Stage::Run, "no random numbers").caused_by(error)
            })?;
            let outer = OUTER_FIRST | (u32::from_ne_bytes(random) & OUTER_MASK);
            Ok(Ids {
                inner: INNER,
                outer_uid: outer,
                outer_gid: outer,
                deny_setgroups: false,
            })
        }
    }
}

struct Builder<'fd, 'facts> {
    facts: &'facts Facts,
    steps: Vec<Step>,
    rules: Vec<FileRule>,
    descriptors: Vec<BorrowedFd<'fd>>,
}

impl<'fd> Builder<'fd, '_> {
    fn identity(&mut self, limits: &Limits) {
        if self.facts.privilege == Privilege::Root {
            self.steps.push(Step::DropGroups);
        }
        self.steps.extend([
            Step::BecomeUser,
            Step::DieWithKeeper,
            Step::Hostname,
            Step::LoopbackUp,
            Step::NewRoot {
                bytes: Some(scratch_bytes(limits)),
                files: Some(limits.disk_files.get()),
                attributes: WRITABLE.to_vec(),
            },
        ]);
        self.rules.push(FileRule {
            path: c"/".into(),
            rights: Rights::Read,
        });
    }

    fn system(&mut self, etc: &Etc) -> Result<()> {
        self.mount_path(Path::new("/usr"), Path::new("/usr"), &READ_ONLY)?;
        for name in SYSTEM {
            let path = Path::new(name);
            match std::fs::symlink_metadata(path) {
                Ok(facts) if facts.is_symlink() => {
                    let target = std::fs::read_link(path).map_err(|error| unusable(path, error))?;
                    self.steps.push(Step::Symlink {
                        path: c_path(path)?,
                        target: c_path(&target)?,
                    });
                }
                Ok(facts) if facts.is_dir() => self.mount_path(path, path, &READ_ONLY)?,
                Ok(_) | Err(_) => {}
            }
        }
        self.mount_path(etc.path(), Path::new("/etc"), &READ_ONLY)
    }

    fn toolchains(&mut self, spec: &Spec<'_>) -> Result<()> {
        for mount in &spec.toolchains {
            // It was found without a link on its way. Should one be put there meanwhile, it leads
            // to something else and is refused.
            let found = no_links(&mount.host).map_err(|error| unusable(&mount.host, error))?;
            let source = Source::Path {
                path: c_path(&mount.host)?,
                identity: Some(found),
            };
            let (target, attributes) = (c_path(&mount.guest)?, READ_ONLY.to_vec());
            self.steps.push(Step::Mount {
                source,
                target,
                attributes,
            });
        }
        for link in &spec.links {
            let (path, target) = (c_path(&link.guest)?, c_path(&link.target)?);
            self.steps.push(Step::Symlink { path, target });
        }
        Ok(())
    }

    fn devices(&mut self) {
        for name in DEVICES {
            let path = CString::new(format!("/dev/{name}")).unwrap_or_default();
            let source = Source::Path {
                path: path.clone(),
                identity: None,
            };
            self.steps.push(Step::Mount {
                source,
                target: path,
                attributes: DEVICE.to_vec(),
            });
        }
        self.rules.push(FileRule {
            path: c"/dev".into(),
            rights: Rights::Device,
        });
        let links = [
            (c"/dev/fd", c"/proc/self/fd"),
            (c"/dev/stdin", c"/proc/self/fd/0"),
            (c"/dev/stdout", c"/proc/self/fd/1"),
            (c"/dev/stderr", c"/proc/self/fd/2"),
        ];
        for (path, target) in links {
            self.steps.push(Step::Symlink {
                path: path.into(),
                target: target.into(),
            });
        }
    }

    fn workspace(&mut self, spec: &Spec<'fd>) -> Result<()> {
        if let Some(work) = &spec.work {
            self.tree(work, c"/workspace/work")?;
        }
        match &spec.inputs {
            Some(inputs) => self.tree(inputs, c"/workspace/inputs")?,
            None => {
                let path = c"/workspace/inputs".into();
                self.steps.push(Step::Directory { path, mode: 0o755 });
            }
        }
        self.tree(&spec.artifacts, c"/workspace/artifacts")
    }

    fn tree(&mut self, tree: &Tree<'fd>, target: &CStr) -> Result<()> {
        let attributes = match tree.access {
            Access::None => return Ok(()),
            Access::Ro => READ_ONLY.to_vec(),
            Access::Rw => {
                self.rules.push(FileRule {
                    path: target.into(),
                    rights: Rights::Write,
                });
                WRITABLE.to_vec()
            }
        };
        let directory = tree.directory.as_fd();
        let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let unknown = |error: &dyn std::fmt::Display| {
            Error::new(
                Code::WorkspaceRefused,
                Stage::Run,
                "a workspace directory is gone",
            )
            .caused_by(error)
        };
        let found = rustix::fs::fstat(directory).map_err(|error| unknown(&error))?;
        let source = match self.facts.privilege {
            Privilege::Root => {
                self.descriptors.push(directory);
                let index = self.descriptors.len() - 1;
                Source::Handle {
                    index,
                    uid: found.st_uid,
                    gid: found.st_gid,
                }
            }
            // Without privilege a tree can only be copied by path in the sandbox's own mount
            // namespace; the identity proves that it is still the one that was checked.
            Privilege::User { .. } => {
                let path = std::fs::read_link(link).map_err(|error| unknown(&error))?;
                Source::Path {
                    path: c_path(&path)?,
                    identity: Some((found.st_dev, found.st_ino)),
                }
            }
        };
        self.steps.push(Step::Mount {
            source,
            target: target.into(),
            attributes,
        });
        Ok(())
    }

    fn scratch(&mut self, spec: &Spec<'_>) {
        let mut places: Vec<(CString, u32)> = vec![
            (c"/tmp".into(), 0o1777),
            (c"/var/tmp".into(), 0o1777),
            (c"/dev/shm".into(), 0o1777),
            (c"/home/sandbox".into(), 0o755),
        ];
        if spec.work.is_none() {
            places.push((c"/workspace/work".into(), 0o755));
        }
        for (path, _) in &places {
            self.rules.push(FileRule {
                path: path.clone(),
                rights: Rights::Write,
            });
        }
        self.steps.push(Step::Scratch { places });
    }

    fn lock(&mut self, spec: &Spec<'_>) {
        self.steps.push(Step::Directory {
            path: c"/run".into(),
            mode: 0o755,
        });
        self.steps.push(Step::Proc {
            hide_others: true,
            attributes: INERT.to_vec(),
        });
        let attributes = vec![Attribute::NoSuid, Attribute::NoExec];
        self.steps.push(Step::Terminals { attributes });
        for path in MASKED {
            self.steps
                .push(Step::Mask(CString::new(path).unwrap_or_default()));
        }
        self.steps.extend([
            Step::EnterRoot,
            Step::DetachHost,
            Step::SealRoot {
                attributes: READ_ONLY.to_vec(),
            },
        ]);
        if !self.facts.kernel_limits("cpu") {
            let whole = spec.profile.limits.cpus_milli.get().div_ceil(1000);
            self.steps.push(Step::Processors(whole));
        }
        self.steps.extend([
            Step::EmptyBoundingSet,
            Step::NoNewPrivileges,
            Step::DropCapabilities,
        ]);
        if self.facts.landlock_abi > 0 {
            self.steps
                .push(Step::FileRules(std::mem::take(&mut self.rules)));
        }
        // Artifacts lie on a disk that is watched, whatever the workspace is.
        let filter = Filter::strict().deny(Group::Fallocate);
        self.steps.extend([Step::Undumpable, Step::Filter(filter)]);
    }

    /// The root's own directories, links and mount points are files too, and not the payload's.
    fn count_furniture(&mut self) {
        let mut made: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut add = |path: &CStr| {
            let path = path.to_bytes();
            let parents = (1..path.len())
                .filter(|at| path[*at] == b'/')
                .map(|at| &path[..at]);
            made.extend(parents.chain([path]).map(<[u8]>::to_vec));
        };
        for step in &self.steps {
            match step {
                Step::Directory { path, .. } | Step::Symlink { path, .. } => add(path),
                Step::Mount { target, .. } => add(target),
                Step::Scratch { places, .. } => places.iter().for_each(|(path, _)| add(path)),
                Step::Proc { .. } => add(c"/proc"),
                Step::Terminals { .. } => {
                    [c"/dev/pts", c"/dev/ptmx"].into_iter().for_each(&mut add)
                }
                _ => {}
            }
        }
        // And the root itself.
        let count = made.len() as u64 + 1;
        for step in &mut self.steps {
            if let Step::NewRoot {
                files: Some(files), ..
            } = step
            {
                *files = files.saturating_add(count);
            }
        }
    }

    fn mount_path(&mut self, host: &Path, guest: &Path, attributes: &[Attribute]) -> Result<()> {
        let source = Source::Path {
            path: c_path(host)?,
            identity: None,
        };
        let (target, attributes) = (c_path(guest)?, attributes.to_vec());
        self.steps.push(Step::Mount {
            source,
            target,
            attributes,
        });
        Ok(())
    }
}

/// Memory files count as memory: filling them must end in "no space left", not in an OOM kill.
fn scratch_bytes(limits: &Limits) -> u64 {
    limits.disk_bytes.get().min(limits.memory_bytes.get() / 2)
}

fn payload_steps(limits: &Limits, facts: &Facts) -> Vec<PayloadStep> {
    let mut steps = vec![
        PayloadStep::NewSession,
        PayloadStep::DefaultSignals,
        PayloadStep::Umask(0o022),
        PayloadStep::Limit(Resource::Core, 0),
        PayloadStep::Limit(Resource::OpenFiles, limits.open_files.get()),
        PayloadStep::Limit(Resource::FileSize, limits.disk_bytes.get()),
        // A second later than the watch, which knows why: for a process that it cannot see.
        PayloadStep::Limit(Resource::CpuSeconds, limits.cpu_ms.get().div_ceil(1000) + 1),
    ];
    if !facts.kernel_limits("pids") {
        // Counted per user namespace, so by sandbox; pid 1 is one of them.
        steps.push(PayloadStep::Limit(
            Resource::Processes,
            limits.pids.get() + 1,
        ));
    }
    if !facts.kernel_limits("memory") {
        // A backstop for one process that grows faster than it is watched.
        let twice = limits.memory_bytes.get().saturating_mul(2);
        steps.push(PayloadStep::Limit(Resource::Data, twice));
    }
    steps.push(PayloadStep::CloseOthers);
    steps
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(Code::InvalidArgument, Stage::Run, "a path holds a NUL byte"))
}

fn no_links(path: &Path) -> std::io::Result<(u64, u64)> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let facts = fstat(file)?;
    Ok((facts.st_dev, facts.st_ino))
}

fn unusable(path: &Path, error: std::io::Error) -> Error {
    let shown = OsStr::to_string_lossy(path.as_os_str());
    Error::new(
        Code::SetupFailed,
        Stage::Run,
        format!("cannot read `{shown}`"),
    )
    .caused_by(error)
}
