//! From a plan to a sandbox that stands, or is being built, with everything its run needs.

use std::os::fd::AsFd;
use std::path::Path;

use glovebox_backend::{
    ExecDirs, Host, HostMount, MemoryLayer, Observe, Order, Place, Sandbox, SecretFiles, Spec,
    ToolchainLink, ToolchainMount, Tree,
};
use glovebox_gate::Kinds;
use glovebox_model::{
    Access, Agreed, ApprovalMode, BackendName, ByteString, Code, Error, Exec, Mode, NetworkMode,
    Profile, Result, Sandbox as Row, Stage,
};
use glovebox_policy::{Assessed, MountMode};
use glovebox_workspace::image::Held;
use glovebox_workspace::toolchain::{self, Downloads, Request, Toolchains};
use glovebox_workspace::{Dir, ExecFiles, Project, WorkKind};

use crate::backends::SandboxOnImage;
use crate::effects::{DIRECTORY, SOCKET};
use crate::engine::{Engine, KeeperSlot};
use crate::environment::{self, Beside};
use crate::network::{self, Opening, Route, Trust};
use crate::path::{Draft, Plan, Streams};
use crate::pool::{Kind, Shape, Warm};
use crate::sandboxes::{Leased, SandboxAssignment};
use crate::secrets::ExecSecrets;
use crate::settings::ToolchainSettings;
use crate::skill;
use crate::workspaces::{WorkspaceLease, masked};

/// Where sandboxes come from.
pub(crate) trait SandboxSource {
    /// A keeper for one native sandbox.
    fn seat(&mut self) -> Result<KeeperSlot>;

    /// Whether any are kept standing at all: to say what shape is wanted costs something.
    fn keeps_warm(&self) -> bool;

    /// One that stands already, of the first shape that has one.
    fn warm(&mut self, shapes: &[Shape]) -> Option<Box<dyn Warm>>;

    /// Whether anybody still wants what is being prepared.
    fn is_wanted(&self) -> bool;
}

/// Everything of one run but the permission to start it.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) order: Order,
    pub(crate) streams: Streams,
    pub(crate) files: ExecFiles,
    pub(crate) project: Project,
    pub(crate) toolchains: Toolchains,
    /// The caller's own programs could have been shown in it.
    pub(crate) shows_the_host: bool,
    /// Directories that count against its disk limit, beside its own.
    pub(crate) written: Vec<Dir>,
    pub(crate) notes: Vec<String>,
    /// The kept sandbox that it is.
    pub(crate) made_as: Option<Row>,
    /// What it has of its workspace.
    pub(crate) workspace_lease: WorkspaceLease,
    /// What it has of a network.
    pub(crate) route: Route,
    pub(crate) given: ExecSecrets,
}

impl PreparedRun {
    /// It is not to be started after all: nothing of it stays.
    pub(crate) fn discard(self) {
        self.workspace_lease
            .forget(self.files.exec(), &self.project);
        let _ = self.project.forget_inputs(self.files.exec());
        let _ = self.files.discard();
    }
}

/// The files that an exec works on.
#[derive(Debug, Clone, Copy)]
struct RunFiles<'a> {
    project: &'a Project,
    files: &'a ExecFiles,
    workspace_lease: &'a WorkspaceLease,
}

/// A sandbox with what its user should know of it.
struct Provided {
    sandbox: Box<dyn Sandbox>,
    written: Vec<Dir>,
    notes: Vec<String>,
    made_as: Option<Row>,
    tray: Option<MemoryLayer>,
    route: Route,
}

impl Provided {
    fn fresh(sandbox: Box<dyn Sandbox>) -> Self {
        Self {
            sandbox,
            written: Vec::new(),
            notes: Vec::new(),
            made_as: None,
            tray: None,
            route: Route::None,
        }
    }
}

