//! A workspace, and programs without a sandbox in it.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use glovebox_backend::{
    Cancel, Canceler, Ended, Host, Order, Place, Run, Sandbox, Sink, Spec, Tree,
};
use glovebox_model::{
    Access, ApprovalMode, BackendName, ByteString, Bytes, Count, Cpus, Limits, LimitsDemand,
    Millis, NetworkMode, Profile, Result, SecurityMode, Stream, Tier,
};
use glovebox_workspace::Dir;

/// What the engine gives to every exec, as far as it matters here.
const USUAL: [(&str, &str); 5] = [
    ("HOME", "/home/sandbox"),
    ("USER", "sandbox"),
    ("LOGNAME", "sandbox"),
    ("LANG", "C.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin"),
];

pub(crate) struct Bench {
    root: tempfile::TempDir,
    pub(crate) profile: Profile,
    work: Dir,
    artifacts: Dir,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) ended: Ended,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Default)]
struct Both {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    at_output: Option<Canceler>,
}

impl Sink for Both {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
        if let Some(canceler) = self.at_output.take() {
            canceler.cancel();
        }
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["work", "artifacts"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let open = |name: &str| Dir::open_trusted(&root.path().join(name)).unwrap();
        Self {
            work: open("work"),
            artifacts: open("artifacts"),
            profile: profile(),
            root,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn spec(&self) -> Spec<'_> {
        let place = |directory| {
            Place::Tree(Tree {
                directory,
                access: Access::Rw,
            })
        };
        Spec {
            work: place(&self.work),
            artifacts: place(&self.artifacts),
            ..Spec::new(&self.profile)
        }
    }

    pub(crate) fn run(&self, order: &Order) -> Result<Told> {
        self.see(order, None, Both::default(), &Cancel::new().unwrap().0)
    }

    pub(crate) fn shell(&self, line: &str) -> Told {
        self.run(&shell(line)).unwrap()
    }

    pub(crate) fn fed(&self, line: &str, stdin: OwnedFd) -> Told {
        let (cancel, _canceler) = Cancel::new().unwrap();
        self.see(&shell(line), Some(stdin), Both::default(), &cancel)
            .unwrap()
    }

    /// Canceled as soon as it says something.
    pub(crate) fn canceled(&self, line: &str) -> Told {
        let (cancel, canceler) = Cancel::new().unwrap();
        let both = Both {
            at_output: Some(canceler),
            ..Both::default()
        };
        self.see(&shell(line), None, both, &cancel).unwrap()
    }

    fn see(
        &self,
        order: &Order,
        stdin: Option<OwnedFd>,
        mut both: Both,
        cancel: &Cancel,
    ) -> Result<Told> {
        let sandbox: Box<dyn Sandbox> = Host::open(&self.spec())?;
        let (ended, remains) = sandbox.run(Run {
            order,
            profile: &self.profile,
            watched: &[&self.work, &self.artifacts],
            stdin,
            terminal: None,
            secrets: &[],
            sink: &mut both,
            cancel,
            control: None,
        });
        drop(remains);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ended.map(|ended| Told {
            ended,
            stdout: text(both.stdout),
            stderr: text(both.stderr),
        })
    }
}

pub(crate) fn order(argv: &[&str]) -> Order {
    let text = |text: &str| ByteString::try_from(text).unwrap();
    Order {
        argv: argv.iter().map(|it| text(it)).collect(),
        env: USUAL
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect(),
        cwd: text("/workspace/work"),
        path: Vec::new(),
    }
}

pub(crate) fn shell(line: &str) -> Order {
    order(&["sh", "-c", line])
}

/// Whether such a process could still do anything.
pub(crate) fn lives(pid: &str) -> bool {
    assert!(pid.parse::<u32>().is_ok_and(|pid| pid > 1), "{pid:?}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The numbers that a program left in a file.
pub(crate) fn pids(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(60),
            session_ms: Millis::secs(30),
            cpu_ms: Millis::secs(30),
            memory_bytes: Bytes::mib(512),
            pids: Count(64),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(64),
            disk_files: Count(1000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(123),
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(64),
            egress_connections: Count(100),
            network_ms: Millis::secs(60),
        },
        network: NetworkMode::None,
        allow_net: BTreeSet::new(),
        workspace: Access::Rw,
        env_allow: BTreeSet::new(),
        tier: Tier::Low,
        security: SecurityMode::Permissive,
        limits_demand: LimitsDemand::Supervised,
        approval: ApprovalMode::default(),
        require: BTreeSet::new(),
        backend: Some(BackendName::Host),
        runtime: None,
        image: None,
    }
}
