//! One native sandbox: its control groups, its plan on the way, its one run.

use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_cage::cgroup::{self, Bounds, Group};
use glovebox_cage::{After, Event, Handle, SpawnError, Spawner, WayOut};
use glovebox_model::{
    Access, Code, Error, Grade, Guarantee, Isolation, LimitsDemand, Profile, Result, Stage,
};

use super::birth::Birth;
use super::etc::Etc;
use super::facts::{Facts, Privilege};
use super::layout::{has_way_out, lay_out};
use super::memory_layer::{self, MemoryLayer};
use super::standing::Standing;
use super::supervise::{self, Bound, Opening};
use crate::ended::{Ended, Ending};
use crate::notice::Observation;
use crate::sandbox::{Run, Sandbox, TeardownGuard};
use crate::spec::{Layer, Layers, Place, Spec};

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

/// A sandbox under construction or standing, ready for one run.
#[derive(Debug)]
pub struct Prepared {
    seat: Seat,
    isolation: Isolation,
    birth: Birth,
    /// For one that stood before its exec was known.
    bound: Option<Bound>,
    /// Where a layer in memory is laid when the run is over.
    tray: Option<MemoryLayer>,
    is_observed: bool,
}

/// Building takes milliseconds; a file system that hangs must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(30);

impl Prepared {
    fn has_way_out(&self) -> bool {
        self.isolation.0.get(&Guarantee::NoNetwork) != Some(&Grade::Kernel)
    }

