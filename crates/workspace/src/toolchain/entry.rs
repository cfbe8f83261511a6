//! One directory of programs, and the kind that claims it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::draft::Draft;
use super::guard::Guard;
use super::host::Host;
use super::kind::Kind;
use super::{
    asdf, conda, fnm, golang, homebrew, local_bin, mise, nvm, opt, pyenv, rustup, script, sdkman,
    uv, venv, volta,
};

/// A `PATH` longer than this is no shell's doing.
const LONGEST_PATH: usize = 256;

/// Who says that a directory is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The caller's `PATH` or active environment.
    Active,
    /// `--toolchain NAME`, of something that is not active.
    Asked,
    /// The command names it by path.
    Command,
    /// A trusted environment is built on it.
    Base,
    /// A file in the workspace: it may point at known places only.
    Project,
}

impl Origin {
    pub(super) fn on_path(self) -> bool {
        match self {
            Self::Active | Self::Asked => true,
            Self::Command | Self::Base | Self::Project => false,
        }
    }

    pub(super) fn trusted(self) -> bool {
        match self {
            Self::Active | Self::Asked | Self::Command | Self::Base => true,
            Self::Project => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Absolute, without `.` and `..`.
    pub(super) dir: PathBuf,
    pub(super) origin: Origin,
}

impl Entry {
    pub(super) fn new(dir: &Path, origin: Origin) -> Self {
        Self {
            dir: dir.components().collect(),
            origin,
        }
    }

    /// The prefix, when this is its `bin`.
    pub(super) fn prefix(&self) -> Option<&Path> {
        let parent = self.dir.parent()?;
        (self.dir.file_name() == Some(OsStr::new("bin"))).then_some(parent)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Mine,
    NotMine,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Filter<'k> {
    Any,
    Only(Kind),
    Among(&'k [Kind]),
}

impl Filter<'_> {
    pub(super) fn allows(self, kind: Kind) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == kind,
            Self::Among(kinds) => kinds.contains(&kind),
        }
    }
}

/// What the caller's shell has in use, first things first; nothing that the sandbox sees anyway.
pub(super) fn active(host: &Host) -> Vec<Entry> {
    let mut entries: Vec<Entry> = std::env::split_paths(&host.path)
        .take(LONGEST_PATH)
        .filter_map(|dir| usable(&dir))
        .map(|dir| Entry::new(&dir, Origin::Active))
        .collect();
    // An environment can be active by its variable alone; then it is meant to come first.
    for variable in ["CONDA_PREFIX", "VIRTUAL_ENV"] {
        if let Some(bin) = host
            .dir_var(variable)
            .and_then(|dir| usable(&dir.join("bin")))
            && !entries.iter().any(|entry| entry.dir == bin)
        {
            entries.insert(0, Entry::new(&bin, Origin::Active));
        }
    }
    let mut seen = Vec::with_capacity(entries.len());
    entries.retain(|entry| {
        let new = !seen.contains(&entry.dir);
        seen.push(entry.dir.clone());
        new
    });
    entries
}

/// The directory of a command that is given by its path.
pub(super) fn of_command(host: &Host, command: &OsStr) -> Option<Entry> {
    let path = Path::new(command);
    if !command.as_encoded_bytes().contains(&b'/') {
        return None;
    }
    let dir = usable(host.cwd.join(path).parent()?)?;
    let origin = if dir.starts_with(&host.cwd) {
        Origin::Project
    } else {
        Origin::Command
    };
    Some(Entry::new(&dir, origin))
}

/// Absolute, text, not of the system, and without `..`: after a link in the workspace, that would
/// lead wherever the link's writer wants.
pub(super) fn usable(dir: &Path) -> Option<PathBuf> {
    let plain = dir.is_absolute()
        && dir.to_str().is_some()
        && dir.components().all(|part| part != Component::ParentDir);
    (plain && !Guard::in_system(dir)).then(|| dir.components().collect())
}

/// Offers a directory to the kinds that `filter` allows.
pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry, filter: Filter<'_>) -> Claim {
    if !entry.dir.is_dir() {
        return Claim::NotMine;
    }
    if local_bin::is_mixed(draft.host, &entry.dir) {
        local_bin::scan(draft, entry, filter);
        return Claim::Mine;
    }
    for kind in Kind::ALL.iter().filter(|kind| filter.allows(**kind)) {
        if offer(draft, entry, *kind) == Claim::Mine {
            return Claim::Mine;
        }
    }
    Claim::NotMine
}

fn offer(draft: &mut Draft<'_>, entry: &Entry, kind: Kind) -> Claim {
    match kind {
        Kind::Venv => venv::recognise(draft, entry),
        Kind::Pyenv => pyenv::recognise(draft, entry),
        Kind::Uv => uv::recognise(draft, entry),
        Kind::Conda => conda::recognise(draft, entry),
        Kind::Rustup => rustup::recognise(draft, entry),
        Kind::Nvm => nvm::recognise(draft, entry),
        Kind::Fnm => fnm::recognise(draft, entry),
        Kind::Volta => volta::recognise(draft, entry),
        Kind::Asdf => asdf::recognise(draft, entry),
        Kind::Mise => mise::recognise(draft, entry),
        Kind::Sdkman => sdkman::recognise(draft, entry),
        Kind::Go => golang::recognise(draft, entry),
        Kind::Deno | Kind::Bun => script::recognise(draft, entry, kind),
        Kind::Homebrew => homebrew::recognise(draft, entry),
        Kind::Opt => opt::recognise(draft, entry),
        // A tool of pipx is a single program in a mixed directory; a path is only ever named.
        Kind::Pipx | Kind::Path => Claim::NotMine,
    }
}

/// The directories that would be in `PATH` if this kind were active.
pub(super) fn usual(host: &Host, kind: Kind) -> Vec<PathBuf> {
    match kind {
        Kind::Venv => venv::usual(host),
        Kind::Pyenv => pyenv::usual(host),
        Kind::Uv => uv::usual(host),
        Kind::Conda => conda::usual(host),
        Kind::Rustup => rustup::usual(host),
        Kind::Nvm => nvm::usual(host),
        Kind::Fnm => fnm::usual(host),
        Kind::Volta => volta::usual(host),
        Kind::Asdf => asdf::usual(host),
        Kind::Mise => mise::usual(host),
        Kind::Sdkman => sdkman::usual(host),
        Kind::Go => golang::usual(host),
        Kind::Deno | Kind::Bun => script::usual(host, kind),
        Kind::Homebrew => homebrew::usual(host),
        Kind::Pipx => local_bin::usual(host),
        Kind::Opt | Kind::Path => Vec::new(),
    }
}

/// The directory in which this kind keeps everything, for those that have one.
pub(super) fn root(host: &Host, kind: Kind) -> Option<PathBuf> {
    match kind {
        Kind::Pyenv => pyenv::root(host),
        Kind::Rustup => rustup::cargo_home(host),
        Kind::Nvm => nvm::root(host),
        Kind::Fnm => fnm::root(host),
        Kind::Volta => volta::root(host),
        Kind::Asdf => asdf::root(host),
        Kind::Mise => mise::root(host),
        Kind::Sdkman => sdkman::root(host),
        Kind::Homebrew => Some(homebrew::root(host)),
        Kind::Deno | Kind::Bun => script::root(host, kind),
        Kind::Venv | Kind::Uv | Kind::Conda | Kind::Go | Kind::Pipx | Kind::Opt | Kind::Path => {
            None
        }
    }
}
