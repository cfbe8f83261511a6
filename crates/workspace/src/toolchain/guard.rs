//! What is never shown to a sandbox, whoever asks. Works on canonical paths alone and asks the
//! file system nothing after it is made.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::host::Host;

/// In every sandbox already.
const SYSTEM: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// State of the machine, or what the sandbox has its own of.
const MACHINE: &[&str] = &[
    "/boot",
    "/dev",
    "/etc",
    "/proc",
    "/run",
    "/sys",
    "/var",
    "/workspace",
];

/// Below a home: credentials, or places that gather everything.
const PRIVATE: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".bitcoin",
    ".boto",
    ".cache",
    ".cargo/config.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".cargo/git",
    ".claude",
    ".claude.json",
    ".codex",
    ".composer",
    ".condarc",
    ".config",
    ".docker",
    ".electrum",
    ".gem/credentials",
    ".git-credentials",
    ".gitconfig",
    ".gnupg",
    ".gradle",
    ".gsutil",
    ".ivy2",
    ".kube",
    ".local/bin",
    ".local/share/containers",
    ".local/share/keyrings",
    ".local/state",
    ".m2",
    ".minikube",
    ".mozilla",
    ".netrc",
    ".npm",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pki",
    ".pulumi",
    ".putty",
    ".pypirc",
    ".sbt",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".var",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
    "snap",
];

/// Directories of single toolchains that stand in a private place: what is *below* them may be
/// shown.
const WITHIN_PRIVATE: &[&str] = &[".config/nvm/versions/node", ".cache/pypoetry/virtualenvs"];

