//! The engine: one state directory, one policy, and the path over them.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use glovebox_backend::{
    Cancel, Native, Order, Prepared, Sink, Spec, ToolchainLink, ToolchainMount, Tree,
};
use glovebox_model::{
    Access, BackendName, ByteString, Call, Code, Error, Exec, Result, SandboxId, Stage, Status,
    WorkspaceRef,
};
use glovebox_policy::{Assessed, Config, HostFacts, Surface, assess, resolve};
use glovebox_store::{Owner, StateDir, Store};
use glovebox_workspace::toolchain::{self, Downloads, Request, Toolchains};
use glovebox_workspace::{Dir, ExecFiles, Layout, Project, RelPath};

use crate::Keeper;
use crate::environment;
use crate::leftovers;
use crate::path::{self, Draft};
use crate::recovery::{self, Recovered};
use crate::settings::ToolchainSettings;
use crate::stage;

/// The caller's side of a run.
#[expect(missing_debug_implementations, reason = "a sink has nothing to show")]
pub struct Io<'io> {
    pub stdin: Option<OwnedFd>,
    /// Output as it comes, beside the files.
    pub live: &'io mut dyn Sink,
    pub cancel: &'io Cancel,
}

#[derive(Debug)]
pub struct Engine {
    state: StateDir,
    owner: Owner,
    /// Opened when it is first needed: a sandbox is built meanwhile.
    store: OnceLock<(Store, Recovered)>,
    layout: Layout,
    config: Config,
    host: HostFacts,
    surface: Surface,
    homes: Vec<PathBuf>,
}

/// How an engine is set up.
#[derive(Debug)]
pub struct Settings {
    pub state: StateDir,
    pub config: Config,
    pub surface: Surface,
    pub host: HostFacts,
    /// Home directories, which may not be adopted as workspaces themselves.
    pub homes: Vec<PathBuf>,
}

/// A keeper with its control groups, reserved for one exec.
#[derive(Debug)]
pub struct Seat {
    native: Native,
}

impl Engine {
    pub fn open(settings: Settings) -> Result<Self> {
        let owner = Owner::claim(&settings.state)?;
        Self::open_as(settings, owner)
    }

    /// The same, with a seat for one exec: its control groups are entered while the rest is opened.
    pub fn open_with_seat(settings: Settings, keeper: Keeper) -> Result<(Self, Seat)> {
        let owner = Owner::claim(&settings.state)?;
        let seat = Self::reserve(&settings.state, &owner, keeper)?;
        Ok((Self::open_as(settings, owner)?, seat))
    }

    fn reserve(state: &StateDir, owner: &Owner, keeper: Keeper) -> Result<Seat> {
        let mut native = Native::new(keeper);
        let name = leftovers::group_name(state, owner.id());
        leftovers::note(owner, &native.group_places(&name))?;
        native.reserve(&name)?;
        stage::reached("reserve");
        Ok(Seat { native })
    }

