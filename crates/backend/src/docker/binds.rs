//! Directories of the host's that the operator shows to containers, and those that nobody may.

use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

/// Whoever can write there owns the host, and whoever can read there knows its secrets.
const FORBIDDEN: [&str; 12] = [
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/root",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
];

/// Inside these belong to the workspace, the engine or the kernel.
const RESERVED: [&str; 6] = [
    "/workspace",
    "/agent",
    "/proc",
    "/sys",
    "/dev",
    "/run/secrets",
];

/// The engine's own sockets, wherever they lie.
pub(crate) const SOCKETS: [&str; 5] = [
    "docker.sock",
    "podman.sock",
    "containerd.sock",
    "crio.sock",
    "buildkitd.sock",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) writable: bool,
}

/// Where sources may lie and where never.
#[derive(Debug, Clone)]
pub(crate) struct BindRules {
    roots: Vec<PathBuf>,
    /// Holds what others keep.
    state: PathBuf,
}

impl BindRules {
    pub(crate) fn new(roots: &[String], state: &Path) -> Self {
        Self {
            roots: roots.iter().map(PathBuf::from).collect(),
            state: state.to_path_buf(),
        }
    }

    /// `source:target[:ro|rw]`, or why not.
    pub(crate) fn parse(&self, text: &str) -> Result<Bind, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let (source, target, mode) = match parts.as_slice() {
            [source, target] => (source, target, "ro"),
            [source, target, mode] => (source, target, *mode),
            _ => return Err("is not `source:target` or `source:target:ro`".to_owned()),
        };
        let bind = Bind {
            source: PathBuf::from(source),
            target: PathBuf::from(target),
            writable: match mode {
                "ro" => false,
                "rw" => true,
                _ => return Err(format!("has the mode `{mode}`; there are `ro` and `rw`")),
            },
        };
        check_target(&bind.target)?;
        self.resolve(&bind)?;
        Ok(bind)
    }

    /// The source as it really is now, checked under both names. To be asked again right before a
    /// container is made: a link may have changed meanwhile.
    pub(crate) fn resolve(&self, bind: &Bind) -> Result<PathBuf, String> {
        self.check_source(&bind.source, &self.roots)?;
        let real = really(&bind.source).map_err(|error| format!("cannot be looked at: {error}"))?;
        let mut roots = Vec::new();
        for root in &self.roots {
            roots.extend(really(root));
        }
        let leads = |why: String| {
            if real == bind.source {
                why
            } else {
                format!("leads to `{}`, which {why}", real.display())
            }
        };
        self.check_source(&real, &roots).map_err(leads)?;
        let is_socket =
            std::fs::symlink_metadata(&real).is_ok_and(|facts| facts.file_type().is_socket());
        if is_socket {
            return Err(leads("is a socket".to_owned()));
        }
        if let Some(socket) = engine_sockets()
            .into_iter()
            .find(|it| it.starts_with(&real))
        {
            let shown = socket.display();
            return Err(leads(format!(
                "holds `{shown}`, the socket of a container engine"
            )));
        }
        Ok(real)
    }

    fn check_source(&self, path: &Path, roots: &[PathBuf]) -> Result<(), String> {
        plain(path)?;
        if path == Path::new("/") {
            return Err("is the whole host".to_owned());
        }
        for forbidden in FORBIDDEN.iter().map(Path::new) {
            if path.starts_with(forbidden) || forbidden.starts_with(path) {
                return Err(format!("shows `{}` of the host", forbidden.display()));
            }
        }
        if path.starts_with(&self.state) || self.state.starts_with(path) {
            return Err("shows Glovebox's own state directory".to_owned());
        }
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| SOCKETS.contains(&name)) {
            return Err("is the socket of a container engine".to_owned());
        }
        if !roots.iter().any(|root| path.starts_with(root)) {
            return Err("lies outside of `bind_roots`".to_owned());
        }
        Ok(())
    }
}

/// Where the engines of this host are reached, as they really are: those that are spoken to by this
/// process, and everybody's that is listened on under a usual name.
fn engine_sockets() -> Vec<PathBuf> {
    let named = ["DOCKER_HOST", "CONTAINER_HOST"]
        .into_iter()
        .filter_map(|name| {
            let address = std::env::var_os(name)?;
            Some(PathBuf::from(address.to_str()?.strip_prefix("unix://")?))
        });
    // Its last column; a path that holds a space is no usual one.
    let bound = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let usual = bound.lines().filter_map(|line| {
        let path = Path::new(line.split_whitespace().nth(7)?);
        let name = path.file_name()?.to_str()?;
        SOCKETS.contains(&name).then(|| path.to_owned())
    });
    let all = named.chain(usual).filter(|path| path.is_absolute());
    all.map(|path| really(&path).unwrap_or(path)).collect()
}

pub(crate) fn check_target(path: &Path) -> Result<(), String> {
    plain(path).map_err(|why| format!("has a target that {why}"))?;
    let reserved = RESERVED.iter().map(Path::new);
    if path == Path::new("/") || reserved.clone().any(|it| path.starts_with(it)) {
        return Err(format!("has the reserved target `{}`", path.display()));
    }
    Ok(())
}

