//! A state directory, a workspace and an engine for one test. Nothing may be left in the engine.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use glovebox_backend::{
    Cancel, ContainerName, Docker, Ended, Ending, ExecDirs, Kept, Labels, Order, Place, Run, Sink,
    Spec, Tree,
};
use glovebox_model::{
    Access, ByteString, Bytes, Count, Cpus, DockerConfig, Limits, LimitsDemand, Millis,
    NetworkMode, Profile, Result, SecurityMode, Stream, Tier,
};
use glovebox_workspace::Dir;

use crate::image;

pub(crate) const IMAGE: &str = "glovebox-sandbox:latest";

pub(crate) type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// The engine of `scripts/dockerd` that the tests share.
pub(crate) fn shared() -> Option<String> {
    match std::env::var("GLOVEBOX_TEST_DOCKER") {
        Ok(host) if !host.is_empty() => Some(host),
        _ if std::env::var("CI").is_ok_and(|it| it == "true") => {
            panic!("GLOVEBOX_TEST_DOCKER must be set: `scripts/dockerd start DIR` prints it")
        }
        _ => {
            eprintln!(
                "SKIPPED: GLOVEBOX_TEST_DOCKER is not set; `scripts/dockerd start DIR` prints it"
            );
            None
        }
    }
}

pub(crate) struct House {
    scratch: tempfile::TempDir,
    pub(crate) docker: Docker,
    pub(crate) host: String,
    pub(crate) profile: Profile,
    pub(crate) label: String,
    made: std::cell::Cell<u32>,
}

impl House {
    pub(crate) fn new(host: &str, runtime: &str) -> Self {
        Self::with(host, runtime, DockerConfig::default())
    }

    pub(crate) fn with(host: &str, runtime: &str, config: DockerConfig) -> Self {
        Self::at("state", host, runtime, config)
    }

    /// The workspace lies in the state directory.
    pub(crate) fn rooted(host: &str, runtime: &str, config: DockerConfig) -> Self {
        Self::at("", host, runtime, config)
    }

