//! Bubblewrap with the isolation of our own plan, flag by flag.

use std::ffi::OsString;
use std::path::Path;

use glovebox_backend::Etc;
use glovebox_cage::seccomp::{Arch, Filter, Group};
use glovebox_model::{Code, Error, Result, Stage};
use serde::Serialize;

use crate::command::{Environment, Inherited, Invocation};
use crate::payload::Payload;
use crate::setup::{ENVIRONMENT, Setup};

/// A group of bubblewrap's flags, and the part of our plan that does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Equivalent {
    pub bwrap: &'static str,
    pub ours: &'static str,
}

pub(crate) const EQUIVALENTS: [Equivalent; 17] = [
    pair(
        "--unshare-user --uid --gid",
        "user namespace, map ids, become user (ours: an outer id of its own)",
    ),
    pair(
        "--unshare-pid/net/ipc/uts/cgroup",
        "pid, net, ipc, uts and cgroup namespaces",
    ),
    pair("--die-with-parent", "die with keeper"),
    pair("--hostname", "hostname"),
    pair("--unshare-net (raises lo itself)", "loopback up"),
    pair(
        "--ro-bind /usr, --symlink, --ro-bind /etc",
        "mount /usr, links, mount /etc",
    ),
    pair("--dev /dev", "mount /dev/*, links, terminals"),
    pair(
        "--bind work and artifacts",
        "mount /workspace/work and /workspace/artifacts (ours: id-mapped for root)",
    ),
    pair(
        "--size --tmpfs, three times",
        "scratch (ours: one quota over four places)",
    ),
    pair("--proc /proc", "proc (ours: with hidepid)"),
    pair(
        "--ro-bind /dev/null over two files",
        "mask /proc/keys and /proc/kallsyms",
    ),
    pair("--remount-ro /", "enter root, detach host, seal root"),
    pair("--cap-drop ALL", "empty bounding set, drop capabilities"),
    pair("always", "no new privileges"),
    pair("--seccomp FD", "filter, the very same program"),
    pair(
        "--new-session, --clearenv, --setenv",
        "new session, the order's environment",
    ),
    pair(
        "has none",
        "file rules (Landlock), undumpable, resource limits, memory/pids/cpu limits",
    ),
];

const fn pair(bwrap: &'static str, ours: &'static str) -> Equivalent {
    Equivalent { bwrap, ours }
}

pub(crate) fn invocation(program: OsString, setup: &Setup, payload: Payload) -> Result<Invocation> {
    let failed = |error: std::io::Error| {
        let message = "cannot prepare bubblewrap's files";
        Error::new(Code::StoreUnavailable, Stage::Parse, message).caused_by(error)
    };
    let etc = Etc::below(&setup.state()).map_err(failed)?;
    std::fs::write(setup.filter(), filter()).map_err(failed)?;
    let mut argv = Arguments(vec![program]);
    argv.identity();
    argv.mounts(setup, etc.path(), failed)?;
    argv.add(["--cap-drop", "ALL", "--seccomp", "FD"]);
    let position = argv.0.len() - 1;
    argv.add(["--new-session", "--clearenv"]);
    for (key, value) in ENVIRONMENT {
        argv.add(["--setenv", key, value]);
    }
    argv.add(["--chdir", "/workspace/work", "--"]);
    argv.add(payload.argv());
    Ok(Invocation {
        argv: argv.0,
        expected: payload.expected(),
        environment: Environment::Empty,
        directory: setup.work(),
        inherited: Some(Inherited {
            file: setup.filter(),
            position,
        }),
        container: None,
    })
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<'word>(&mut self, words: impl IntoIterator<Item = &'word str>) {
        self.0.extend(words.into_iter().map(OsString::from));
    }

    fn bind(&mut self, flag: &str, from: &Path, to: &str) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }

    fn identity(&mut self) {
        self.add(["--unshare-user", "--uid", "1000", "--gid", "1000"]);
        self.add([
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
        ]);
        self.add([
            "--unshare-cgroup",
            "--die-with-parent",
            "--hostname",
            "sandbox",
        ]);
    }

    fn mounts(
        &mut self,
        setup: &Setup,
        etc: &Path,
        failed: impl Fn(std::io::Error) -> Error,
    ) -> Result<()> {
        self.bind("--ro-bind", Path::new("/usr"), "/usr");
        for name in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
            match std::fs::symlink_metadata(name) {
                Ok(metadata) if metadata.is_symlink() => {
                    let target = std::fs::read_link(name).map_err(&failed)?;
                    self.bind("--symlink", &target, name);
                }
                Ok(metadata) if metadata.is_dir() => self.bind("--ro-bind", Path::new(name), name),
                Ok(_) | Err(_) => {}
            }
        }
        self.bind("--ro-bind", etc, "/etc");
        self.add(["--dev", "/dev"]);
        self.bind("--bind", &setup.work(), "/workspace/work");
        self.bind("--bind", &setup.artifacts(), "/workspace/artifacts");
        self.add(["--dir", "/workspace/inputs", "--dir", "/run"]);
        let limits = &setup.profile().limits;
        let size = limits
            .disk_bytes
            .get()
            .min(limits.memory_bytes.get() / 2)
            .to_string();
        for directory in ["/tmp", "/var/tmp", "/home/sandbox"] {
            self.add(["--size", size.as_str(), "--tmpfs", directory]);
        }
        self.add(["--proc", "/proc"]);
        for masked in ["/proc/keys", "/proc/kallsyms"] {
            if Path::new(masked).exists() {
                self.bind("--ro-bind", Path::new("/dev/null"), masked);
            }
        }
        self.add(["--remount-ro", "/"]);
        Ok(())
    }
}

/// The program that our own sandbox installs for a writable workspace, as the kernel reads it.
fn filter() -> Vec<u8> {
    let program = Filter::strict().deny(Group::Fallocate).compile(Arch::HOST);
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.jt, instruction.jf]);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    bytes
}
