//! From a spec to the cage's plan: which namespaces, mounts, rules and limits, in which order.

mod image;
mod network;
mod observe;
mod root_overhead;

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_cage::seccomp::{Filter, Group};
use glovebox_cage::{
    After, Attribute, FileRule, Ids, Namespace, Opener, PayloadStep, Plan, Resource, Rights,
    Source, Step, Upper,
};
use glovebox_model::{Access, Code, Error, Limits, Result, Stage};
use glovebox_workspace::Dir;

pub(super) use network::has_way_out;

use super::etc::Etc;
use super::facts::{Facts, Privilege};
use crate::spec::{Layer, Layers, Place, Spec, Tree};

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

pub(super) const WORK: &CStr = c"/workspace/work";
pub(super) const INPUTS: &CStr = c"/workspace/inputs";
pub(super) const ARTIFACTS: &CStr = c"/workspace/artifacts";
const HOME: &CStr = c"/home/sandbox";

/// A plan and the descriptors that its sources name.
pub(super) struct Layout<'fd> {
    pub(super) plan: Plan,
    pub(super) descriptors: Vec<BorrowedFd<'fd>>,
}

pub(super) fn lay_out<'fd>(
    spec: &Spec<'fd>,
    layers: Option<Layers<'fd>>,
    facts: &Facts,
    etc: &Etc,
    birthplace: Option<CString>,
    after: After,
) -> Result<Layout<'fd>> {
    let mut builder = Builder {
        facts,
        steps: Vec::new(),
        rules: Vec::new(),
        descriptors: Vec::new(),
    };
    builder.identity(spec);
    match spec.image {
        None => builder.system(etc)?,
        Some(image) => builder.image(spec, image, etc)?,
    }
    builder.devices();
    builder.workspace(spec, layers)?;
    builder.scratch(spec)?;
    // After the scratch space: a toolchain may lie below /tmp.
    builder.toolchains(spec)?;
    builder.caches(spec)?;
    builder.granted(spec)?;
    builder.lock(spec)?;
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
        payload: payload_steps(spec, facts),
        after,
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
    fn identity(&mut self, spec: &Spec<'_>) {
        let profile = spec.profile;
        if self.facts.privilege == Privilege::Root {
            self.steps.push(Step::DropGroups);
        }
        self.steps.extend([
            Step::BecomeUser,
            Step::DieWithKeeper,
            Step::Hostname,
            Step::LoopbackUp,
        ]);
        self.way_out(spec);
        self.steps.push(Step::NewRoot {
            bytes: Some(scratch_bytes(&profile.limits)),
            files: Some(profile.limits.disk_files.get()),
            attributes: WRITABLE.to_vec(),
        });
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

    /// After the scratch space as well: they mostly lie in the home directory.
    fn caches(&mut self, spec: &Spec<'fd>) -> Result<()> {
        for cache in &spec.caches {
            self.tree(&cache.tree, &c_path(&cache.guest)?)?;
        }
        Ok(())
    }

    /// At paths that are nothing else's. Set-user bits and devices mean nothing there.
    fn granted(&mut self, spec: &Spec<'fd>) -> Result<()> {
        for mount in &spec.mounts {
            let (directory, access) = (mount.directory(), mount.access());
            self.tree(&Tree { directory, access }, &c_path(mount.guest())?)?;
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

    fn workspace(&mut self, spec: &Spec<'fd>, layers: Option<Layers<'fd>>) -> Result<()> {
        let (layer, over) = layers.map_or((None, None), |it| (Some(it.writes), it.over));
        let layer = layer.map(|layer| lower(spec, layer).map(|lower| (lower, layer)));
        let layer = layer.transpose()?;
        for (place, path) in [
            (&spec.work, WORK),
            (&spec.inputs, INPUTS),
            (&spec.artifacts, ARTIFACTS),
        ] {
            if let (Some((lower, layer)), true) = (layer, path == WORK) {
                self.layer(&lower, over, layer, path, beside(spec, layer))?;
                continue;
            }
            match place {
                Place::Tree(tree) => self.tree(tree, path)?,
                // Part of the layer.
                Place::Empty if path == ARTIFACTS && in_memory(layer.map(|it| it.1)) => {}
                // Part of the scratch space.
                Place::Empty if path == WORK => {}
                Place::Empty | Place::Later(_) => {
                    let path = path.into();
                    self.steps.push(Step::Directory { path, mode: 0o755 });
                }
            }
        }
        let later = [spec.work, spec.inputs, spec.artifacts];
        if later
            .iter()
            .any(|it| matches!(it, Place::Later(Access::Rw)))
        {
            // What is not there yet can have no rule. One for the directory above holds for what is
            // mounted below it; the root is sealed and each mount says itself who may write.
            self.rules.push(FileRule {
                path: c"/workspace".into(),
                rights: Rights::Write,
            });
        }
        Ok(())
    }

    fn tree(&mut self, tree: &Tree<'fd>, target: &CStr) -> Result<()> {
        let Some(attributes) = attributes(tree.access) else {
            return Ok(());
        };
        if tree.access == Access::Rw {
            self.rules.push(FileRule {
                path: target.into(),
                rights: Rights::Write,
            });
        }
        let source = self.source(tree.directory.as_fd())?;
        self.steps.push(Step::Mount {
            source,
            target: target.into(),
            attributes,
        });
        Ok(())
    }

    fn layer(
        &mut self,
        lower: &Tree<'fd>,
        over: Option<&'fd Dir>,
        layer: Layer<'fd>,
        target: &CStr,
        beside: Option<&CStr>,
    ) -> Result<()> {
        let is_written = !matches!(layer, Layer::None);
        // Of what is seen there: the rules know nothing of what lies below.
        for path in [is_written.then_some(target), beside].into_iter().flatten() {
            self.rules.push(FileRule {
                path: path.into(),
                rights: Rights::Write,
            });
        }
        let lower = self.source(lower.directory.as_fd())?;
        let over = over.map(|it| self.source(it.as_fd())).transpose()?;
        let upper = match layer {
            Layer::None => Upper::None,
            Layer::Disk(directory) => Upper::Directory(self.source(directory.as_fd())?),
            Layer::Memory { bytes, files } => Upper::Memory {
                bytes,
                files,
                beside: beside.map(CStr::to_owned),
            },
        };
        let access = if is_written { Access::Rw } else { Access::Ro };
        self.steps.push(Step::Layer {
            lower,
            over,
            upper,
            target: target.into(),
            attributes: attributes(access).unwrap_or_default(),
        });
        Ok(())
    }

    fn source(&mut self, directory: BorrowedFd<'fd>) -> Result<Source> {
        match self.facts.privilege {
            Privilege::Root => by_handle(directory, &mut self.descriptors),
            // Without privilege a tree can only be copied by path in the sandbox's own mount
            // namespace; the identity proves that it is still the one that was checked.
            Privilege::User { .. } => {
                let found = rustix::fs::fstat(directory).map_err(|error| gone(&error))?;
                Ok(Source::Path {
                    path: c_path(&path_of(directory)?)?,
                    identity: Some((found.st_dev, found.st_ino)),
                })
            }
        }
    }

    fn scratch(&mut self, spec: &Spec<'fd>) -> Result<()> {
        let mut places: Vec<(CString, u32)> = vec![
            (c"/tmp".into(), 0o1777),
            (c"/var/tmp".into(), 0o1777),
            (c"/dev/shm".into(), 0o1777),
        ];
        match spec.home {
            None => places.push((HOME.into(), 0o755)),
            Some(directory) => {
                let access = Access::Rw;
                self.tree(&Tree { directory, access }, HOME)?;
            }
        }
        if matches!(spec.work, Place::Empty) {
            places.push((WORK.into(), 0o755));
        }
        for (path, _) in &places {
            self.rules.push(FileRule {
                path: path.clone(),
                rights: Rights::Write,
            });
        }
        self.steps.push(Step::Scratch { places });
        Ok(())
    }

    fn lock(&mut self, spec: &Spec<'_>) -> Result<()> {
        self.steps.push(Step::Directory {
            path: c"/run".into(),
            mode: 0o755,
        });
        self.trust(spec);
        self.secrets(spec.secrets);
        self.effect_command(spec)?;
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
        for path in &spec.masked {
            self.steps.push(Step::Mask(c_path(path)?));
        }
        self.steps.extend([Step::EnterRoot, Step::DetachHost]);
        self.effects(spec);
        self.steps.push(Step::SealRoot {
            attributes: READ_ONLY.to_vec(),
        });
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
        self.steps.push(Step::Undumpable);
        self.observe(spec)?;
        self.steps.push(Step::Filter(filter));
        Ok(())
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

fn in_memory(layer: Option<Layer<'_>>) -> bool {
    matches!(layer, Some(Layer::Memory { .. }))
}

/// Artifacts that have no place on disk lie in the same memory as the layer, under the same limit.
fn beside(spec: &Spec<'_>, layer: Layer<'_>) -> Option<&'static CStr> {
    let is_part = in_memory(Some(layer)) && matches!(spec.artifacts, Place::Empty);
    is_part.then_some(ARTIFACTS)
}

/// What a layer lies on. Nobody may have taken away the right to write before.
fn lower<'fd>(spec: &Spec<'fd>, layer: Layer<'fd>) -> Result<Tree<'fd>> {
    match (spec.work, layer) {
        (Place::Tree(tree), Layer::None) if tree.access == Access::Ro => Ok(tree),
        (Place::Tree(tree), Layer::Disk(_) | Layer::Memory { .. }) if tree.access == Access::Rw => {
            Ok(tree)
        }
        (Place::Tree(_) | Place::Empty | Place::Later(_), _) => Err(Error::new(
            Code::InvalidArgument,
            Stage::Run,
            "only a workspace that may be written can have its writes held back",
        )
        .hint("leave `writes` at `direct`, or give the exec a workspace that it may write")),
    }
}

/// None for what is not shown at all.
pub(super) fn attributes(access: Access) -> Option<Vec<Attribute>> {
    match access {
        Access::None => None,
        Access::Ro => Some(READ_ONLY.to_vec()),
        Access::Rw => Some(WRITABLE.to_vec()),
    }
}

/// Root's way to a directory: nobody can exchange it meanwhile, and its owner is kept.
pub(super) fn by_handle<'fd>(
    directory: BorrowedFd<'fd>,
    descriptors: &mut Vec<BorrowedFd<'fd>>,
) -> Result<Source> {
    let found = rustix::fs::fstat(directory).map_err(|error| gone(&error))?;
    descriptors.push(directory);
    Ok(Source::Handle {
        index: descriptors.len() - 1,
        uid: found.st_uid,
        gid: found.st_gid,
    })
}

fn path_of(directory: BorrowedFd<'_>) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    std::fs::read_link(link).map_err(|error| gone(&error))
}

fn gone(error: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Run,
        "a directory of the sandbox is gone",
    )
    .caused_by(error)
}

/// Memory files count as memory: filling them must end in "no space left", not in an OOM kill.
fn scratch_bytes(limits: &Limits) -> u64 {
    limits.disk_bytes.get().min(limits.memory_bytes.get() / 2)
}

fn payload_steps(spec: &Spec<'_>, facts: &Facts) -> Vec<PayloadStep> {
    let limits = &spec.profile.limits;
    let disk = limits.disk_bytes.get();
    let largest_file = spec.largest_file.map_or(disk, |most| most.min(disk));
    let mut steps = vec![
        PayloadStep::NewSession,
        PayloadStep::DefaultSignals,
        PayloadStep::Umask(0o022),
        PayloadStep::Limit(Resource::Core, 0),
        PayloadStep::Limit(Resource::OpenFiles, limits.open_files.get()),
        PayloadStep::Limit(Resource::FileSize, largest_file),
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