    fn at(state: &str, host: &str, runtime: &str, config: DockerConfig) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        for name in [
            "state",
            "work",
            "inputs",
            "artifacts",
            "room/inputs",
            "room/artifacts",
        ] {
            std::fs::create_dir_all(scratch.path().join(name)).expect("a directory");
        }
        let docker = Docker::reached_at(config, &scratch.path().join(state), host);
        let label = scratch
            .path()
            .file_name()
            .map(|it| it.to_string_lossy().to_lowercase());
        let label: String = label
            .unwrap_or_default()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        Self {
            docker: docker.expect("the settings are fine"),
            host: host.to_owned(),
            profile: profile(runtime),
            label,
            scratch,
            made: std::cell::Cell::new(0),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn dir(&self, name: &str) -> Dir {
        Dir::open_trusted(&self.path(name)).expect("a directory")
    }

    pub(crate) fn name(&self) -> ContainerName {
        self.made.set(self.made.get() + 1);
        let id = format!("{}-{}", self.label, self.made.get());
        ContainerName::of("glovebox-test-", &id).expect("a name")
    }

    pub(crate) fn labels(&self) -> Labels {
        Labels::from([("glovebox.test".to_owned(), self.label.clone())])
    }

    /// The engine's own command, beside Glovebox.
    pub(crate) fn engine(&self, args: &[&str]) -> String {
        let out = Command::new("docker")
            .args(args)
            .env("DOCKER_HOST", &self.host)
            .output()
            .expect("docker");
        let mut said = String::from_utf8_lossy(&out.stdout).into_owned();
        // Of what succeeds it holds warnings, and the answer may be an id.
        if !out.status.success() {
            said.push_str(&String::from_utf8_lossy(&out.stderr));
        }
        said
    }

    pub(crate) fn containers(&self) -> Vec<String> {
        let label = format!("glovebox.test={}", self.label);
        let found = self.docker.list(&label).expect("a list");
        found.into_iter().map(|it| it.name).collect()
    }

    /// None is left. An engine that says that it removes one already is not done with it.
    pub(crate) fn is_empty(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let empty = self.containers().is_empty();
            if empty || Instant::now() >= until {
                return empty;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// One exec in a container of its own.
    pub(crate) fn run(&self, argv: &[&str]) -> Said {
        self.run_with(argv, Asked::default())
    }

    pub(crate) fn run_with(&self, argv: &[&str], asked: Asked) -> Said {
        match asked.act {
            Some(_) => self.run_once(argv, asked),
            None => patient(|| self.run_once(argv, asked.again())),
        }
    }

    fn run_once(&self, argv: &[&str], asked: Asked) -> Said {
        let (work, inputs, artifacts) =
            (self.dir("work"), self.dir("inputs"), self.dir("artifacts"));
        let tree = |directory, access| Place::Tree(Tree { directory, access });
        let spec = Spec {
            work: tree(&work, Access::Rw),
            inputs: tree(&inputs, Access::Ro),
            artifacts: tree(&artifacts, Access::Rw),
            ..Spec::new(&self.profile)
        };
        let opened = self.docker.open(&spec, &self.name(), &self.labels());
        let sandbox = match opened {
            Ok(sandbox) => sandbox,
            Err(error) => return Said::refused(error),
        };
        let mut said = Said::default();
        let watched = [&work, &artifacts];
        let order = order(argv, &asked);
        let (cancel, canceler) = Cancel::new().expect("a pipe");
        said.canceler = Some(canceler);
        said.act = asked.act;
        let run = Run {
            order: &order,
            profile: &self.profile,
            watched: &watched,
            stdin: asked.stdin.map(|text| piped(&text)),
            terminal: None,
            secrets: &[],
            sink: &mut said,
            cancel: &cancel,
            control: None,
        };
        let (outcome, remains) = sandbox.run(run);
        drop(remains);
        said.outcome = Some(outcome);
        said
    }

    pub(crate) fn keep(&self, name: &ContainerName) -> Result<Box<dyn Kept>> {
        let (work, inputs, artifacts) =
            (self.dir("work"), self.dir("inputs"), self.dir("artifacts"));
        let tree = |directory, access| Place::Tree(Tree { directory, access });
        let spec = Spec {
            work: tree(&work, Access::Rw),
            inputs: tree(&inputs, Access::Ro),
            artifacts: tree(&artifacts, Access::Rw),
            ..Spec::new(&self.profile)
        };
        self.docker.keep(&spec, name, &self.labels())
    }

    pub(crate) fn exec(&self, kept: &mut dyn Kept, argv: &[&str]) -> Said {
        self.exec_with(kept, argv, Asked::default())
    }

    pub(crate) fn exec_with(&self, kept: &mut dyn Kept, argv: &[&str], asked: Asked) -> Said {
        match asked.act {
            Some(_) => self.exec_once(kept, argv, asked),
            None => patient(|| self.exec_once(&mut *kept, argv, asked.again())),
        }
    }

    fn exec_once(&self, kept: &mut dyn Kept, argv: &[&str], asked: Asked) -> Said {
        let (work, artifacts) = (self.dir("work"), self.dir("artifacts"));
        let (inputs, own) = (self.dir("room/inputs"), self.dir("room/artifacts"));
        let room = ExecDirs {
            work: None,
            inputs: Some(&inputs),
            artifacts: &own,
        };
        let mut said = Said::default();
        let watched = [&work, &artifacts];
        let order = order(argv, &asked);
        let (cancel, canceler) = Cancel::new().expect("a pipe");
        said.canceler = Some(canceler);
        said.act = asked.act;
        let run = Run {
            order: &order,
            profile: &self.profile,
            watched: &watched,
            stdin: asked.stdin.map(|text| piped(&text)),
            terminal: None,
            secrets: &[],
            sink: &mut said,
            cancel: &cancel,
            control: None,
        };
        let outcome = kept.run(room, run);
        said.outcome = Some(outcome);
        said
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let filter = format!("--filter=label=glovebox.test={}", self.label);
        let left = self.engine(&["ps", "--all", "--quiet", &filter]);
        for id in left.split_whitespace() {
            self.engine(&["rm", "--force", "--volumes", id]);
        }
        if !std::thread::panicking() {
            assert_eq!(left.trim(), "", "containers were left");
        }
    }
}

pub(crate) type Act = Box<dyn FnMut(&glovebox_backend::Canceler)>;

#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) stdin: Option<String>,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) cwd: Option<&'static str>,
    /// Done when the program says `ready`.
    pub(crate) act: Option<Act>,
}

impl Asked {
    /// The same once more; what is done is done once.
    fn again(&self) -> Self {
        Self {
            stdin: self.stdin.clone(),
            env: self.env.clone(),
            cwd: self.cwd,
            act: None,
        }
    }
}

/// An engine whose disk is busy takes longer than anybody waits for it, now and then.
pub(crate) fn patient(mut ask: impl FnMut() -> Said) -> Said {
    for _ in 0..2 {
        let said = ask();
        if !said.may_be_asked_again() {
            return said;
        }
    }
    ask()
}

/// What was heard of an exec.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) outcome: Option<Result<Ended>>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    canceler: Option<glovebox_backend::Canceler>,
    act: Option<Act>,
}

impl Said {
    fn refused(error: glovebox_model::Error) -> Self {
        Self {
            outcome: Some(Err(error)),
            ..Self::default()
        }
    }

