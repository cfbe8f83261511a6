//! A directory of the host's that the operator shows to a sandbox: checked under every name it has,
//! and held by handle from then on, so that nobody exchanges it.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glovebox_model::{Access, Code, Error, Result, Stage};
use glovebox_workspace::{Dir, RelPath};

use crate::docker::binds::{Bind, BindRules, SOCKETS, check_target};

/// Places of a sandbox that are its own: nothing may stand there, nor what they lie in.
const OWN: [&str; 15] = [
    "/bin",
    "/boot",
    "/etc",
    "/home/sandbox",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/root",
    "/run",
    "/sbin",
    "/tmp",
    "/usr",
    "/var",
    "/workspace",
];

/// Only [`open`](Self::open) makes one, so there is none that was not checked.
#[derive(Debug)]
pub struct HostMount {
    directory: Dir,
    guest: PathBuf,
    access: Access,
}

impl HostMount {
    /// `source` and `guest` as the operator wrote them; `state` is Glovebox's own directory, which
    /// is shown to nobody.
    pub fn open(source: &Path, guest: &Path, access: Access, state: &Path) -> Result<Self> {
        let refuse = |why: &str| refusal(source, why);
        check_guest(guest).map_err(|why| refuse(&why))?;
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        let rules = BindRules::new(&["/".to_owned()], &state);
        let bind = Bind {
            source: source.to_owned(),
            target: guest.to_owned(),
            writable: access == Access::Rw,
        };
        let real = rules.resolve(&bind).map_err(|why| refuse(&why))?;
        let directory = hold(&real).map_err(|why| refuse(&why))?;
        // Between the check and the handle a link may have been put in its way: then what is held
        // lies elsewhere.
        let held = path_of(&directory).map_err(|why| refuse(&why))?;
        if held != real {
            return Err(refuse(&format!(
                "changed while it was looked at: it leads to `{}` now",
                held.display()
            )));
        }
        for name in SOCKETS {
            let is_there = RelPath::new(name).is_ok_and(|name| directory.lstat(&name).is_ok());
            if is_there {
                return Err(refuse(&format!(
                    "holds `{name}`, the socket of a container engine"
                )));
            }
        }
        Ok(Self {
            directory,
            guest: guest.to_owned(),
            access,
        })
    }

    pub fn guest(&self) -> &Path {
        &self.guest
    }

    pub fn access(&self) -> Access {
        self.access
    }

    pub(crate) fn directory(&self) -> &Dir {
        &self.directory
    }
}

fn hold(real: &Path) -> std::result::Result<Dir, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot be opened: {error}");
    let below = real.strip_prefix("/").map_err(|error| cannot(&error))?;
    let below = RelPath::new(below.as_os_str().as_bytes()).map_err(|error| cannot(&error))?;
    let root = Dir::open_trusted(Path::new("/")).map_err(|error| cannot(&error))?;
    root.open_dir(&below).map_err(|error| cannot(&error))
}

fn path_of(directory: &Dir) -> std::result::Result<PathBuf, String> {
    let link = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    std::fs::read_link(link).map_err(|error| format!("cannot be looked at: {error}"))
}

fn check_guest(guest: &Path) -> std::result::Result<(), String> {
    check_target(guest)?;
    let mut own = OWN.iter().map(Path::new);
    match own.find(|own| guest.starts_with(own) || own.starts_with(guest)) {
        None => Ok(()),
        Some(own) => Err(format!(
            "has the target `{}`, but `{}` is the sandbox's own",
            guest.display(),
            own.display()
        )),
    }
}