    fn open_as(settings: Settings, owner: Owner) -> Result<Self> {
        let Settings {
            state,
            config,
            surface,
            host,
            homes,
        } = settings;
        let root = Dir::open_trusted(state.path()).map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Open,
                "cannot open the state directory",
            )
            .caused_by(error)
        })?;
        let layout = Layout::open(root)?;
        let store = OnceLock::new();
        Ok(Self {
            state,
            owner,
            store,
            layout,
            config,
            host,
            surface,
            homes,
        })
    }

    /// Takes down what a crash left before anything else is written.
    pub fn store(&self) -> Result<&Store> {
        if let Some((store, _)) = self.store.get() {
            return Ok(store);
        }
        let store = Store::open(&self.state)?;
        let recovered = recovery::recover(&self.state, &store, &self.owner)?;
        Ok(&self.store.get_or_init(|| (store, recovered)).0)
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What this start found of an earlier crash, once the store is open.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.store.get().map(|(_, recovered)| recovered)
    }

    /// Policy's answer to a call, without running anything.
    pub fn assess(&self, call: Call) -> Result<Assessed> {
        let system = self.config.system(self.surface, self.host)?;
        let layers = self.config.layers_for(&call.ids);
        let resolved = resolve(call, &system, &layers)?;
        stage::reached("resolve");
        let assessed = assess(resolved);
        stage::reached("assess");
        Ok(assessed)
    }

    /// Walks the whole path. A refusal is a record too; an error means that there is none.
    pub fn run(
        &self,
        seat: Seat,
        call: Call,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let project = self.project(&call.workspace)?;
        let draft = Draft::new(&call, project.id().clone())?;
        let inputs = call.inputs.clone();
        let assessed = match self.assess(call) {
            Ok(assessed) => assessed,
            Err(error) => return self.refuse(&draft, error),
        };
        let approved = path::obtain(assessed);
        stage::reached("obtain");
        let toolchains = self.toolchains(settings, &draft, approved.assessed())?;
        let files = project.begin(&draft.exec_id, &inputs)?;
        let host = &settings.host;
        let walked = self.walk(
            seat,
            &draft,
            approved,
            (&toolchains, host),
            &project,
            &files,
            io,
        );
        let _ = project.forget_inputs(&draft.exec_id);
        match walked {
            Ok(record) => Ok(record),
            Err(error) => {
                if error.stage == Stage::Close {
                    // It ran, and what it printed and left is there, though not its record.
                    return Err(error.of_exec(draft.exec_id));
                }
                let _ = files.discard();
                self.refuse(&draft, error.of_exec(draft.exec_id.clone()))
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the things one exec is made of, each once"
    )]
    fn walk(
        &self,
        seat: Seat,
        draft: &Draft,
        approved: path::Approved,
        (toolchains, host): (&Toolchains, &toolchain::Host),
        project: &Project,
        files: &ExecFiles,
        io: Io<'_>,
    ) -> Result<Exec> {
        let sandbox_id = SandboxId::from_random(path::random()?);
        let order = order(draft, toolchains, approved.assessed());
        let assessed = approved.assessed();
        let work = project
            .work()
            .filter(|_| assessed.profile().workspace != Access::None);
        let sandbox = self.build(seat.native, assessed, toolchains, work, files)?;
        let mut record = draft.planned(assessed, sandbox_id);
        record.backend = Some(BackendName::Native);
        let streams = path::Streams::new(files, &assessed.profile().limits)?;
        // The sandbox is being built while the intent is written; nothing starts before it is.
        stage::reached("build");
        let opened = path::open(self.store()?, &self.owner, approved, record)?;
        stage::reached("open");
        let watched: Vec<&Dir> = work.into_iter().chain([files.artifacts()]).collect();
        let lease = path::admit(opened, sandbox);
        stage::reached("admit");
        let mut exited = path::run(lease, &order, streams, &watched, io);
        if let Some(error) = exited.failure_mut() {
            explain_start(error, &order, toolchains, host, work);
        }
        stage::reached("run");
        let captured = path::collect(exited, files);
        stage::reached("collect");
        let judged = path::judge(captured);
        stage::reached("judge");
        let closed = path::close(self.store()?, judged, files);
        stage::reached("close");
        closed
    }

    fn build(
        &self,
        native: Native,
        assessed: &Assessed,
        toolchains: &Toolchains,
        work: Option<&Dir>,
        files: &ExecFiles,
    ) -> Result<Prepared> {
        let profile = assessed.profile();
        let mounts = toolchains.mounts.iter().map(|mount| ToolchainMount {
            host: mount.host.clone(),
            guest: mount.guest.clone(),
        });
        let links = toolchains.links.iter().map(|link| ToolchainLink {
            guest: link.guest.clone(),
            target: link.target.clone(),
        });
        let spec = Spec {
            profile,
            work: work.map(|directory| Tree {
                directory,
                access: profile.workspace,
            }),
            inputs: files.inputs().map(|directory| Tree {
                directory,
                access: Access::Ro,
            }),
            artifacts: Tree {
                directory: files.artifacts(),
                access: Access::Rw,
            },
            toolchains: mounts.collect(),
            links: links.collect(),
        };
        native.open(&spec, self.state.path())
    }

    fn project(&self, workspace: &WorkspaceRef) -> Result<Project> {
        match workspace {
            WorkspaceRef::Adopted(path) => {
                let homes: Vec<&std::path::Path> =
                    self.homes.iter().map(PathBuf::as_path).collect();
                self.layout.adopt(path, &homes)
            }
            WorkspaceRef::Project(id) => self.layout.project(id),
            WorkspaceRef::Scratch => self.layout.scratch(),
        }
    }

    fn toolchains(
        &self,
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
                glovebox_model::NetworkMode::None | glovebox_model::NetworkMode::Retrieval => {
                    Downloads::Impossible
                }
                glovebox_model::NetworkMode::Allowlist
                | glovebox_model::NetworkMode::Unrestricted => Downloads::Possible,
            },
        };
        toolchain::detect(&settings.host, &request)
    }

    /// Writes down that nothing was started, and why. What the caller got wrong in asking, and what
    /// keeps us from writing anything, stays an error.
    fn refuse(&self, draft: &Draft, error: Error) -> Result<Exec> {
        let status = match error.code {
            Code::PolicyDenied => Status::PolicyDenied,
            Code::BackendUnavailable | Code::SetupFailed => Status::Error,
            _ => return Err(error),
        };
        let mut record = draft.record(status);
        record.ended_at = Some(jiff::Timestamp::now());
        record.error = Some(error.of_exec(draft.exec_id.clone()));
        self.store()?.refuse(record)
    }
}

