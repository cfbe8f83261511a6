//! What a sandbox needs, made for a test.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use glovebox_backend::{
    Cancel, Canceler, Ended, ExecDirs, Ground, Native, Order, Place, Run, Sandbox, Sink, Spec, Tree,
};
use glovebox_cage::Spawner;
use glovebox_model::{
    Access, ByteString, Bytes, Count, Cpus, Limits, LimitsDemand, Millis, NetworkMode, Profile,
    Result, SecurityMode, Stream, Tier,
};
use glovebox_workspace::Dir;

/// Of every payload here, whatever the test's own process may open.
pub(crate) const OPEN_FILES: u64 = 512;
/// For anything that takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

pub(crate) struct House {
    root: tempfile::TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["state", "artifacts"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Runs a line of shell.
    pub(crate) fn run(
        &self,
        native: Native,
        line: &str,
        stdin: OwnedFd,
        sink: &mut dyn Sink,
    ) -> Result<Ended> {
        let artifacts = Dir::open_trusted(&self.root.path().join("artifacts")).unwrap();
        let profile = profile();
        let spec = Spec {
            artifacts: Place::Tree(Tree {
                directory: &artifacts,
                access: Access::Rw,
            }),
            ..Spec::new(&profile)
        };
        let prepared = native.open(&spec, &self.state())?;
        let (cancel, _canceler) = Cancel::new().unwrap();
        let (ended, remains) = Box::new(prepared).run(Run {
            order: &shell(line),
            profile: &profile,
            watched: &[],
            stdin: Some(stdin),
            terminal: None,
            secrets: &[],
            sink,
            cancel: &cancel,
            control: None,
        });
        drop(remains);
        ended
    }
}

pub(crate) fn text(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

pub(crate) fn order(argv: &[&str], env: &[(&str, &str)]) -> Order {
    Order {
        argv: argv.iter().map(|it| text(it)).collect(),
        env: env
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect(),
        cwd: text("/workspace/work"),
        path: vec![text("/usr/bin"), text("/bin")],
    }
}

pub(crate) fn shell(line: &str) -> Order {
    order(&["sh", "-c", line], &[])
}

/// The directories of one exec.
pub(crate) struct Rooms {
    pub(crate) work: Dir,
    pub(crate) inputs: Dir,
    pub(crate) artifacts: Dir,
    path: PathBuf,
}

impl Rooms {
    pub(crate) fn new(house: &House, name: &str) -> Self {
        let path = house.path().join(name);
        let made = ["work", "inputs", "artifacts"].map(|it| {
            std::fs::create_dir_all(path.join(it)).unwrap();
            Dir::open_trusted(&path.join(it)).unwrap()
        });
        let [work, inputs, artifacts] = made;
        Self {
            work,
            inputs,
            artifacts,
            path,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn room(&self) -> ExecDirs<'_> {
        ExecDirs {
            work: Some(&self.work),
            inputs: Some(&self.inputs),
            artifacts: &self.artifacts,
        }
    }
}

/// Everything is left for later.
pub(crate) fn unbound(profile: &Profile) -> Spec<'_> {
    Spec {
        work: Place::Later(Access::Rw),
        inputs: Place::Later(Access::Ro),
        artifacts: Place::Later(Access::Rw),
        ..Spec::new(profile)
    }
}

/// A process that makes sandboxes, each in a group of its own.
pub(crate) struct Yard {
    pub(crate) house: House,
    ground: Ground,
    spawner: Spawner,
    made: std::cell::Cell<usize>,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self {
            spawner: Spawner::fork().unwrap(),
            house: House::new(),
            ground: Ground::look(),
            made: std::cell::Cell::new(0),
        }
    }

    pub(crate) fn native(&self) -> Native {
        let mut native = Native::spawn(&self.ground, &self.spawner).unwrap();
        self.made.set(self.made.get() + 1);
        native.reserve(&self.group(self.made.get())).unwrap();
        native
    }

    fn group(&self, index: usize) -> String {
        format!("glovebox-yard-{}-{index}", std::process::id())
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // Whatever was made is gone by now.
        for parent in self.ground.group_parents() {
            let left = (1..=self.made.get()).find(|it| parent.join(self.group(*it)).exists());
            assert_eq!(left, None, "in {}", parent.display());
        }
    }
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) ended: Ended,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Default)]
pub(crate) struct Both {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    at_output: Option<Canceler>,
    asked: bool,
}

impl Both {
    /// Cancels as soon as something is printed.
    pub(crate) fn canceling(canceler: Canceler) -> Self {
        Self {
            at_output: Some(canceler),
            ..Self::default()
        }
    }

    pub(crate) fn told(self, ended: Ended) -> Told {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Told {
            ended,
            stdout: text(self.stdout),
            stderr: text(self.stderr),
        }
    }
}

impl Sink for Both {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
        // Once: a second time means at once.
        if let (Some(canceler), false) = (&self.at_output, self.asked) {
            canceler.cancel();
            self.asked = true;
        }
    }
}

/// Runs an order in a sandbox that is one exec's.
pub(crate) fn run(
    sandbox: impl Sandbox,
    profile: &Profile,
    order: &Order,
    stdin: Option<OwnedFd>,
) -> Result<Told> {
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut both = Both::default();
    let (ended, remains) = Box::new(sandbox).run(Run {
        order,
        profile,
        watched: &[],
        stdin,
        terminal: None,
        secrets: &[],
        sink: &mut both,
        cancel: &cancel,
        control: None,
    });
    drop(remains);
    ended.map(|ended| both.told(ended))
}

/// A pipe that holds this and then ends.
pub(crate) fn input(bytes: &[u8]) -> OwnedFd {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    assert_eq!(rustix::io::write(&writer, bytes).unwrap(), bytes.len());
    reader
}

pub(crate) fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(120),
            session_ms: Millis::secs(60),
            cpu_ms: Millis::secs(60),
            memory_bytes: Bytes::mib(64),
            pids: Count(32),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(16),
            disk_files: Count(1000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(OPEN_FILES),
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(64),
            egress_connections: Count(100),
            network_ms: Millis::secs(60),
        },
        network: NetworkMode::None,
        allow_net: BTreeSet::new(),
        workspace: Access::None,
        env_allow: BTreeSet::new(),
        tier: Tier::Low,
        security: SecurityMode::default(),
        limits_demand: LimitsDemand::Supervised,
        approval: glovebox_model::ApprovalMode::default(),
        require: BTreeSet::new(),
        backend: None,
        runtime: None,
        image: None,
    }
}

/// What was printed, and who waits for it.
pub(crate) struct Heard<'heard> {
    pub(crate) text: String,
    pub(crate) at_line: &'heard dyn Fn(),
}

impl Sink for Heard<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(stream, Stream::Stdout, "{text}");
        self.text.push_str(&text);
        if text.ends_with('\n') {
            (self.at_line)();
        }
    }
}