impl Engine {
    pub(crate) fn prepare(
        &self,
        supply: &mut dyn SandboxSource,
        plan: &Plan,
        project: Project,
        settings: &ToolchainSettings,
    ) -> Result<PreparedRun> {
        let (draft, assessed) = (plan.draft(), plan.assessed());
        let toolchains = match plan.shows_the_host() {
            true => toolchains(settings, draft, assessed)?,
            false => Toolchains::default(),
        };
        self.ensure_still_given(plan)?;
        let backend = plan.chosen().backend;
        let given = self
            .secrets
            .give(assessed.call(), assessed.profile(), backend)?;
        let order = order(plan, &toolchains, &given)?;
        let mut workspace_lease = self
            .workspaces
            .lease(plan, &project, &|| supply.is_wanted())?;
        let inputs = skill::inputs(assessed.call(), &draft.exec_id);
        let files = match project.make_room(&draft.exec_id, &inputs) {
            Ok(mut files) => {
                workspace_lease.show_inputs(&mut files);
                files
            }
            Err(error) => {
                workspace_lease.forget(&draft.exec_id, &project);
                return Err(error);
            }
        };
        let site = RunFiles {
            project: &project,
            files: &files,
            workspace_lease: &workspace_lease,
        };
        let provided = self
            .provide(supply, plan, &order, &toolchains, &given, site)
            .and_then(|provided| {
                let streams = Streams::new(&files, &assessed.profile().limits)?;
                Ok((provided, streams))
            });
        match provided {
            Ok((provided, streams)) => {
                workspace_lease.tray = provided.tray;
                let notes = provided
                    .notes
                    .into_iter()
                    .chain(workspace_lease.notes.clone());
                Ok(PreparedRun {
                    sandbox: provided.sandbox,
                    order,
                    streams,
                    files,
                    project,
                    toolchains,
                    shows_the_host: plan.shows_the_host(),
                    written: provided.written,
                    notes: notes.collect(),
                    made_as: provided.made_as,
                    workspace_lease,
                    route: provided.route,
                    given,
                })
            }
            Err(error) => {
                workspace_lease.forget(&draft.exec_id, &project);
                let _ = project.forget_inputs(&draft.exec_id);
                let _ = files.discard();
                Err(error)
            }
        }
    }