/// Why a path is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    AroundWorkspace,
    /// Through a link, from a place where only versions of one manager belong.
    Elsewhere(PathBuf),
    Home,
    HoldsPrivate(&'static str),
    Machine(&'static str),
    NotADirectory,
    NotAProgram,
    NotText,
    Private(&'static str),
    StateDirectory,
    TopLevel,
    WorkspaceLink,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AroundWorkspace => f.write_str("it holds the workspace and more"),
            Self::Elsewhere(to) => {
                write!(f, "it leads to `{}`", super::text::show(to))
            }
            Self::Home => f.write_str("it is, or holds, a home directory"),
            Self::HoldsPrivate(what) => write!(f, "it holds `~/{what}`"),
            Self::Machine(what) => write!(f, "it belongs to `{what}`"),
            Self::NotADirectory => f.write_str("it is not a directory"),
            Self::NotAProgram => f.write_str("it is not an executable file"),
            Self::NotText => {
                f.write_str("its name has a colon, a control character or is not UTF-8")
            }
            Self::Private(what) => write!(f, "`~/{what}` is private"),
            Self::StateDirectory => f.write_str("it is, holds or is in the state directory"),
            Self::TopLevel => f.write_str("it is a top-level directory"),
            Self::WorkspaceLink => f.write_str("a link in the workspace leads out of it"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Guard {
    /// The caller's, as named and as it really is.
    homes: Vec<PathBuf>,
    workspace: PathBuf,
    state: Option<PathBuf>,
}

impl Guard {
    pub(super) fn new(host: &Host) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut homes = Vec::new();
        if let Some(home) = host.home() {
            homes.extend([home.to_owned(), real(home)]);
            homes.dedup();
        }
        Self {
            homes,
            workspace: real(&host.cwd),
            state: host.state_dir.as_deref().map(real),
        }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Whether a sandbox sees it without any mount.
    pub(super) fn in_system(path: &Path) -> bool {
        SYSTEM.iter().any(|dir| path.starts_with(dir))
    }

    /// Refuses places that are too wide to be any toolchain's or manager's own.
    pub(super) fn check_root(&self, path: &Path) -> Result<(), Refusal> {
        let letters = path.to_str().ok_or(Refusal::NotText)?;
        if letters.contains(|letter: char| letter.is_control() || letter == ':') {
            return Err(Refusal::NotText);
        }
        if !path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        {
            return Err(Refusal::NotText);
        }
        if self.homes_near(path).any(|home| home.starts_with(path)) {
            return Err(Refusal::Home);
        }
        if path.components().count() <= 2 {
            return Err(Refusal::TopLevel);
        }
        if self.workspace != path && self.workspace.starts_with(path) {
            return Err(Refusal::AroundWorkspace);
        }
        if let Some(state) = &self.state
            && (state.starts_with(path) || path.starts_with(state))
        {
            return Err(Refusal::StateDirectory);
        }
        // A home or a workspace may well be below `/var`.
        let own = self.homes.iter().any(|home| path.starts_with(home))
            || path.starts_with(&self.workspace);
        match MACHINE.iter().find(|dir| path.starts_with(dir)) {
            Some(dir) if !own => Err(Refusal::Machine(dir)),
            _ => Ok(()),
        }
    }

    /// As [`Self::check_root`], and nothing private in it or around it.
    pub(super) fn check(&self, path: &Path) -> Result<(), Refusal> {
        self.check_root(path)?;
        self.homes_near(path)
            .filter_map(|home| path.strip_prefix(home).ok().map(Path::to_owned))
            .try_for_each(|below| check_below_home(&below))
    }

    /// The caller's home, and whichever other home `path` is, holds or is in: run by root, those of
    /// others are within reach too.
    fn homes_near(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let mut parts = path.components().skip(1);
        let other = match (parts.next(), parts.next()) {
            (Some(first), _) if first.as_os_str() == "root" => Some(PathBuf::from("/root")),
            // `/home/linuxbrew` is nobody's.
            (Some(first), Some(second))
                if first.as_os_str() == "home" && second.as_os_str() != "linuxbrew" =>
            {
                Some(Path::new("/home").join(second))
            }
            _ => None,
        };
        let known = other.filter(|other| !self.homes.contains(other));
        self.homes.clone().into_iter().chain(known)
    }
}

fn check_below_home(below: &Path) -> Result<(), Refusal> {
    let first = below.iter().next();
    let near = |place: &&&str| Path::new(place).iter().next() == first;
    if WITHIN_PRIVATE
        .iter()
        .any(|place| below != Path::new(place) && below.starts_with(place))
    {
        return Ok(());
    }
    for private in PRIVATE.iter().filter(near) {
        let place = Path::new(private);
        if place != below && place.starts_with(below) {
            return Err(Refusal::HoldsPrivate(private));
        }
        // A program in `~/.local/bin` may be shown; the directory may not.
        let mixed = *private == ".local/bin" && below != place;
        if below.starts_with(place) && !mixed {
            return Err(Refusal::Private(private));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let mut host = Host::new("/home/me/code/app");
        host.home = Some("/home/me".into());
        host.state_dir = Some("/home/me/.local/state/glovebox".into());
        Guard::new(&host)
    }

    #[test]
    fn places_that_hold_more_than_a_toolchain_are_refused() {
        for path in [
            "/",
            "/home",
            "/home/me",
            "/root",
            "/opt",
            "/etc/ssl",
            "/proc/1",
            "/var/lib/x",
            "/home/me/code",
            "/home/me/.local",
            "/home/me/.local/share",
            "/home/me/.local/bin",
            "/home/me/.ssh",
            "/home/me/.ssh/keys",
            "/home/me/.config/nvm",
            "/home/me/.cache/pip",
            "/home/me/.config/nvm/versions/node",
            "/home/me/.cargo",
            "/home/you",
            "/home/you/.aws",
            "/root/.ssh",
            "/home/me/.local/state/glovebox/projects",
            "/workspace/work",
            "/home/me/../you/x",
            "/home/me/a:b",
            "/home/me/a\nb",
        ] {
            assert!(guard().check(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_toolchain_of_its_own_is_not_refused() {
        for path in [
            "/home/me/.pyenv/versions/3.12.1",
            "/home/me/.config/nvm/versions/node/v20.1.0",
            "/home/me/.cache/pypoetry/virtualenvs/app-x-py3.12",
            "/home/me/.cargo/bin",
            "/home/me/.local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu",
            "/home/me/.local/bin/tool",
            "/home/me/code/app",
            "/home/linuxbrew/.linuxbrew/bin",
            "/opt/jdk",
        ] {
            assert_eq!(guard().check(Path::new(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_home_in_var_has_toolchains_too() {
        let mut host = Host::new("/var/lib/ci/work");
        host.home = Some("/var/lib/ci".into());
        let guard = Guard::new(&host);
        assert_eq!(
            guard.check(Path::new("/var/lib/ci/.pyenv/versions/3.12.1")),
            Ok(())
        );
        assert!(guard.check(Path::new("/var/lib/other/bin")).is_err());
        assert_eq!(guard.check(Path::new("/var/lib/ci")), Err(Refusal::Home));
    }
}