    /// The engine could not be reached, which may pass.
    pub(crate) fn may_be_asked_again(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if error.retry.allowed)
    }

    pub(crate) fn ended(&self) -> &Ended {
        match &self.outcome {
            Some(Ok(ended)) => ended,
            other => panic!("{other:?}\n{}\n{}", self.stdout, self.stderr),
        }
    }

    pub(crate) fn code(&self) -> i32 {
        match self.ended().ending {
            Ending::Exited { code } => code,
            ending => panic!("{ending:?}\n{}\n{}", self.stdout, self.stderr),
        }
    }

    pub(crate) fn error(&self) -> &glovebox_model::Error {
        match &self.outcome {
            Some(Err(error)) => error,
            other => panic!("{other:?}\n{}\n{}", self.stdout, self.stderr),
        }
    }
}

impl Sink for Said {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        match stream {
            Stream::Stdout => self.stdout.push_str(&text),
            Stream::Stderr => self.stderr.push_str(&text),
        }
        if self.stdout.contains("ready")
            && let (Some(mut act), Some(canceler)) = (self.act.take(), &self.canceler)
        {
            act(canceler);
        }
    }
}

fn order(argv: &[&str], asked: &Asked) -> Order {
    let bytes = |text: &str| ByteString::new(text).expect("no NUL");
    let mut env = vec![
        (bytes("PATH"), bytes("/usr/local/bin:/usr/bin:/bin")),
        (bytes("HOME"), bytes("/home/sandbox")),
    ];
    env.extend(
        asked
            .env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value))),
    );
    Order {
        argv: argv.iter().map(|word| bytes(word)).collect(),
        env,
        cwd: bytes(asked.cwd.unwrap_or("/workspace/work")),
        path: vec![bytes("/usr/bin")],
    }
}

fn piped(text: &str) -> OwnedFd {
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let text = text.to_owned();
    std::thread::spawn(move || {
        let _ = ours.write_all(text.as_bytes());
        let _ = ours.shutdown(std::net::Shutdown::Write);
        let _ = ours.read(&mut [0]);
    });
    theirs.into()
}

pub(crate) fn profile(runtime: &str) -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(40),
            session_ms: Millis::secs(20),
            cpu_ms: Millis::secs(20),
            memory_bytes: Bytes::mib(256),
            // gVisor's own threads count too.
            pids: Count(if runtime == "runc" { 64 } else { 512 }),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(64),
            disk_files: Count(1000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(256),
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
        tier: Tier::Safe,
        security: SecurityMode::Strict,
        limits_demand: LimitsDemand::Supervised,
        approval: glovebox_model::ApprovalMode::default(),
        require: BTreeSet::new(),
        backend: None,
        runtime: Some(runtime.to_owned()),
        image: None,
    }
}

/// An engine that is this test's alone, to be taken away from under it.
pub(crate) struct OwnEngine {
    dir: tempfile::TempDir,
    pub(crate) host: String,
}

impl OwnEngine {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir_in(image::place()).expect("a directory");
        let engine = Self {
            host: script(&["start", &dir.path().display().to_string()]),
            dir,
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        image::furnish(&engine.host, &root);
        engine
    }

    pub(crate) fn tell(&self, word: &str) {
        tell(self.dir.path(), word);
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().to_path_buf()
    }
}

pub(crate) fn tell(dir: &Path, word: &str) {
    script(&[word, &dir.display().to_string()]);
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        // One that stands still cannot end its containers.
        self.tell("resume");
        self.tell("stop");
    }
}

fn script(args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/dockerd");
    let out = Command::new(script).args(args).output();
    let out = out.expect("the script");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {said}");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}