    fn provide(
        &self,
        supply: &mut dyn SandboxSource,
        plan: &Plan,
        order: &Order,
        toolchains: &Toolchains,
        given: &ExecSecrets,
        site: RunFiles<'_>,
    ) -> Result<Provided> {
        let RunFiles {
            project,
            files,
            workspace_lease,
        } = site;
        if let Some(assignment) = plan.assignment() {
            return self.kept(supply, plan, assignment, project, files);
        }
        let profile = plan.assessed().profile();
        let work = project.work().filter(|_| profile.workspace != Access::None);
        let room = ExecDirs {
            work,
            inputs: files.inputs(),
            artifacts: files.artifacts(),
        };
        let observe = observe(plan);
        let simulates = observe.as_ref().is_some_and(|it| it.simulates);
        let opening = match given.brokered().is_empty() {
            _ if simulates => Opening::Simulated,
            // What leaves is compared with what was shown, inside TLS too.
            _ if plan.assessed().call().preview.is_some() => Opening::Possible,
            true => Opening::ByPolicyAlone,
            false => Opening::Possible,
        };
        let trust = self.network.trust(profile, opening)?;
        if supply.keeps_warm()
            && trust.is_none()
            && observe.is_none()
            && given.handed().is_empty()
            && workspace_lease.is_plain()
            && workspace_lease.denied.is_empty()
            && workspace_lease.caches.is_empty()
            && plan.assessed().call().mounts.is_empty()
            && workspace_lease.largest_file(profile).is_none()
            && *toolchains == Toolchains::default()
            && let Some(warm) = self.warm(supply, plan, order, work.is_some(), project)
        {
            // One that cannot be used is no reason to fail: it is gone, and the next way is cold.
            match warm.bind(&room) {
                Ok(sandbox) => return Ok(Provided::fresh(sandbox)),
                Err(error) => tracing::warn!(%error, "a warm sandbox could not be used"),
            }
        }
        let image = self.instance.backends().image_of(plan.chosen())?;
        let granted = self.host_mounts(plan)?;
        let mounts = toolchains.mounts.iter().map(|mount| ToolchainMount {
            host: mount.host.clone(),
            guest: mount.guest.clone(),
        });
        let links = toolchains.links.iter().map(|link| ToolchainLink {
            guest: link.guest.clone(),
            target: link.target.clone(),
        });
        // An engine is known without its image: each container names its own.
        let named = plan.chosen().docker.as_ref().map(|docker| Profile {
            image: Some(docker.image.clone()),
            ..profile.clone()
        });
        let spec = Spec {
            profile: named.as_ref().unwrap_or(profile),
            work: place(workspace_lease.shown(work), profile.workspace),
            inputs: place(files.inputs(), Access::Ro),
            artifacts: place(
                Some(files.artifacts()).filter(|_| !workspace_lease.is_in_memory()),
                Access::Rw,
            ),
            home: None,
            image: image.as_ref().map(Held::rootfs),
            toolchains: mounts.collect(),
            links: links.collect(),
            caches: workspace_lease.cache_mounts(),
            mounts: granted.iter().collect(),
            masked: masked(
                &workspace_lease.denied,
                toolchains.mounts.iter().map(|it| it.guest.as_path()),
            )?,
            largest_file: workspace_lease.largest_file(profile),
            trust: trust.as_ref().map(Trust::bundle),
            secrets: match given.needs_room() {
                true => SecretFiles::PerRun,
                false => SecretFiles::Never,
            },
            observe,
        };
        match plan.chosen().backend {
            BackendName::Native => {
                let (native, state) = (supply.seat()?.native, self.instance.state().path());
                let (prepared, tray) = match workspace_lease.layers() {
                    Some(layers) => {
                        let (prepared, tray) = native.open_layered(&spec, layers, state)?;
                        (prepared, workspace_lease.is_in_memory().then_some(tray))
                    }
                    None => (native.open(&spec, state)?, None),
                };
                let sandbox: Box<dyn Sandbox> = match image {
                    Some(image) => Box::new(SandboxOnImage::new(Box::new(prepared), image)),
                    None => Box::new(prepared),
                };
                Ok(Provided {
                    tray,
                    route: trust.map_or(Route::None, Route::Fresh),
                    ..Provided::fresh(sandbox)
                })
            }
            BackendName::Host => {
                approved_by_a_person(plan.record())?;
                Ok(Provided {
                    notes: vec![Host::NOTE.to_owned()],
                    ..Provided::fresh(Host::open(&spec)?)
                })
            }
            BackendName::Docker => {
                let owned = notes_owner(project, work, profile.workspace);
                let owner = self.instance.owner().id();
                let made = self
                    .instance
                    .backends()
                    .open_container(plan, &spec, owner)?;
                Ok(Provided {
                    notes: owned.into_iter().collect(),
                    ..Provided::fresh(made)
                })
            }
        }
    }

    /// Directories of the host that the operator shows and people have agreed to.
    fn host_mounts(&self, plan: &Plan) -> Result<Vec<HostMount>> {
        if plan.assessed().call().mounts.is_empty() {
            return Ok(Vec::new());
        }
        approved_by_a_person(plan.record())?;
        let granted = &self.instance.config().approvals().host_mounts;
        let wanted = plan.assessed().call().mounts.iter();
        wanted
            .map(|target| {
                let mount = granted.iter().find(|it| it.target == *target);
                let mount = mount.ok_or_else(|| {
                    let message = format!("no directory of the host may be mounted at `{target}`");
                    Error::new(Code::PolicyDenied, Stage::Admit, message)
                })?;
                let access = match mount.mode {
                    MountMode::Ro => Access::Ro,
                    MountMode::Rw => Access::Rw,
                };
                let (source, guest) = (Path::new(&mount.source), Path::new(&mount.target));
                HostMount::open(source, guest, access, self.instance.state().path())
            })
            .collect()
    }

