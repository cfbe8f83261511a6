//! What holds for every command: the state directory, the configuration, who the caller is.

use std::path::{Path, PathBuf};

use glovebox_engine::{
    Engine, Keeper, KeeperSlot, KeySource, Recovered, Settings, Spawner, host_facts,
};
use glovebox_model::{Code, Correlation, Error, Result, SpaceId, Stage};
use glovebox_policy::{Config, Surface};
use glovebox_serve::LocalApi;
use glovebox_skill::Catalogue;
use glovebox_store::{StateDir, Store};
use glovebox_workspace::Dir;

use crate::args::Global;
use crate::human::count;
use crate::progress_meter::ProgressLine;
use crate::records::Records;
use crate::render;
use crate::secrets_key;
use glovebox_api::client::{Address, Client, Credential};

/// Lost execs that are named one by one.
const SHOWN_MOST: usize = 10;

/// Where everything durable lies.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) state: PathBuf,
    /// SQLite in the state directory without it.
    pub(crate) database: Option<String>,
    /// The state directory without it.
    pub(crate) keys: Option<PathBuf>,
}

impl Place {
    pub(crate) fn state_dir(&self) -> Result<StateDir> {
        let state = StateDir::open(&self.state)?;
        match &self.keys {
            Some(keys) => state.with_keys(keys),
            None => Ok(state),
        }
    }

    /// Whether anything was ever written: it is not made only to be read.
    pub(crate) fn is_there(&self) -> Result<bool> {
        match self.state.join("glovebox.db").try_exists() {
            Ok(found) => Ok(found || self.database.is_some()),
            Err(error) => {
                let shown = self.state.display();
                Err(Error::new(
                    Code::StoreUnavailable,
                    Stage::Open,
                    format!("cannot look into the state directory `{shown}`"),
                )
                .caused_by(error)
                .hint("run as its owner, or name another with `--state-dir DIR`"))
            }
        }
    }

    /// `None` where nothing was ever written.
    pub(crate) fn open_if_there(&self) -> Result<Option<(StateDir, Store)>> {
        self.is_there()?.then(|| self.open()).transpose()
    }

    pub(crate) fn open(&self) -> Result<(StateDir, Store)> {
        let state = self.state_dir()?;
        let store = match &self.database {
            Some(address) => Store::connect(&state, address)?,
            None => Store::open(&state)?,
        };
        Ok((state, store))
    }
}

pub(crate) struct Context<'args> {
    global: &'args Global,
}

impl<'args> Context<'args> {
    pub(crate) fn new(global: &'args Global) -> Self {
        Self { global }
    }