/// Absolute and written in one way only.
pub(crate) fn plain(path: &Path) -> Result<(), String> {
    if !path.is_absolute() {
        return Err("is not absolute".to_owned());
    }
    let steps = path.components().skip(1);
    if !steps
        .clone()
        .all(|step| matches!(step, Component::Normal(_)))
    {
        return Err("goes up with `..`".to_owned());
    }
    let text = path.to_str().ok_or_else(|| "is not UTF-8".to_owned())?;
    if text.chars().any(char::is_control) {
        return Err("holds control characters".to_owned());
    }
    Ok(())
}

/// Links resolved as far as the path exists.
fn really(path: &Path) -> std::io::Result<PathBuf> {
    let mut missing = PathBuf::new();
    let mut ancestor = path;
    loop {
        match ancestor.canonicalize() {
            Ok(real) if missing.as_os_str().is_empty() => return Ok(real),
            Ok(real) => return Ok(real.join(missing)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // A link that leads nowhere leads somewhere tomorrow.
                if std::fs::symlink_metadata(ancestor).is_ok() {
                    return Err(error);
                }
                let (Some(parent), Some(name)) = (ancestor.parent(), ancestor.file_name()) else {
                    return Err(error);
                };
                missing = Path::new(name).join(missing);
                ancestor = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn sources_that_give_the_host_away_are_refused() -> Outcome {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        let state = root.join("state");
        std::fs::create_dir_all(root.join("data"))?;
        std::fs::create_dir_all(&state)?;
        let rules = BindRules::new(&["/".to_owned()], &state);
        for source in [
            "relative",
            "./here",
            "/",
            "//",
            "/etc",
            "/etc/ssh",
            "/proc/self",
            "/sys",
            "/dev/kvm",
            "/boot",
            "/root/.ssh",
            "/run",
            "/run/user/0",
            "/var/run/docker.sock",
            "/var",
            "/var/lib/docker/volumes",
            "/srv/../etc",
            "/srv/docker.sock",
            "/srv/a\nb",
        ] {
            assert!(rules.parse(&format!("{source}:/data")).is_err(), "{source}");
        }
        for source in [&state, &state.join("spaces"), &root] {
            let text = format!("{}:/data", source.display());
            assert!(rules.parse(&text).is_err(), "{text}");
        }
        let data = root.join("data");
        assert!(rules.parse(&format!("{}:/data", data.display())).is_ok());
        Ok(())
    }

    #[test]
    fn a_directory_around_an_engines_socket_is_refused() -> Outcome {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        let (engine, data) = (root.join("engine"), root.join("data"));
        std::fs::create_dir_all(engine.join("run"))?;
        std::fs::create_dir_all(&data)?;
        let rules = BindRules::new(&[root.display().to_string()], Path::new("/srv/state"));
        let asked = |source: &Path| rules.parse(&format!("{}:/data", source.display()));
        asked(&engine)?;
        let _listens = std::os::unix::net::UnixListener::bind(engine.join("run/podman.sock"))?;
        for source in [&engine, &engine.join("run"), &root] {
            let why = asked(source).unwrap_err();
            assert!(why.contains("podman.sock"), "{why}");
        }
        asked(&data)?;
        Ok(())
    }

    #[test]
    fn links_are_judged_by_where_they_lead() -> Outcome {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        let (inside, outside) = (root.join("in"), root.join("out"));
        std::fs::create_dir_all(inside.join("real"))?;
        std::fs::create_dir_all(&outside)?;
        for (name, target) in [
            ("etc", Path::new("/etc")),
            ("out", outside.as_path()),
            ("up", Path::new("../out")),
            ("later", Path::new("/nowhere/yet")),
            ("fine", Path::new("real")),
        ] {
            std::os::unix::fs::symlink(target, inside.join(name))?;
        }
        let roots = [inside.display().to_string()];
        let rules = BindRules::new(&roots, &root.join("state"));
        let asked = |name: &str| rules.parse(&format!("{}/{name}:/data", inside.display()));
        for name in [
            "etc",
            "etc/ssh",
            "etc/not-there",
            "out",
            "up/x",
            "later",
            "later/x",
        ] {
            assert!(asked(name).is_err(), "{name}");
        }
        for name in ["real", "fine", "fine/not-there-yet", "new/deep"] {
            assert!(asked(name).is_ok(), "{name}: {:?}", asked(name));
        }
        // Changed after it was accepted.
        let bind = asked("real")?;
        std::fs::remove_dir(inside.join("real"))?;
        std::os::unix::fs::symlink("/etc", inside.join("real"))?;
        assert!(rules.resolve(&bind).is_err());
        Ok(())
    }

    #[test]
    fn targets_and_modes() -> Outcome {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        let data = root.join("data");
        std::fs::create_dir(&data)?;
        let rules = BindRules::new(&[root.display().to_string()], Path::new("/srv/state"));
        let data = data.display();
        for rest in [
            "/workspace",
            "/workspace/work",
            "/",
            "relative",
            "/a/../workspace",
            "/proc/x",
            "/dev/shm",
            "/ok:rx",
            "/ok:ro:z",
            "",
        ] {
            assert!(rules.parse(&format!("{data}:{rest}")).is_err(), "{rest}");
        }
        assert!(!rules.parse(&format!("{data}:/ok"))?.writable);
        assert!(rules.parse(&format!("{data}:/ok:rw"))?.writable);
        assert!(rules.parse(&format!("{data}:/workspaces:ro")).is_ok());
        Ok(())
    }

    #[test]
    fn without_roots_there_is_nothing_to_show() {
        let rules = BindRules::new(&[], Path::new("/srv/state"));
        assert!(rules.parse("/srv/data:/data").is_err());
    }
}