    pub(super) fn bound(seat: Seat, isolation: Isolation, bound: Bound) -> Self {
        let bound = Some(bound);
        Self {
            seat,
            isolation,
            birth: Birth::default(),
            bound,
            tray: None,
            is_observed: false,
        }
    }
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
        let spawned = spawner.spawn().map_err(unspawned)?;
        Ok(Self::new(ground, spawned))
    }

    pub(crate) fn keeper(&self) -> &Handle {
        &self.seat.handle
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
    pub fn open(self, spec: &Spec<'_>, state: &Path) -> Result<Prepared> {
        let (seat, isolation) = self.build(spec, None, state, After::End)?;
        Ok(Prepared {
            seat,
            isolation,
            birth: Birth::default(),
            bound: None,
            tray: None,
            is_observed: spec.observe.is_some(),
        })
    }

    /// The same with everything that is written to the workspace going to a layer of its own. The
    /// workspace itself, which must be there and writable, stays as it is.
    pub fn open_layered(
        self,
        spec: &Spec<'_>,
        layers: Layers<'_>,
        state: &Path,
    ) -> Result<(Prepared, MemoryLayer)> {
        let (seat, isolation) = self.build(spec, Some(layers), state, After::End)?;
        let tray = MemoryLayer::default();
        let prepared = Prepared {
            seat,
            isolation,
            birth: Birth::default(),
            bound: None,
            tray: Some(tray.clone()),
            is_observed: spec.observe.is_some(),
        };
        Ok((prepared, tray))
    }

    /// A sandbox that is there before its exec is, or between two of them.
    pub(super) fn stand(self, spec: &Spec<'_>, state: &Path) -> Result<Standing> {
        if self.facts.privilege != Privilege::Root {
            return Err(Error::new(
                Code::BackendUnavailable,
                Stage::Admit,
                "only root can show directories in a sandbox that stands already, \
                 so none is made ahead or kept for an ordinary user",
            )
            .hint("run `glovebox serve` as root, or use a fresh sandbox for each exec"));
        }
        if spec.observe.is_some() {
            return Err(Error::new(
                Code::BackendUnavailable,
                Stage::Admit,
                "a sandbox that is observed is made for one exec, and none is made ahead or kept",
            )
            .hint("use a fresh sandbox for what is simulated"));
        }
        let (seat, isolation) = self.build(spec, None, state, After::Stay)?;
        Ok(Standing::new(seat, isolation, spec))
    }

    fn build(
        mut self,
        spec: &Spec<'_>,
        layers: Option<Layers<'_>>,
        state: &Path,
        after: After,
    ) -> Result<(Seat, Isolation)> {
        if self.seat.group.is_none() {
            // Whatever the host offers, it was not taken.
            self.facts.cgroups = Err("no control group was reserved".to_owned());
        }
        let isolation = self.isolation(spec, layers.map(|it| it.writes));
        demand(&isolation, spec)?;
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
        let etc = match has_way_out(spec) {
            true => Etc::with_names(state),
            false => Etc::below(state),
        };
        let etc = etc.map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Run,
                "cannot prepare the sandbox's `/etc`",
            )
            .caused_by(error)
        })?;
        let birthplace = self.seat.group.as_ref().and_then(Group::birthplace);
        let layout = lay_out(spec, layers, &self.facts, &etc, birthplace, after)?;
        let plan = mutated_plan(layout.plan);
        let sent = self.seat.handle.build(plan, &layout.descriptors);
        sent.map_err(|errno| self.why_gone(&errno))?;
        Ok((self.seat, isolation))
    }

    /// A keeper that cannot do its part says so before it goes.
    fn why_gone(&self, errno: &dyn std::fmt::Display) -> Error {
        match self.seat.handle.next_control() {
            Ok(Event::Failed(failure)) => setup_failed(&failure),
            _ => broken(errno),
        }
    }

    /// What will be enforced: isolation always, limits by grade.
    fn isolation(&self, spec: &Spec<'_>, layer: Option<Layer<'_>>) -> Isolation {
        let disk = disk_grade(spec, layer);
        let kernel = |controller: &str| {
            let on = self.seat.group.is_some() && self.facts.kernel_limits(controller);
            if on { Grade::Kernel } else { Grade::Supervised }
        };
        let grade = |guarantee: Guarantee| match guarantee {
            Guarantee::MemoryLimit => kernel("memory"),
            // Without a group the kernel still counts processes, per user namespace.
            Guarantee::PidsLimit => Grade::Kernel,
            Guarantee::CpuLimit => kernel("cpu"),
            Guarantee::DiskLimit => disk,
            Guarantee::OwnKernel => Grade::Unavailable,
            Guarantee::NoNetwork if has_way_out(spec) => Grade::Unavailable,
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

/// The kernel limits memory and nobody limits a directory on disk but us.
fn disk_grade(spec: &Spec<'_>, layer: Option<Layer<'_>>) -> Grade {
    let on_disk = |place: &Place<'_>| match place {
        Place::Empty => false,
        Place::Tree(tree) => tree.access == Access::Rw,
        Place::Later(access) => *access == Access::Rw,
    };
    let work = match layer {
        Some(Layer::Memory { .. }) => false,
        Some(Layer::Disk(_)) => true,
        Some(Layer::None) => false,
        None => on_disk(&spec.work),
    };
    let cached = spec.caches.iter().any(|it| it.tree.access == Access::Rw);
    // As ever, where nothing was asked for.
    match layer.is_none() || work || cached || on_disk(&spec.artifacts) || spec.home.is_some() {
        true => Grade::Supervised,
        false => Grade::Kernel,
    }
}

fn demand(isolation: &Isolation, spec: &Spec<'_>) -> Result<()> {
    let profile: &Profile = spec.profile;
    let refuse = |what: &dyn std::fmt::Display| {
        Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!("the `native` backend cannot give {what} in this version"),
        )
        .hint("change the settings that grant it; `glovebox policy explain` shows where they are"))
    };
    match (&profile.image, spec.image) {
        (Some(image), None) => return refuse(&format!("the image `{image}`")),
        (None, Some(_)) => return refuse(&"an image that no profile names"),
        (Some(_), Some(_)) | (None, None) => {}
    }
    if let Some(runtime) = &profile.runtime {
        return refuse(&format!("the container runtime `{runtime}`"));
    }
    if profile.limits.gpus.get() > 0 || profile.limits.tpus.get() > 0 {
        return refuse(&"graphics or tensor processors");
    }
    let is_short = |it: &Guarantee| isolation.0.get(it) != Some(&Grade::Kernel);
    if let Some(guarantee) = profile.require.iter().find(|it| is_short(it)) {
        return Err(Error::new(
            Code::BackendUnavailable,
            Stage::Run,
            format!("`{guarantee}` is demanded of the kernel, and the `native` backend cannot give it here"),
        )
        .hint("`glovebox doctor` shows what this host lets Glovebox enforce"));
    }
    if profile.limits_demand == LimitsDemand::Supervised {
        return Ok(());
    }
    let limits = [
        Guarantee::MemoryLimit,
        Guarantee::PidsLimit,
        Guarantee::CpuLimit,
    ];
    match limits.into_iter().find(is_short) {
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

impl Sandbox for Prepared {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn way_out(&mut self) -> Result<Option<WayOut>> {
        // One that stood before its exec was known has said what it had to say.
        if self.bound.is_none() && self.has_way_out() {
            let deadline = Instant::now() + PATIENCE;
            self.birth.settle(&self.seat.handle, deadline)?;
        }
        Ok(self.seat.handle.take_way_out())
    }

    fn observation(&mut self) -> Result<Option<Observation>> {
        // One that stood before its exec was known is never observed.
        if self.bound.is_none() && self.is_observed {
            let deadline = Instant::now() + PATIENCE;
            self.birth.settle(&self.seat.handle, deadline)?;
        }
        let effects = self.seat.handle.take_effects();
        Ok(effects.map(|effects| Observation { effects }))
    }

    fn run(mut self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        let opening = match (self.bound, self.birth.stands()) {
            (Some(bound), _) => Opening::Bound(bound),
            (None, Some(init)) => Opening::Built { init },
            (None, None) => Opening::Building,
        };
        let mut outcome = supervise::run(&self.seat, opening, run);
        if outcome.stands {
            // Its one exec is over: what is left goes while the caller goes on.
            let _ = self.seat.handle.kill();
        }
        if let (Some(tray), Some(layer)) = (&self.tray, self.seat.handle.take_memory()) {
            if let Ok(ended) = &mut outcome.ended
                && ended.limit_hit.is_none()
                && ended.ending != (Ending::Exited { code: 0 })
            {
                ended.limit_hit = memory_layer::full(&layer);
            }
            tray.lay(&layer);
        }
        (outcome.ended, TeardownGuard::of(self.seat))
    }

    fn dismiss(self: Box<Self>) -> TeardownGuard {
        TeardownGuard::of(self.seat)
    }
}

/// Why there is no keeper.
pub(crate) fn unspawned(error: SpawnError) -> Error {
    match error {
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
        "way out" => Some(
            "this kernel cannot steer what the sandbox sends: it takes nf_tables with its `inet` \
             family, `nft_redir` and `nft_nat` (as root, `modprobe nf_tables nft_redir nft_nat`); \
             an exec with the network `none` needs nothing of it",
        ),
        "observe" => Some(
            "this kernel cannot show what a program asks of it: it takes Linux 5.19 or newer, and \
             nobody may observe Glovebox itself in that way; an exec that is not simulated needs \
             nothing of it",
        ),
        step if step.starts_with("id-map") => Some(
            "the file system of the workspace cannot show its owner as another user; \
             move it to ext4, xfs, btrfs or tmpfs, or run as the owner instead of root",
        ),
        step if step.starts_with("layer") => Some(
            "this kernel cannot put a layer over the workspace: it takes Linux 5.11 or newer, no \
             other file system mounted inside the workspace, and a state directory on ext4, xfs, \
             btrfs or tmpfs; one in memory, for the kernel's `disk_limit`, Linux 6.6; an exec with \
             `writes` at `direct` needs none",
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

/// Of a directory that is attached to a sandbox that stands.
#[cfg(debug_assertions)]
pub(super) fn mutated_attributes(
    mut attributes: Vec<glovebox_cage::Attribute>,
) -> Vec<glovebox_cage::Attribute> {
    attributes.retain(|it| !glovebox_cage::leaves_out(&format!("attach {it:?}")));
    attributes
}

#[cfg(not(debug_assertions))]
pub(super) fn mutated_attributes(
    attributes: Vec<glovebox_cage::Attribute>,
) -> Vec<glovebox_cage::Attribute> {
    attributes
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