fn order(draft: &Draft, toolchains: &Toolchains, assessed: &Assessed) -> Order {
    let environment = environment::of(&draft.exec_id, toolchains, assessed.env());
    Order {
        argv: draft.argv(),
        env: environment.variables,
        cwd: draft.cwd.clone(),
        path: environment.path,
    }
}

/// Names what could not be started, and says which flag shows it where the caller's own PATH has it.
fn explain_start(
    error: &mut Error,
    order: &Order,
    toolchains: &Toolchains,
    host: &toolchain::Host,
    work: Option<&Dir>,
) {
    use std::os::unix::ffi::OsStrExt;
    let Some(command) = order.argv.first() else {
        return;
    };
    let shown = command.display();
    match error.code {
        Code::CommandNotFound => error.message = format!("`{shown}` was not found in the sandbox"),
        Code::CommandNotExecutable => error.message = format!("`{shown}` cannot be executed"),
        Code::CwdNotFound => {
            let cwd = order.cwd.display();
            error.message = format!("the working directory `{cwd}` cannot be entered");
        }
        _ => {}
    }
    if error.code == Code::CommandNotFound {
        let name = std::ffi::OsStr::from_bytes(command.as_bytes());
        let visible = |path: &std::path::Path| {
            path.starts_with("/usr")
                || toolchains
                    .mounts
                    .iter()
                    .any(|mount| path.starts_with(&mount.guest))
        };
        error
            .hints
            .extend(toolchain::hint_for_missing(name, host, toolchains, visible));
        error.hints.extend(hint_for_words(command, work));
    }
}

/// What people type that is no command: a file without its `./`, a whole line of shell.
fn hint_for_words(command: &ByteString, work: Option<&Dir>) -> Option<String> {
    let bytes = command.as_bytes();
    let shown = command.display();
    let path = bytes.strip_prefix(b"./").unwrap_or(bytes);
    let here =
        RelPath::new(path).is_ok_and(|path| work.is_some_and(|work| work.lstat(&path).is_ok()));
    if here && bytes.contains(&b'/') {
        return Some(format!(
            "`{shown}` is there; what its first line names is not"
        ));
    }
    if here {
        return Some(format!(
            "`{shown}` is in the workspace: run it as `./{shown}`"
        ));
    }
    let shell = |byte: &u8| byte.is_ascii_whitespace() || b"|&;<>$`".contains(byte);
    bytes
        .iter()
        .any(shell)
        .then(|| "a line of shell needs a shell: `-- sh -c '…'`".to_owned())
}
