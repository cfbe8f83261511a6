//! From a plan to a sandbox that stands, or is being built, with everything its run needs.

use glovebox_backend::{Order, Prepared, Spec, ToolchainLink, ToolchainMount, Tree};
use glovebox_model::{Access, ByteString, Code, Error, NetworkMode, Result};
use glovebox_policy::Assessed;
use glovebox_workspace::toolchain::{self, Downloads, Request, Toolchains};
use glovebox_workspace::{Dir, ExecFiles, Project, RelPath};

use crate::engine::{Engine, Seat};
use crate::environment;
use crate::path::{Draft, Plan, Streams};
use crate::settings::ToolchainSettings;

/// Everything of one run but the permission to start it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) sandbox: Prepared,
    pub(crate) order: Order,
    pub(crate) streams: Streams,
    pub(crate) files: ExecFiles,
    pub(crate) project: Project,
    pub(crate) toolchains: Toolchains,
}

impl Standing {
    /// It is not to be started after all: nothing of it stays.
    pub(crate) fn discard(self) {
        let _ = self.project.forget_inputs(self.files.exec());
        let _ = self.files.discard();
    }
}

impl Engine {
    pub(crate) fn prepare(
        &self,
        seat: Seat,
        plan: &Plan,
        project: Project,
        settings: &ToolchainSettings,
    ) -> Result<Standing> {
        let (draft, assessed) = (plan.draft(), plan.assessed());
        let toolchains = toolchains(settings, draft, assessed)?;
        let files = project.make_room(&draft.exec_id, &assessed.call().inputs)?;
        let work = project
            .work()
            .filter(|_| assessed.profile().workspace != Access::None);
        let built = self
            .build(seat, assessed, &toolchains, work, &files)
            .and_then(|sandbox| {
                let streams = Streams::new(&files, &assessed.profile().limits)?;
                Ok((sandbox, streams))
            });
        match built {
            Ok((sandbox, streams)) => Ok(Standing {
                sandbox,
                order: order(draft, &toolchains, assessed),
                streams,
                files,
                project,
                toolchains,
            }),
            Err(error) => {
                let _ = project.forget_inputs(&draft.exec_id);
                let _ = files.discard();
                Err(error)
            }
        }
    }

    fn build(
        &self,
        seat: Seat,
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
        seat.native.open(&spec, self.state().path())
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
pub(crate) fn explain_start(
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