    fn kept(
        &self,
        supply: &mut dyn SandboxSource,
        plan: &Plan,
        assignment: &SandboxAssignment,
        project: &Project,
        files: &ExecFiles,
    ) -> Result<Provided> {
        let profile = plan.assessed().profile();
        let exec = Some(&plan.draft().exec_id);
        let raised = self
            .sandboxes
            .raise(assignment, exec, profile, project, supply)?;
        let artifacts = files.artifacts().try_clone();
        let artifacts = artifacts.map_err(|error| error.at(Stage::Admit))?;
        Ok(Provided {
            sandbox: Box::new(Leased::new(raised.turn, artifacts)?),
            written: raised.written,
            notes: raised.notes,
            made_as: Some(raised.row),
            tray: None,
            route: raised.way.map_or(Route::None, Route::Standing),
        })
    }

    /// An interpreter that waits for this very kind of program, or else any sandbox of the shape.
    fn warm(
        &self,
        supply: &mut dyn SandboxSource,
        plan: &Plan,
        order: &Order,
        has_work: bool,
        project: &Project,
    ) -> Option<Box<dyn Warm>> {
        let mut profile = plan.assessed().profile().clone();
        if !has_work {
            profile.workspace = Access::None;
        }
        let chosen = plan.chosen();
        let kinds = match chosen.backend {
            BackendName::Native => {
                let preloads = self.sandboxes.preloads().iter();
                let language = preloads.filter(|_| chosen.image.is_none());
                let mut language = language.filter(|it| it.takes(order));
                let interpreter = language.next().map(|it| Kind::Interpreter(it.language));
                interpreter.into_iter().chain([Kind::Native]).collect()
            }
            BackendName::Host => return None,
            BackendName::Docker => vec![Kind::Container {
                space: plan.assessed().call().ids.space_id.clone(),
                project: project.id().clone(),
                work: identity(project.work().filter(|_| has_work)?)?,
                agent: project.agent().map(str::to_owned),
            }],
        };
        let shapes: Vec<Shape> = kinds
            .into_iter()
            .filter_map(|kind| Shape::new(kind, &profile, chosen).ok())
            .collect();
        supply.warm(&shapes)
    }
}

/// Everything that a simulated program does is looked at; of others what their gates ask about.
fn observe(plan: &Plan) -> Option<Observe> {
    let (call, watched) = (plan.assessed().call(), plan.gated().watched);
    let simulates = call.mode == Mode::Simulate;
    let asked = watched.without(Kinds::WRITES.with(Kinds::REQUESTS));
    (simulates || !asked.is_empty()).then(|| Observe {
        simulates,
        attempts: watched.contains(Kinds::ATTEMPTS),
        reads: watched.contains(Kinds::READS),
        // Tools that know of a simulation tell of themselves with our own command.
        effect_command: std::env::current_exe().ok().filter(|_| simulates),
    })
}

/// Whatever let it pass so far: nothing reaches the host itself unless people were asked about this
/// very exec. No policy, no grant and no automatic answer stands for them.
fn approved_by_a_person(record: &Exec) -> Result<()> {
    match record.consent.as_ref().map(|it| it.agreed) {
        Some(Agreed::People) => Ok(()),
        Some(Agreed::Policy | Agreed::Grant | Agreed::Automatic) | None => Err(Error::new(
            Code::PolicyDenied,
            Stage::Admit,
            "nobody approved that this reaches the host itself",
        )
        .hint("leave out `--backend host` and `--mount`: a sandbox needs no approval")
        .hint("or have somebody approve it: `glovebox approval ls` shows what waits")),
    }
}