    pub(crate) fn global(&self) -> &'args Global {
        self.global
    }

    pub(crate) fn place(&self) -> Result<Place> {
        let global = self.global;
        let variable = || {
            std::env::var("GLOVEBOX_DATABASE")
                .ok()
                .filter(|it| !it.is_empty())
        };
        Ok(Place {
            state: self.state_path()?,
            database: global.database.clone().or_else(variable),
            keys: global
                .keys_dir
                .clone()
                .or_else(|| named("GLOVEBOX_KEYS_DIR")),
        })
    }

    /// The server that was named, if one was.
    pub(crate) fn server(&self) -> Result<Option<Client>> {
        let Some(address) = self.address()? else {
            return Ok(None);
        };
        let state = self.state_path().ok();
        let file = self.global.token_file.as_deref();
        let credential = Credential::find(&address, file, state.as_deref())?;
        if address.is_exposed() && credential.is_some() && !self.global.quiet {
            render::note(&format!(
                "the token goes to `{address}` in the clear; use `https://`"
            ));
        }
        Client::connect(address, self.global.ca_file.as_deref(), credential).map(Some)
    }

    /// For what is on record, tokens, settings and secrets: the API of the server that was named, or in
    /// this process. Who has the state directory needs no valid configuration for them.
    pub(crate) fn store_api(&self) -> Result<Client> {
        if let Some(client) = self.server()? {
            return Ok(client);
        }
        let place = self.place()?;
        let api = LocalApi::of_store(Settings {
            config: Config::default(),
            shadow: None,
            state: place.state_dir()?,
            database: place.database,
            surface: Surface::Local,
            host: host_facts(),
            homes: homes(),
            secrets_key: self.secrets_key()?,
        })?;
        Ok(api.client)
    }

    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn store_api_if_there(&self) -> Result<Option<Client>> {
        match self.address()? {
            None if !self.place()?.is_there()? => Ok(None),
            _ => self.store_api().map(Some),
        }
    }

    /// The API of the server that was named, or in this process.
    pub(crate) fn api(&self) -> Result<Client> {
        match self.server()? {
            Some(client) => Ok(client),
            None => Ok(self
                .local_api(None, &ProgressLine::new(self.global))?
                .client),
        }
    }

    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn api_if_there(&self) -> Result<Option<Client>> {
        match self.address()? {
            None if !self.place()?.is_there()? => Ok(None),
            _ => self.api().map(Some),
        }
    }

    /// The API in this process, for the person at the machine.
    pub(crate) fn local_api(
        &self,
        directory: Option<&Path>,
        progress: &ProgressLine,
    ) -> Result<LocalApi> {
        let api = LocalApi::open(self.own_settings()?, directory, Some(progress.listener()))?;
        api.dispatcher()
            .start_sessions_with(self.session_command(Surface::Local, directory)?);
        self.report_recovered(api.dispatcher().recovered());
        Ok(api)
    }

    /// Where it is: by the option, or else by the environment.
    pub(crate) fn address(&self) -> Result<Option<Address>> {
        if let Some(address) = &self.global.server {
            return Ok(Some(address.clone()));
        }
        let variable = std::env::var("GLOVEBOX_SERVER").unwrap_or_default();
        if variable.is_empty() {
            return Ok(None);
        }
        variable.parse().map(Some).map_err(|why: &str| {
            Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "`GLOVEBOX_SERVER` is not the address of a server",
            )
            .hint(why)
        })
    }

    /// For commands that only read: nothing is made, and where nothing was ever run there is `None`.
    pub(crate) fn records(&self) -> Result<Option<Records>> {
        Ok(self.store_api_if_there()?.map(Records::of))
    }

    /// For commands that need something to read.
    pub(crate) fn some_records(&self) -> Result<Records> {
        match self.records()? {
            Some(records) => Ok(records),
            None => Err(Error::new(
                Code::NotFound,
                Stage::Parse,
                format!("nothing is on record in `{}`", self.state_path()?.display()),
            )
            .hint("records are made by `glovebox run`; `--state-dir DIR` names another place")),
        }
    }

    pub(crate) fn engine(&self) -> Result<Engine> {
        Engine::open(self.own_settings()?)
    }

    pub(crate) fn engine_with_seat(&self, keeper: Keeper) -> Result<(Engine, KeeperSlot)> {
        let engine = self.engine()?;
        let seat = engine.sandboxes.seat(keeper)?;
        Ok((engine, seat))
    }

    /// To look only: another state directory will do.
    pub(crate) fn engine_in(&self, state: StateDir) -> Result<Engine> {
        Engine::open(self.settings(state)?)
    }

    pub(crate) fn own_settings(&self) -> Result<Settings> {
        self.settings(self.own_state()?)
    }

    fn own_state(&self) -> Result<StateDir> {
        let place = self.place()?;
        if place.database.is_some() {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "only a server can run something that is recorded in a shared database",
            )
            .hint("name one: `--server URL`; or unset `GLOVEBOX_DATABASE` to run it here"));
        }
        place.state_dir()
    }

    fn settings(&self, state: StateDir) -> Result<Settings> {
        Ok(Settings {
            config: self.config()?,
            shadow: self.shadow()?,
            state,
            database: None,
            surface: Surface::Local,
            host: host_facts(),
            homes: homes(),
            secrets_key: self.secrets_key()?,
        })
    }

    /// Where the key of the secrets is.
    pub(crate) fn secrets_key(&self) -> Result<KeySource> {
        let file = self.global.secrets_key_file.clone();
        secrets_key::source(file.or_else(|| named("GLOVEBOX_SECRETS_KEY_FILE")))
    }

    /// What an earlier crash had left and this command took down.
    pub(crate) fn report_recovered(&self, recovered: Option<&Recovered>) {
        let Some(recovered) = recovered.filter(|_| !self.global.quiet) else {
            return;
        };
        for exec in recovered.lost.iter().take(SHOWN_MOST) {
            let id = &exec.exec_id;
            render::note(&match exec.ids.space_id == SpaceId::local() {
                true => format!("`{id}` was lost in a crash: `glovebox show {id}`"),
                false => format!("`{id}` of `{}` was lost in a crash", exec.ids.space_id),
            });
        }
        if recovered.lost.len() > SHOWN_MOST {
            let more = recovered.lost.len() - SHOWN_MOST;
            render::note(&format!(
                "and {more} more: `glovebox audit query --kind recovered`"
            ));
        }
        if !recovered.groups.is_empty() {
            let groups = count(
                recovered.groups.len() as u64,
                "control group",
                "control groups",
            );
            render::note(&format!("removed {groups} that a crash had left"));
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
        let config = self.config_shown(|path| path.display().to_string());
        self.with_skills(config?)
    }

    /// For a server, whose callers are told which rule refused them and not where on the host it
    /// lies.
    pub(crate) fn config_of_server(&self) -> Result<Config> {
        let config = self.config_shown(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        });
        self.with_skills(config?)
    }

    /// A directory of skills that is named here counts before the file's.
    fn with_skills(&self, config: Config) -> Result<Config> {
        let dir = self.global.skills_dir.clone();
        let Some(dir) = dir.or_else(|| named("GLOVEBOX_SKILLS_DIR")) else {
            return Ok(config);
        };
        let whole = std::path::absolute(&dir).map_err(|error| {
            let message = format!("`{}` is no directory of skills", dir.display());
            Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
        })?;
        Ok(config.with_skills_in(whole))
    }

    /// The skills that there are on this machine.
    pub(crate) fn skills(&self) -> Result<Catalogue> {
        let config = self.config()?;
        let settings = config.skills();
        Ok(Catalogue::new(glovebox_skill::Settings {
            dir: settings.dir.clone(),
            shipped: settings.shipped,
            pin: settings.pin.clone(),
        }))
    }

    /// Another policy that is only tried, if one was named.
    pub(crate) fn shadow(&self) -> Result<Option<Config>> {
        let named = named("GLOVEBOX_SHADOW_POLICY");
        let file = self.global.shadow_policy.clone().or(named);
        // The ledger is read by others too: they see its name, not where it lies.
        let shown = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
        let read = |path: PathBuf| Config::parse(&config_text(&path)?, &shown(&path));
        file.map(read).transpose()
    }

    fn config_shown(&self, shown: impl FnOnce(&Path) -> String) -> Result<Config> {
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
            Ok(text) => Config::parse(&text, &shown(&path)),
        }
    }
}

