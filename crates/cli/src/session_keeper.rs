//! `glovebox-session`: what our own executable is when it keeps a session. It is started by a server, or
//! by a command, and outlives both.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use glovebox_engine::{
    DirectoryToShare, Dispatcher, ServerConfig, ServerPurpose, SessionCommand, ToolchainSettings,
    close_inherited, host_facts, keep_session,
};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::Surface;
use glovebox_workspace::toolchain;

use crate::args::{Global, LogFormat};
use crate::commands::log;
use crate::context::{Context, fork_spawner, homes};
use crate::{render, secrets_key};

const NAME: &str = "glovebox-session";

/// What a keeper is told beside its environment.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct KeeperArgs {
    #[command(flatten)]
    global: Global,
    /// Under the limits of a machine of one's own.
    #[arg(long)]
    local: bool,
    /// The directory that calls may work in.
    #[arg(long)]
    directory: Option<PathBuf>,
}

/// Whether this process was started under that name.
pub(crate) fn is_called() -> bool {
    let called = std::env::args_os().next().unwrap_or_default();
    Path::new(&called).file_name().is_some_and(|it| it == NAME)
}

pub(crate) fn run() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            render::error(&error, false);
            ExitCode::FAILURE
        }
    }
}

fn keep() -> Result<()> {
    let args = KeeperArgs::try_parse().map_err(|error| {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "not called as a session's keeper is",
        )
        .caused_by(error)
    })?;
    // A lock or a pipe of the process that started this one is not to be held for so long.
    close_inherited().map_err(|errno| {
        let message = "cannot close what was inherited";
        Error::new(Code::Internal, Stage::Parse, message).caused_by(errno)
    })?;
    die_like_others();
    // What is typed at a terminal, or happens to it, is not for a process that outlives it.
    let _ = rustix::process::setsid();
    let channel = rustix::io::dup(rustix::stdio::stdin()).map_err(|errno| {
        let message = "no descriptors are left";
        Error::new(Code::Busy, Stage::Parse, message).caused_by(errno)
    })?;
    // Before anything that might start a thread.
    let spawner = fork_spawner()?;
    log::begin(LogFormat::Text, log::Usual::Warn)?;
    keep_session(channel, |key| {
        key.map_or(Ok(()), secrets_key::hold)?;
        let dispatcher = Dispatcher::open(config(&args)?, spawner)?;
        log::mask_with(dispatcher.log_mask());
        Ok(dispatcher)
    })
}

/// As any process has it: what started this one may be spared when memory runs out, and this is not the
/// server.
fn die_like_others() {
    let file = "/proc/self/oom_score_adj";
    let score = std::fs::read_to_string(file).unwrap_or_default();
    if score.trim().parse::<i32>().is_ok_and(|score| score < 0) {
        // A score may always be raised.
        let _ = std::fs::write(file, "0");
    }
}

/// What of this process's environment a keeper has, too: where things lie and how they are reached, not
/// what may be secret.
fn is_inherited(name: &OsStr) -> bool {
    const NAMES: [&str; 9] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "TZ",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    const BEGINNINGS: [&str; 7] = [
        "LC_",
        "XDG_",
        "DOCKER_",
        "CONTAINER",
        "DBUS_",
        "RUST_",
        "GLOVEBOX_",
    ];
    const NOT: [&str; 3] = ["GLOVEBOX_SERVER", "GLOVEBOX_TOKEN", "GLOVEBOX_SECRETS_KEY"];
    let Some(name) = name.to_str() else {
        return false;
    };
    !NOT.contains(&name)
        && (toolchain::Host::ENV.contains(&name)
            || NAMES.contains(&name)
            || BEGINNINGS.iter().any(|it| name.starts_with(it)))
}

fn config(args: &KeeperArgs) -> Result<ServerConfig> {
    let context = Context::new(&args.global);
    let place = context.place()?;
    let surface = if args.local {
        Surface::Local
    } else {
        Surface::Server
    };
    let shared = args.directory.clone().map(|directory| DirectoryToShare {
        toolchains: ToolchainSettings {
            host: toolchain::Host::of_process(directory.clone(), context.state_path().ok()),
            mode: toolchain::Mode::Auto,
        },
        homes: homes(),
        directory,
    });
    Ok(ServerConfig {
        state: place.state_dir()?,
        database: place.database,
        config: match surface {
            Surface::Local => context.config()?,
            Surface::Server => context.config_of_server()?,
        },
        shadow: context.shadow()?,
        host: host_facts(),
        concurrency_ceiling: u32::MAX,
        secrets_key: context.secrets_key()?,
        shared,
        purpose: ServerPurpose::Session(surface),
    })
}

impl Context<'_> {
    /// How a process under these options starts the keepers of sessions.
    pub(crate) fn session_command(
        &self,
        surface: Surface,
        directory: Option<&Path>,
    ) -> Result<SessionCommand> {
        let mut args: Vec<OsString> = Vec::new();
        if surface == Surface::Local {
            args.push("--local".into());
        }
        if let Some(directory) = directory {
            args.extend(["--directory".into(), absolute(directory)?.into()]);
        }
        let place = self.place()?;
        let global = self.global();
        let inherited = std::env::vars_os().filter(|(name, _)| is_inherited(name));
        let mut env: HashMap<OsString, OsString> = inherited.collect();
        let mut put = |key: &str, value: Option<OsString>| {
            env.extend(value.map(|value| (key.into(), value)));
        };
        put("GLOVEBOX_STATE_DIR", Some(absolute(&place.state)?.into()));
        put("GLOVEBOX_DATABASE", place.database.map(OsString::from));
        for (key, file) in [
            ("GLOVEBOX_KEYS_DIR", &place.keys),
            ("GLOVEBOX_CONFIG", &global.config),
            ("GLOVEBOX_SHADOW_POLICY", &global.shadow_policy),
            ("GLOVEBOX_SKILLS_DIR", &global.skills_dir),
            ("GLOVEBOX_SECRETS_KEY_FILE", &global.secrets_key_file),
        ] {
            let file = file.as_deref().map(absolute).transpose()?;
            put(key, file.map(OsString::from));
        }
        Ok(SessionCommand {
            program: "/proc/self/exe".into(),
            name: NAME.into(),
            args,
            env: env.into_iter().collect(),
            secrets_key: secrets_key::given,
        })
    }
}

/// The keeper stands elsewhere.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("`{}` cannot be found from elsewhere", path.display());
        Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
    })
}
