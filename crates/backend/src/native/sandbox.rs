//! One native sandbox: its control groups, its plan on the way, its one run.

use std::path::Path;

use glovebox_cage::cgroup::{self, Bounds, Group};
use glovebox_cage::{Event, Handle, SpawnError, Spawner};
use glovebox_model::{
    Code, Error, Grade, Guarantee, Isolation, LimitsDemand, NetworkMode, Profile, Result, Stage,
};

use glovebox_workspace::Dir;

use super::etc::Etc;
use super::facts::Facts;
use super::layout::lay_out;
use super::supervise;
use crate::ended::Ended;
use crate::spec::{Order, Spec};
use crate::streams::{Cancel, Sink};

/// A keeper and the groups its sandbox is limited by. However it is dropped, nothing is left.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) handle: Handle,
    pub(super) group: Option<Group>,
}

impl Seat {
    /// Ends whatever runs, removes the groups, lets the keeper go and waits for it.
    fn close(&mut self) {
        let _ = self.handle.kill();
        // Empty already when everything inside has ended; the keeper watches over this moment.
        let left = self.group.take().filter(|group| group.remove().is_err());
        let _ = self.handle.release();
        let _ = self.handle.wait_keeper();
        let left = left.filter(|group| group.remove().is_err());
        for directory in left.iter().flat_map(Group::directories) {
            let _ = cgroup::clear(directory);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.close();
    }
}

/// A keeper that waits for its plan.
#[derive(Debug)]
pub struct Native {
    facts: Facts,
    seat: Seat,
}

/// A keeper on its way out and the control groups that go with it. Dropping it waits for both.
#[derive(Debug)]
pub struct Remains {
    _seat: Seat,
}

/// A sandbox under construction or standing, ready for one run.
#[derive(Debug)]
pub struct Prepared {
    pub(super) seat: Seat,
    isolation: Isolation,
}

/// What sandboxes stand on, looked at once.
#[derive(Debug, Clone)]
pub struct Ground(Facts);

impl Ground {
    pub fn look() -> Self {
        Self(Facts::look())
    }

    /// Where the control groups of sandboxes will be: note these down before the first is made.
    pub fn group_parents(&self) -> Vec<std::path::PathBuf> {
        match &self.0.cgroups {
            Ok(host) => host.parents(),
            Err(_) => Vec::new(),
        }
    }
}

impl Native {
    pub fn new(ground: &Ground, handle: Handle) -> Self {
        Self {
            facts: ground.0.clone(),
            seat: Seat {
                handle,
                group: None,
            },
        }
    }

    /// The same with a keeper from a spawner, for a process with threads.
    pub fn spawn(ground: &Ground, spawner: &Spawner) -> Result<Self> {
        let spawned = spawner.spawn().map_err(|error| match error {
            SpawnError::Gone | SpawnError::Threads => Error::new(
                Code::BackendUnavailable,
                Stage::Admit,
                "this server can start no more sandboxes",
            )
            .caused_by(error)
            .hint("restart the server; what runs is not affected until then"),
            SpawnError::Late | SpawnError::Failed(_) => Error::new(
                Code::SetupFailed,
                Stage::Admit,
                "cannot start the sandbox's keeper",
            )
            .caused_by(error)
            .hint("this host is short of something: try again, or lower `max_concurrent_execs`"),
        })?;
        Ok(Self::new(ground, spawned))
    }

    /// Makes the control groups and sends the keeper into them, ahead of everything else: entering
    /// a version 1 group waits for the kernel, and there is other work to do meanwhile.
    pub fn reserve(&mut self, name: &str) -> Result<()> {
        let Ok(host) = &self.facts.cgroups else {
            return Ok(());
        };
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(
                Code::SetupFailed,
                Stage::Admit,
                "cannot make a control group",
            )
            .caused_by(error)
            .hint("`glovebox doctor` shows what this host lets Glovebox enforce")
        };
        let group = Group::create(host, name).map_err(|error| failed(&error))?;
        let sent = self.seat.handle.join(group.to_enter());
        self.seat.group = Some(group);
        sent.map_err(|errno| self.why_gone(&errno))
    }

    /// Sends the plan. The sandbox is built while the caller goes on; `Prepared::run` waits for it.
    pub fn open(mut self, spec: &Spec<'_>, state: &Path) -> Result<Prepared> {
        if self.seat.group.is_none() {
            // Whatever the host offers, it was not taken.
            self.facts.cgroups = Err("no control group was reserved".to_owned());
        }
        let isolation = self.isolation();
        demand(&isolation, spec.profile)?;
        let limits = &spec.profile.limits;
        if let Some(group) = &self.seat.group {
            let bounds = Bounds {
                memory_bytes: Some(limits.memory_bytes.get()),
                pids: Some(limits.pids.get()),
                cpus_milli: Some(limits.cpus_milli.get()),
            };
            group.set(&mutated_bounds(bounds)).map_err(|error| {
                Error::new(
                    Code::SetupFailed,
                    Stage::Run,
                    "cannot set the limits of the sandbox",
                )
                .caused_by(error)
            })?;
        }
        let etc = Etc::below(state).map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Run,
                "cannot prepare the sandbox's `/etc`",
            )
            .caused_by(error)
        })?;
        let birthplace = self.seat.group.as_ref().and_then(Group::birthplace);
        let layout = lay_out(spec, &self.facts, &etc, birthplace)?;
        let plan = mutated_plan(layout.plan);
        let sent = self.seat.handle.build(plan, &layout.descriptors);
        sent.map_err(|errno| self.why_gone(&errno))?;
        Ok(Prepared {
            seat: self.seat,
            isolation,
        })
    }

    /// A keeper that cannot do its part says so before it goes.
    fn why_gone(&self, errno: &dyn std::fmt::Display) -> Error {
        match self.seat.handle.next_control() {
            Ok(Event::Failed(failure)) => setup_failed(&failure),
            _ => broken(errno),
        }
    }

    /// What will be enforced: isolation always, limits by grade.
    fn isolation(&self) -> Isolation {
        let kernel = |controller: &str| {
            let on = self.seat.group.is_some() && self.facts.kernel_limits(controller);
            if on { Grade::Kernel } else { Grade::Supervised }
        };
        let grade = |guarantee: Guarantee| match guarantee {
            Guarantee::MemoryLimit => kernel("memory"),
            // Without a group the kernel still counts processes, per user namespace.
            Guarantee::PidsLimit => Grade::Kernel,
            Guarantee::CpuLimit => kernel("cpu"),
            Guarantee::DiskLimit => Grade::Supervised,
            Guarantee::FileRules if self.facts.landlock_abi == 0 => Grade::Unavailable,
            _ => Grade::Kernel,
        };
        Isolation(
            Guarantee::ALL
                .into_iter()
                .map(|it| (it, grade(it)))
                .collect(),
        )
    }
}