/// A configuration that was named, to be looked at.
pub(crate) fn config_text(path: &Path) -> Result<String> {
    read_config(path).map_err(|error| {
        Error::new(
            Code::InvalidConfig,
            Stage::Parse,
            format!("cannot use the configuration `{}`", path.display()),
        )
        .caused_by(error)
    })
}

fn usual_config() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/etc/glovebox/config.toml"));
    }
    let directory = absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?;
    Some(directory.join("glovebox/config.toml"))
}

/// Only a file that no stranger can have written.
fn read_config(path: &Path) -> std::io::Result<String> {
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
pub(crate) fn homes() -> Vec<PathBuf> {
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

/// To be called before anything that might start a thread.
pub(crate) fn fork_keeper() -> Result<Keeper> {
    Keeper::fork().map_err(|errno| {
        Error::new(
            Code::SetupFailed,
            Stage::Admit,
            "cannot start the sandbox's keeper",
        )
        .caused_by(errno)
    })
}

/// Hands out more keepers. Before any thread exists.
pub(crate) fn fork_spawner() -> Result<Spawner> {
    Spawner::fork().map_err(|error| {
        let message = "cannot start the spawner of keepers";
        Error::new(Code::SetupFailed, Stage::Admit, message).caused_by(error)
    })
}

/// A keeper for one more exec.
pub(crate) fn seat_from(spawner: &Spawner, engine: &Engine) -> Result<KeeperSlot> {
    let keeper = spawner.spawn().map_err(|error| {
        let message = "cannot start the sandbox's keeper";
        Error::new(Code::BackendUnavailable, Stage::Judge, message).caused_by(error)
    })?;
    engine.sandboxes.seat(keeper)
}

/// Whoever is logged in, as records name them.
pub(crate) fn user() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// Everything in-process belongs to one space and to whoever is logged in.
pub(crate) fn local_ids(task_id: Option<String>) -> Correlation {
    Correlation {
        user_id: Some(user()),
        task_id,
        ..Correlation::of_space(SpaceId::local())
    }
}

/// A directory that the person at the machine named.
pub(crate) fn directory(path: &Path) -> Result<Dir> {
    Dir::open_trusted(path).map_err(|error| {
        let message = format!("cannot open the directory `{}`", path.display());
        Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
    })
}
