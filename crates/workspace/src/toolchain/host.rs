//! The caller's surroundings, as data: tests make their own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What detection may know about the caller.
#[derive(Debug, Clone)]
pub struct Host {
    pub home: Option<PathBuf>,
    /// The caller's `PATH`.
    pub path: OsString,
    /// Those of [`Host::ENV`] that are set.
    pub env: BTreeMap<String, OsString>,
    /// The directory that becomes the workspace; version files are looked for from here upwards.
    pub cwd: PathBuf,
    /// Never shown, nor anything that holds it.
    pub state_dir: Option<PathBuf>,
    pub opt: PathBuf,
    pub linuxbrew: PathBuf,
}

impl Host {
    /// The only variables that are read.
    pub const ENV: &'static [&'static str] = &[
        "ASDF_DATA_DIR",
        "BUN_INSTALL",
        "CARGO_HOME",
        "CONDA_DEFAULT_ENV",
        "CONDA_EXE",
        "CONDA_PREFIX",
        "DENO_INSTALL",
        "FNM_DIR",
        "GOBIN",
        "GOPATH",
        "GOROOT",
        "HOMEBREW_PREFIX",
        "JAVA_HOME",
        "MAMBA_ROOT_PREFIX",
        "MISE_DATA_DIR",
        "NVM_BIN",
        "NVM_DIR",
        "PIPX_HOME",
        "PYENV_ROOT",
        "PYENV_VERSION",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "SDKMAN_DIR",
        "UV_PYTHON_INSTALL_DIR",
        "UV_TOOL_DIR",
        "VIRTUAL_ENV",
        "VOLTA_HOME",
    ];

    /// A host with nothing but a workspace.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            home: None,
            path: OsString::new(),
            env: BTreeMap::new(),
            cwd: cwd.into(),
            state_dir: None,
            opt: PathBuf::from("/opt"),
            linuxbrew: PathBuf::from("/home/linuxbrew/.linuxbrew"),
        }
    }

    /// The surroundings of this process.
    pub fn of_process(cwd: impl Into<PathBuf>, state_dir: Option<PathBuf>) -> Self {
        let env = Self::ENV
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)))
            .collect();
        Self {
            home: std::env::var_os("HOME").map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
            env,
            state_dir,
            ..Self::new(cwd)
        }
    }

    /// A home that is not a place of its own (`/`, relative, empty) is none.
    pub(super) fn home(&self) -> Option<&Path> {
        let home = self.home.as_deref()?;
        (home.is_absolute() && home.parent().is_some()).then_some(home)
    }

    pub(super) fn text_var(&self, name: &str) -> Option<&str> {
        let text = self.env.get(name)?.to_str()?;
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn dir_var(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text_var(name)?);
        path.is_absolute().then_some(path)
    }

    pub(super) fn in_home(&self, relative: &str) -> Option<PathBuf> {
        Some(self.home()?.join(relative))
    }

    /// Where a manager lives: as its variable says, or at its default place.
    pub(super) fn place(&self, variable: &str, in_home: &str) -> Option<PathBuf> {
        self.dir_var(variable).or_else(|| self.in_home(in_home))
    }
}