/// A directory of the caller's own, which belongs to root, is about to belong to a container's user.
/// One that is only read stays as it is, and only root can give anything away.
fn notes_owner(project: &Project, work: Option<&Dir>, access: Access) -> Option<String> {
    let facts = rustix::fs::fstat(work?.as_fd()).ok()?;
    let is_given = project.kind() == WorkKind::Adopted
        && access == Access::Rw
        && rustix::process::geteuid().is_root()
        && facts.st_uid == 0;
    is_given.then(|| {
        "the current directory was given to the container's user, since it belonged to root; \
         root's files in it can be changed neither by this container nor by later native runs: \
         `chown -R root: .` takes it back, `--project` or `--scratch` leave it alone"
            .to_owned()
    })
}

fn identity(directory: &Dir) -> Option<(u64, u64)> {
    let facts = rustix::fs::fstat(directory.as_fd()).ok()?;
    Some((facts.st_dev, facts.st_ino))
}

pub(crate) fn place(directory: Option<&Dir>, access: Access) -> Place<'_> {
    match directory {
        Some(directory) => Place::Tree(Tree { directory, access }),
        None => Place::Empty,
    }
}

fn toolchains(
    settings: &ToolchainSettings,
    draft: &Draft,
    assessed: &Assessed,
) -> Result<Toolchains> {
    use std::os::unix::ffi::OsStringExt;
    let command = draft.argv().into_iter().next().unwrap_or_default();
    let request = Request {
        command: std::ffi::OsString::from_vec(command.into_bytes()),
        mode: settings.mode.clone(),
        downloads: match assessed.profile().network {
            NetworkMode::None | NetworkMode::Retrieval => Downloads::Impossible,
            NetworkMode::Allowlist | NetworkMode::Unrestricted => Downloads::Possible,
        },
    };
    toolchain::detect(&settings.host, &request)
}

fn order(plan: &Plan, toolchains: &Toolchains, given: &ExecSecrets) -> Result<Order> {
    let (draft, assessed, backend) = (plan.draft(), plan.assessed(), plan.chosen().backend);
    // Only native sandboxes have a way out that is ours.
    let simulated = assessed.call().mode == Mode::Simulate;
    let is_ours = backend == BackendName::Native
        && (simulated || assessed.profile().network >= NetworkMode::Allowlist);
    let network = is_ours.then(network::variables);
    // An approval is bound to all that the run may obey.
    let beside = match (assessed.profile().approval, plan.bound_scripts()) {
        (ApprovalMode::Manual, None) => Beside::Ignored,
        _ => Beside::Obeyed,
    };
    let asked = assessed.env();
    let environment = environment::of(&draft.exec_id, toolchains, network, asked, beside);
    let mut env = environment.variables;
    if simulated {
        let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
        env.push((text("GLOVEBOX_SIMULATION"), text("1")));
        env.push((text("GLOVEBOX_EFFECTS"), text(SOCKET)));
        env.push((text("GLOVEBOX_EFFECT_DIR"), text(DIRECTORY)));
        // As in the run that it stands for.
        if assessed.profile().network < NetworkMode::Allowlist {
            let offline = environment::OFFLINE.iter();
            env.extend(offline.map(|(key, value)| (text(key), text(value))));
        }
    }
    if let Some(called) = &assessed.call().skill {
        env.extend(skill::variables(&called.skill, &draft.exec_id));
    }
    if assessed
        .call()
        .session
        .is_some_and(|it| it.terminal.is_some())
    {
        environment::for_terminal(&mut env, asked);
    }
    for (key, value) in given.variables()? {
        env.retain(|(known, _)| *known != key);
        env.push((key, value));
    }
    Ok(Order {
        argv: draft.argv(),
        env,
        cwd: draft.cwd.clone(),
        path: environment.path,
    })
}