fn refusal(source: &Path, why: &str) -> Error {
    Error::new(
        Code::InvalidConfig,
        Stage::Admit,
        format!(
            "the host directory `{}` cannot be shown to a sandbox",
            source.display()
        ),
    )
    .caused_by(format!("it {why}"))
    .hint("grant a directory that holds only what the sandbox may see, such as `/srv/data`, at a path of its own, such as `/data`")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

    fn why(source: &Path, guest: &str, state: &Path) -> Option<String> {
        let opened = HostMount::open(source, Path::new(guest), Access::Rw, state);
        opened.err().map(|error| error.causes.join("; "))
    }

    #[test]
    fn what_gives_the_host_away_is_refused() -> Outcome {
        let scratch = tempfile::tempdir()?;
        let base = scratch.path().canonicalize()?;
        let state = base.join("state");
        std::fs::create_dir(&state)?;
        std::fs::create_dir_all(base.join("data/deep"))?;
        std::fs::create_dir(base.join("engine"))?;
        std::fs::write(base.join("engine/docker.sock"), "")?;
        for (name, target) in [
            ("etc", "/etc"),
            ("up", "../../../../../etc"),
            ("all", "/"),
            ("run", "/run"),
            ("self", "/proc/self"),
            ("state-link", "state"),
            ("later", "/nowhere/yet"),
        ] {
            std::os::unix::fs::symlink(target, base.join(name))?;
        }
        let refused = |source: &Path| {
            assert!(why(source, "/data", &state).is_some(), "{source:?}");
        };
        for source in [
            "/",
            "/etc",
            "/etc/ssh",
            "/proc",
            "/sys",
            "/dev",
            "/boot",
            "/root",
            "/root/.ssh",
            "/run",
            "/var/run",
            "/var",
            "/var/run/docker.sock",
            "relative",
            "/srv/../etc",
        ] {
            refused(Path::new(source));
        }
        for name in [
            "etc",
            "etc/ssh",
            "up",
            "all",
            "all/etc",
            "run",
            "self",
            "self/root",
            "state",
            "state-link",
            "later",
            "later/x",
            "engine",
            "engine/docker.sock",
            "data/../../etc",
            "not-there",
            "",
        ] {
            refused(&base.join(name));
        }
        assert_eq!(why(&base.join("data"), "/data", &state), None);
        assert_eq!(why(&base.join("data/deep"), "/mnt/deep", &state), None);
        Ok(())
    }

    #[test]
    fn nothing_stands_where_the_sandbox_has_its_own() -> Outcome {
        let scratch = tempfile::tempdir()?;
        let data = scratch.path().canonicalize()?.join("data");
        std::fs::create_dir(&data)?;
        let state = Path::new("/srv/glovebox-state");
        for guest in [
            "/",
            "/usr",
            "/usr/local/bin",
            "/etc",
            "/etc/passwd",
            "/workspace",
            "/workspace/work",
            "/proc/x",
            "/dev/shm",
            "/tmp/x",
            "/home",
            "/home/sandbox",
            "/home/sandbox/.ssh",
            "/run/x",
            "/bin",
            "/lib64/x",
            "data",
            "/data/../etc",
            "",
        ] {
            assert!(why(&data, guest, state).is_some(), "{guest}");
        }
        for guest in ["/data", "/mnt/data", "/srv/x", "/home/other", "/workspaces"] {
            assert_eq!(why(&data, guest, state), None, "{guest}");
        }
        Ok(())
    }

    /// Somebody exchanges the directory for a link in a loop while it is opened: what is held is
    /// always the directory that was checked, or nothing.
    #[test]
    fn a_source_that_is_exchanged_meanwhile_is_never_what_it_leads_to() -> Outcome {
        use std::sync::atomic::{AtomicBool, Ordering};
        let scratch = tempfile::tempdir()?;
        let base = scratch.path().canonicalize()?;
        let (shown, link) = (base.join("shown"), base.join("link"));
        std::fs::create_dir(&shown)?;
        std::fs::write(shown.join("mine"), "")?;
        // Relative: an absolute one is refused by the kernel on the way already.
        let up = "../".repeat(base.components().count() - 1);
        std::os::unix::fs::symlink(format!("{up}etc"), &link)?;
        let state = base.join("state");
        let mine = RelPath::new("mine")?;
        let over = AtomicBool::new(false);
        let (mut held, mut refused, mut astray) = (0, 0, 0);
        std::thread::scope(|scope| -> Outcome {
            let attacker = scope.spawn(|| {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                while !over.load(Ordering::Relaxed) {
                    let _ = renameat_with(CWD, &shown, CWD, &link, RenameFlags::EXCHANGE);
                }
            });
            // The attacker may have to wait for a processor.
            let late = std::time::Instant::now() + std::time::Duration::from_secs(60);
            let mut tries = 0;
            while tries < 3000 || (refused == 0 && std::time::Instant::now() < late) {
                tries += 1;
                match HostMount::open(&shown, Path::new("/data"), Access::Ro, &state) {
                    Ok(mount) if mount.directory().lstat(&mine).is_ok() => held += 1,
                    // Counted, not told at once: the attacker has to be stopped first.
                    Ok(_) => astray += 1,
                    Err(_) => refused += 1,
                }
            }
            over.store(true, Ordering::Relaxed);
            attacker.join().map_err(|_| "the attacker broke off")?;
            Ok(())
        })?;
        assert_eq!(astray, 0, "of {held} that were held");
        assert!(
            refused > 0,
            "the attack never came between: {held} were held"
        );
        Ok(())
    }
}
