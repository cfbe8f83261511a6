//! Bubblewrap with the isolation that our own plan has, flag by flag.

use std::ffi::OsString;
use std::path::Path;

use glovebox_backend::Etc;
use glovebox_cage::seccomp::{Arch, Filter, Group};
use glovebox_model::{Code, Error, Result, Stage as PathStage};
use serde::Serialize;

use super::command::{Environment, Inherited, Invocation};
use super::stage::{ENVIRONMENT, Payload, Stage};

/// What one group of flags does there, and which part of our plan does it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Twin {
    pub(super) bwrap: &'static str,
    pub(super) ours: &'static str,
}

pub(super) const TWINS: [Twin; 17] = [
    twin(
        "--unshare-user --uid --gid",
        "user namespace, map ids, become user (ours: an outer id of its own)",
    ),
    twin(
        "--unshare-pid/net/ipc/uts/cgroup",
        "pid, net, ipc, uts and cgroup namespaces",
    ),
    twin("--die-with-parent", "die with keeper"),
    twin("--hostname", "hostname"),
    twin("--unshare-net (raises lo itself)", "loopback up"),
    twin(
        "--ro-bind /usr, --symlink, --ro-bind /etc",
        "mount /usr, links, mount /etc",
    ),
    twin("--dev /dev", "mount /dev/*, links, terminals"),
    twin(
        "--bind work and artifacts",
        "mount /workspace/work and /workspace/artifacts (ours: id-mapped for root)",
    ),
    twin(
        "--size --tmpfs, three times",
        "scratch (ours: one quota over four places)",
    ),
    twin("--proc /proc", "proc (ours: with hidepid)"),
    twin(
        "--ro-bind /dev/null over two files",
        "mask /proc/keys and /proc/kallsyms",
    ),
    twin("--remount-ro /", "enter root, detach host, seal root"),
    twin("--cap-drop ALL", "empty bounding set, drop capabilities"),
    twin("always", "no new privileges"),
    twin("--seccomp FD", "filter, the very same program"),
    twin(
        "--new-session, --clearenv, --setenv",
        "new session, the order's environment",
    ),
    twin(
        "has none",
        "file rules (Landlock), undumpable, resource limits, memory/pids/cpu limits",
    ),
];

const fn twin(bwrap: &'static str, ours: &'static str) -> Twin {
    Twin { bwrap, ours }
}

pub(super) fn invocation(program: OsString, stage: &Stage, payload: Payload) -> Result<Invocation> {
    let failed = |error: std::io::Error| {
        let message = "cannot prepare bubblewrap's files";
        Error::new(Code::StoreUnavailable, PathStage::Parse, message).caused_by(error)
    };
    let etc = Etc::below(&stage.state()).map_err(failed)?;
    std::fs::write(stage.filter(), filter()).map_err(failed)?;
    let mut argv = Words(vec![program]);
    argv.identity();
    argv.mounts(stage, etc.path(), failed)?;
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
        directory: stage.work(),
        inherited: Some(Inherited {
            file: stage.filter(),
            position,
        }),
        within: None,
    })
}

struct Words(Vec<OsString>);

impl Words {
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
        stage: &Stage,
        etc: &Path,
        failed: impl Fn(std::io::Error) -> Error,
    ) -> Result<()> {
        self.bind("--ro-bind", Path::new("/usr"), "/usr");
        for name in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
            match std::fs::symlink_metadata(name) {
                Ok(facts) if facts.is_symlink() => {
                    let target = std::fs::read_link(name).map_err(&failed)?;
                    self.bind("--symlink", &target, name);
                }
                Ok(facts) if facts.is_dir() => self.bind("--ro-bind", Path::new(name), name),
                Ok(_) | Err(_) => {}
            }
        }
        self.bind("--ro-bind", etc, "/etc");
        self.add(["--dev", "/dev"]);
        self.bind("--bind", &stage.work(), "/workspace/work");
        self.bind("--bind", &stage.artifacts(), "/workspace/artifacts");
        self.add(["--dir", "/workspace/inputs", "--dir", "/run"]);
        let limits = &stage.profile().limits;
        let size = limits
            .disk_bytes
            .get()
            .min(limits.memory_bytes.get() / 2)
            .to_string();
        for place in ["/tmp", "/var/tmp", "/home/sandbox"] {
            self.add(["--size", size.as_str(), "--tmpfs", place]);
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
