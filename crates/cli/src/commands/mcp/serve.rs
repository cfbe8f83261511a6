//! The server that an agent's host starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use glovebox_engine::{
    DirectoryToShare, Dispatcher, ServerConfig, ServerPurpose, ToolchainSettings, Viewer,
    host_facts,
};
use glovebox_mcp::{Setting, serve_stdio};
use glovebox_model::{Code, Error, Result, SpaceId, Stage, Status, TokenName};
use glovebox_policy::Surface;
use glovebox_serve::{Inside, LocalAgent};
use glovebox_store::{ExecFilter, StateDir};
use glovebox_workspace::{Dir, Layout, toolchain};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Global, LogFormat, McpServeArgs};
use crate::commands::log;
use crate::context::{Context, fork_spawner, homes, user};
use crate::exit::Exit;
use crate::render;

/// The workspace of an agent whose host stands where nobody works.
const NOWHERE: &str = "mcp";
/// How long what runs may go on when the host is gone. Nobody waits for it any more.
const PATIENCE: Duration = Duration::from_millis(200);

pub(super) fn run(global: &Global, args: &McpServeArgs) -> Result<Exit> {
    let context = Context::new(global);
    let place = context.place()?;
    let config = context.config()?;
    let state = place.state_dir()?;
    let agent = agent(&args.agent)?;
    // Before anything that might start a thread.
    let spawner = fork_spawner()?;
    log::begin(LogFormat::Text, log::Usual::Warn)?;
    let rules = ServerConfig {
        shared: shared(&context, &state, args)?,
        purpose: ServerPurpose::Agent,
        state,
        database: place.database,
        config,
        shadow: context.shadow()?,
        host: host_facts(),
        concurrency_ceiling: args.max_concurrent,
        secrets_key: context.secrets_key()?,
    };
    let dispatcher = Dispatcher::open(rules, spawner)?;
    let surface = match dispatcher.shared_directory() {
        Some(_) => Surface::Local,
        None => Surface::Server,
    };
    let command = context.session_command(surface, dispatcher.shared_directory())?;
    dispatcher.start_sessions_with(command);
    log::mask_with(dispatcher.log_mask());
    context.report_recovered(dispatcher.recovered());
    let (project, about) = match (&args.project, dispatcher.shared_project()) {
        (Some(project), _) => (
            project.to_string(),
            format!("You work on the workspace `{project}`, which Glovebox keeps."),
        ),
        (None, Some(shared)) => (
            shared.to_string(),
            "You work on the directory that your host has open; inside it is /workspace/work."
                .to_owned(),
        ),
        (None, None) => (
            NOWHERE.to_owned(),
            format!(
                "Your host has no project open: you work on an own workspace, `{NOWHERE}`, and see \
                 none of the user's files. Tell the user if they expect otherwise."
            ),
        ),
    };
    let keys = dispatcher.state().keys().to_owned();
    let inside = Inside::open(dispatcher.clone(), &keys, agent)?;
    let conversation = conversation()?;
    let server = inside.mcp(Setting {
        project,
        about,
        conversation: Some(conversation.clone()),
        approvals_at: "a person answers with `glovebox approval approve {id}`".to_owned(),
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("glovebox-mcp")
        .build()
        .map_err(|error| cannot("start the runtime").caused_by(error))?;
    let served = runtime.block_on(async {
        let mut terminate = listen_for(SignalKind::terminate())?;
        let mut interrupt = listen_for(SignalKind::interrupt())?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let closing = dispatcher.clone();
        let close = move || {
            give_up(&closing, &conversation)?;
            // Nobody is there any more to hear how what runs ends.
            closing.drain_session(&conversation, PATIENCE)
        };
        let closed = async { tokio::task::spawn_blocking(close).await };
        serve_stdio(server, stop, closed).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    match served? {
        Ok(drained) => drained.map(|_| Exit::SUCCESS),
        Err(error) => Err(cannot("close").caused_by(error)),
    }
}

/// What waits for people, or for a place, is of no use to an agent that is gone, and would surprise
/// the next one.
fn give_up(dispatcher: &Dispatcher, conversation: &str) -> Result<()> {
    let eyes = Viewer::of_space(SpaceId::local());
    for status in [Status::AwaitingApproval, Status::Queued] {
        let filter = ExecFilter {
            conversation_id: Some(conversation.to_owned()),
            status: Some(status),
            limit: 1000,
            ..ExecFilter::default()
        };
        for exec in dispatcher.execs(&eyes, &filter)?.items {
            dispatcher.cancel(dispatcher.find(&eyes, exec.exec_id.as_str())?)?;
        }
    }
    Ok(())
}

fn agent(name: &str) -> Result<LocalAgent> {
    let name: TokenName = name.parse().map_err(|error| {
        let message = format!("`{name}` is no name for an agent: {error}");
        Error::new(Code::InvalidArgument, Stage::Parse, message)
    })?;
    Ok(LocalAgent {
        name,
        user_id: Some(user()),
    })
}

/// The directory that was named, or the current one if it can be worked in: a host that stands in
/// `/` or in a home has no project open.
fn shared(
    context: &Context<'_>,
    state: &StateDir,
    args: &McpServeArgs,
) -> Result<Option<DirectoryToShare>> {
    if args.project.is_some() {
        return Ok(None);
    }
    let current = || std::env::current_dir().ok();
    // A host that does not know its own words passes them on as they stand.
    let said = |it: &&PathBuf| !it.as_os_str().as_encoded_bytes().starts_with(b"${");
    let directory = match (args.directory.as_ref().filter(said), current()) {
        (Some(named), _) => named.clone(),
        (None, Some(here)) if is_workplace(&here, state)? => here,
        (None, _) => {
            render::note(&format!(
                "no project is open here; the agent works in the workspace `{NOWHERE}` \
                 (`--directory DIR` names another)"
            ));
            return Ok(None);
        }
    };
    Ok(Some(DirectoryToShare {
        toolchains: toolchains(context, &directory),
        homes: homes(),
        directory,
    }))
}

fn is_workplace(directory: &Path, state: &StateDir) -> Result<bool> {
    let root = Dir::open_trusted(state.path()).map_err(|error| error.at(Stage::Open))?;
    let homes = homes();
    let homes: Vec<&Path> = homes.iter().map(PathBuf::as_path).collect();
    match Layout::open(root)?.adopt(directory, &homes) {
        Ok(_) => Ok(true),
        Err(error) if error.code == Code::WorkspaceRefused => Ok(false),
        Err(error) => Err(error),
    }
}

fn toolchains(context: &Context<'_>, directory: &Path) -> ToolchainSettings {
    let directory: PathBuf = directory.to_owned();
    ToolchainSettings {
        host: toolchain::Host::of_process(directory, context.state_path().ok()),
        mode: toolchain::Mode::Auto,
    }
}

/// What one host's agent does belongs together, until the host ends it.
fn conversation() -> Result<String> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|error| cannot("find a name").caused_by(error))?;
    let word: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("mcp-{word}"))
}

fn listen_for(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).map_err(|error| cannot("listen for signals").caused_by(error))
}

fn cannot(what: &str) -> Error {
    Error::new(
        Code::Internal,
        Stage::Open,
        format!("the tools cannot {what}"),
    )
}
