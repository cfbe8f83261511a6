//! What holds for every command: the state directory, the configuration, who the caller is.

use std::path::{Path, PathBuf};

use glovebox_engine::{Engine, Keeper, Seat, Settings, host_facts};
use glovebox_model::{Code, Correlation, Error, Result, SpaceId, Stage};
use glovebox_policy::{Config, Surface};
use glovebox_store::StateDir;

use crate::args::Global;
use crate::records::Records;
use crate::render;

pub(crate) struct Context<'args> {
    global: &'args Global,
}

impl<'args> Context<'args> {
    pub(crate) fn new(global: &'args Global) -> Self {
        Self { global }
    }

    pub(crate) fn state(&self) -> Result<StateDir> {
        StateDir::open(self.state_path()?)
    }

    /// For commands that only read: nothing is made, and where nothing was ever run there is `None`.
    pub(crate) fn records(&self) -> Result<Option<Records>> {
        Records::open(&self.state_path()?)
    }

    /// For commands that need something to read.
    pub(crate) fn some_records(&self) -> Result<Records> {
        let path = self.state_path()?;
        Records::open(&path)?.ok_or_else(|| {
            Error::new(
                Code::NotFound,
                Stage::Parse,
                format!("nothing is on record in `{}`", path.display()),
            )
            .hint("records are made by `glovebox run`; `--state-dir DIR` names another place")
        })
    }

    pub(crate) fn engine_with_seat(&self, keeper: Keeper) -> Result<(Engine, Seat)> {
        Engine::open_with_seat(self.settings()?, keeper)
    }

    pub(crate) fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            config: self.config()?,
            state: self.state()?,
            surface: Surface::Local,
            host: host_facts(),
            homes: homes(),
        })
    }

    /// What an earlier crash had left and this command took down.
    pub(crate) fn report_recovered(&self, engine: &Engine) {
        let Some(recovered) = engine.recovered() else {
            return;
        };
        if self.global.quiet {
            return;
        }
        for exec in &recovered.lost {
            let id = &exec.exec_id;
            render::note(&format!("`{id}` was lost in a crash: `glovebox show {id}`"));
        }
        if !recovered.groups.is_empty() {
            let count = recovered.groups.len();
            render::note(&format!(
                "removed {count} control groups that a crash had left"
            ));
        }
    }

    pub(crate) fn state_path(&self) -> Result<PathBuf> {
        if let Some(path) = self
            .global
            .state_dir
            .clone()
            .or_else(|| named("GLOVEBOX_STATE_DIR"))
        {
            return Ok(path);
        }
        if rustix::process::geteuid().is_root() {
            return Ok(PathBuf::from("/var/lib/glovebox"));
        }
        let own = absolute("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")));
        own.map(|path| path.join("glovebox")).ok_or_else(|| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Parse,
                "there is no state directory",
            )
            .hint("set `GLOVEBOX_STATE_DIR` or give `--state-dir DIR`")
        })
    }

    /// A named file must be there; the usual one may be missing.
    pub(crate) fn config(&self) -> Result<Config> {
        let (path, must_exist) = match self
            .global
            .config
            .clone()
            .or_else(|| named("GLOVEBOX_CONFIG"))
        {
            Some(path) => (path, true),
            None => match usual_config() {
                Some(path) => (path, false),
                None => return Ok(Config::default()),
            },
        };
        match read_config(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
                Ok(Config::default())
            }
            Err(error) => Err(Error::new(
                Code::InvalidConfig,
                Stage::Parse,
                format!("cannot use the configuration `{}`", path.display()),
            )
            .caused_by(error)
            .hint("it decides what programs may do: only you or root may be able to write it")),
            Ok(text) => Config::parse(&text, &path.display().to_string()),
        }
    }
}

fn usual_config() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/etc/glovebox/config.toml"));
    }
    let directory = absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?;
    Some(directory.join("glovebox/config.toml"))
}

/// Only a file that no stranger can have written.
pub(crate) fn read_config(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    const LONGEST: u64 = 1 << 20;
    let file = std::fs::File::open(path)?;
    let facts = file.metadata()?;
    let refuse = |why: &str| Err(std::io::Error::other(why.to_owned()));
    if !facts.is_file() {
        return refuse("it is not a regular file");
    }
    if facts.mode() & 0o002 != 0 {
        return refuse("anybody may write to it (mode has o+w)");
    }
    if facts.len() > LONGEST {
        return refuse("it is larger than 1 MiB");
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// A variable that is empty is not set.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// Both what the environment says and what the account says: neither may be adopted.
fn homes() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_account = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&uid.as_str())).then(|| fields.get(5).map(PathBuf::from))?
    });
    let mut homes: Vec<PathBuf> = home().into_iter().chain(of_account).collect();
    homes.dedup();
    homes
}

/// Everything in-process belongs to one space and to whoever is logged in.
pub(crate) fn local_ids(task_id: Option<String>) -> Correlation {
    Correlation {
        user_id: Some(rustix::process::getuid().as_raw().to_string()),
        task_id,
        ..Correlation::of_space(SpaceId::local())
    }
}