fn demand(isolation: &Isolation, profile: &Profile) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!("the `native` backend cannot give {what} in this version"),
        )
        .hint("change the settings that grant it; `glovebox policy explain` shows where they are"))
    };
    match profile.network {
        // Retrieval is done for the program, from outside.
        NetworkMode::None | NetworkMode::Retrieval => {}
        mode @ (NetworkMode::Allowlist | NetworkMode::Unrestricted) => {
            return refuse(&format!("the network `{mode}`"));
        }
    }
    if let Some(image) = &profile.image {
        return refuse(&format!("the image `{image}`"));
    }
    if profile.limits_demand == LimitsDemand::Supervised {
        return Ok(());
    }
    let short = [
        Guarantee::MemoryLimit,
        Guarantee::PidsLimit,
        Guarantee::CpuLimit,
    ]
    .into_iter()
    .find(|it| isolation.0.get(it) != Some(&Grade::Kernel));
    match short {
        None => Ok(()),
        Some(guarantee) => Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!("`{guarantee}` can only be supervised here, and the kernel's is demanded"),
        )
        .hint("run as root, or in a session with a delegated control group")
        .hint("leave out `--require kernel-limits` to accept supervised limits")),
    }
}

impl Prepared {
    /// It is not needed after all.
    pub fn dismiss(self) -> Remains {
        Remains { _seat: self.seat }
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Runs the order and stays until no process of the sandbox is left. `watched` are the
    /// directories on disk that it may write, counted together against the disk limit. What the kernel still has
    /// to take apart goes on in the background until the second value is dropped.
    pub fn run(
        self,
        order: &Order,
        profile: &Profile,
        watched: &[&Dir],
        stdin: Option<std::os::fd::OwnedFd>,
        sink: &mut dyn Sink,
        cancel: &Cancel,
    ) -> (Result<Ended>, Remains) {
        let ended = supervise::run(&self, order, profile, watched, stdin, sink, cancel);
        (ended, Remains { _seat: self.seat })
    }
}

pub(super) fn setup_failed(failure: &glovebox_cage::Failure) -> Error {
    let step = &failure.step;
    let error = Error::new(
        Code::SetupFailed,
        Stage::Run,
        format!("the sandbox could not be built: `{step}` failed, so nothing was started"),
    )
    .caused_by(std::io::Error::from_raw_os_error(failure.errno));
    let known = match step.as_str() {
        "namespaces" => Some(
            "this host does not let you make user namespaces: \
             as root, `sysctl user.max_user_namespaces=15000` (and on Ubuntu \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`)",
        ),
        step if step.starts_with("id-map") => Some(
            "the file system of the workspace cannot show its owner as another user; \
             move it to ext4, xfs, btrfs or tmpfs, or run as the owner instead of root",
        ),
        _ => None,
    };
    let error = match known {
        Some(hint) => error.hint(hint),
        None => error,
    };
    error.hint("`glovebox doctor` shows what this host lets Glovebox enforce")
}

pub(super) fn broken(cause: &dyn std::fmt::Display) -> Error {
    Error::new(Code::Internal, Stage::Run, "the sandbox's keeper broke off").caused_by(cause)
}

/// In debug builds a test may remove one hardening step and must then see it missed.
#[cfg(debug_assertions)]
fn mutated_plan(plan: glovebox_cage::Plan) -> glovebox_cage::Plan {
    if let Some(file) = std::env::var_os("GLOVEBOX_MUTATION_PARTS") {
        let mut parts = plan.parts();
        parts.extend(["cgroup memory", "cgroup pids", "cgroup cpu"].map(str::to_owned));
        let _ = std::fs::write(file, parts.join("\n"));
    }
    match std::env::var("GLOVEBOX_MUTATION") {
        Ok(part) => plan.without(&part),
        Err(_) => plan,
    }
}

#[cfg(not(debug_assertions))]
fn mutated_plan(plan: glovebox_cage::Plan) -> glovebox_cage::Plan {
    plan
}

#[cfg(debug_assertions)]
fn mutated_bounds(mut bounds: Bounds) -> Bounds {
    match std::env::var("GLOVEBOX_MUTATION").as_deref() {
        Ok("cgroup memory") => bounds.memory_bytes = None,
        Ok("cgroup pids") => bounds.pids = None,
        Ok("cgroup cpu") => bounds.cpus_milli = None,
        _ => {}
    }
    bounds
}

#[cfg(not(debug_assertions))]
fn mutated_bounds(bounds: Bounds) -> Bounds {
    bounds
}
