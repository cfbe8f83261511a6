//! One trial: a state directory and a workspace of its own, any number of runs, and proof at the
//! end that nothing of them is left.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::leftovers::{groups, mounts, orphans, processes_with, wait_until};
use crate::{Caller, glovebox};

/// What a process that was told to end may still need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where nothing that is written waits for a disk.
const MEMORY: &str = "/dev/shm";
/// Several times what the largest trial keeps.
const ROOM_BYTES: u64 = 1 << 30;

#[derive(Debug)]
pub struct Trial {
    caller: Caller,
    home: TempDir,
    tag: String,
}

/// What `glovebox run --json` said.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub record: Value,
    pub stderr: String,
    pub took: Duration,
}

impl Trial {
    /// `None` when the caller does not exist on this host.
    pub fn new(caller: Caller) -> Option<Self> {
        Self::below(&std::env::temp_dir(), caller)
    }

    /// For what is not about a disk: one that is busy elsewhere makes a commit take seconds. Where there
    /// is little memory for files it is on the disk all the same.
    pub fn in_memory(caller: Caller) -> Option<Self> {
        let room =
            rustix::fs::statvfs(MEMORY).map_or(0, |it| it.f_bavail.saturating_mul(it.f_frsize));
        match room >= ROOM_BYTES {
            true => Self::below(Path::new(MEMORY), caller),
            false => Self::new(caller),
        }
    }

    fn below(place: &Path, caller: Caller) -> Option<Self> {
        caller.account()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .expect("become the reaper of orphans");
        let home = tempfile::Builder::new()
            .prefix("glovebox-trial-")
            .tempdir_in(place)
            .expect("make a directory");
        let tag = home
            .path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let trial = Self { caller, home, tag };
        caller.own(trial.home.path());
        for directory in [trial.state(), trial.work()] {
            fs::create_dir(&directory).expect("make a directory");
            caller.own(&directory);
        }
        Some(trial)
    }

    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// A word that every process of the trial's payloads carries in its environment.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// A file of the workspace, owned by the caller.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::write(&path, content).expect("write a file of the workspace");
        self.caller.own(&path);
        path
    }

    /// The command itself, in the workspace's directory, as the caller and without the developer's
    /// own settings.
    pub fn glovebox(&self) -> Command {
        let mut command = Command::new(glovebox());
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("GLOVEBOX_") {
                command.env_remove(key);
            }
        }
        self.caller.dress(&mut command);
        command
            .current_dir(self.work())
            .arg("--state-dir")
            .arg(self.state())
            .stdin(Stdio::null());
        command
    }

    pub fn run<Word: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = Word>) -> Run<'_> {
        Run {
            trial: self,
            toolchain: "off",
            options: Vec::new(),
            environment: Vec::new(),
            directory: self.work(),
            wrapper: Vec::new(),
            command: command
                .into_iter()
                .map(|it| it.as_ref().to_owned())
                .collect(),
        }
    }

    /// Proves that the runs left nothing behind.
    ///
    /// # Panics
    /// When they did.
    pub fn end(self) {
        self.assert_nothing_is_left();
    }

    pub fn assert_nothing_is_left(&self) {
        let state = self.state();
        let gone = wait_until(PATIENCE, || {
            processes_with(&self.tag).is_empty()
                && groups(&state).is_empty()
                && orphans().is_empty()
        });
        assert!(
            gone,
            "left behind: processes {:?}, groups {:?}, orphans {:?}",
            processes_with(&self.tag),
            groups(&state),
            orphans()
        );
        assert_eq!(
            mounts(self.home.path()),
            Vec::<String>::new(),
            "a mount is left"
        );
        for directory in ["run", "owners"] {
            let listed = fs::read_dir(state.join(directory)).into_iter().flatten();
            assert_eq!(
                listed.count(),
                0,
                "`{directory}` of the state directory is not empty"
            );
        }
    }
}

/// One `glovebox run` to be.
#[derive(Debug, Clone)]
pub struct Run<'trial> {
    trial: &'trial Trial,
    toolchain: &'trial str,
    options: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    wrapper: Vec<OsString>,
    command: Vec<OsString>,
}

impl<'trial> Run<'trial> {
    /// Which interpreters of the host are shown; none unless a test asks.
    #[must_use]
    pub fn toolchain(mut self, which: &'trial str) -> Self {
        self.toolchain = which;
        self
    }

    #[must_use]
    pub fn with<Word: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = Word>) -> Self {
        self.options
            .extend(options.into_iter().map(|it| it.as_ref().to_owned()));
        self
    }

    /// A variable of Glovebox's own environment, not of the payload's.
    #[must_use]
    pub fn outside(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Starts Glovebox through another program.
    #[must_use]
    pub fn through<Word: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = Word>) -> Self {
        self.wrapper = wrapper
            .into_iter()
            .map(|it| it.as_ref().to_owned())
            .collect();
        self
    }

    pub fn command(&self) -> Command {
        let binary = glovebox();
        let mut words = self
            .wrapper
            .iter()
            .map(OsString::as_os_str)
            .chain([binary.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let trial = self.trial;
        // Whatever the developer has set must not change what is tested.
        for key in ["GLOVEBOX_CONFIG", "GLOVEBOX_STATE_DIR", "GLOVEBOX_MUTATION"] {
            command.env_remove(key);
        }
        trial.caller.dress(&mut command);
        command
            .current_dir(&self.directory)
            .envs(self.environment.iter().cloned())
            .arg("--state-dir")
            .arg(trial.state())
            .args(["run", "--toolchain", self.toolchain, "--env"])
            .arg(format!("TRIAL_TAG={}", trial.tag))
            .args(&self.options)
            .arg("--")
            .args(&self.command)
            .stdin(Stdio::null());
        command
    }

    /// The plain form: what the payload writes comes through.
    pub fn plain(&self) -> Output {
        self.command().output().expect("start glovebox")
    }

    pub fn spawn(&self) -> Child {
        self.command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start glovebox")
    }

    /// The record. A run that has none (refused before it began) gives `null`.
    pub fn json(&self) -> Outcome {
        let started = Instant::now();
        let output = self
            .clone()
            .with(["--json"])
            .command()
            .output()
            .expect("start glovebox");
        let took = started.elapsed();
        Outcome {
            code: output.status.code().unwrap_or(-1),
            record: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            took,
        }
    }
}

impl Outcome {
    pub fn text(&self, field: &str) -> &str {
        self.record[field].as_str().unwrap_or("")
    }

    pub fn status(&self) -> &str {
        self.text("status")
    }

    pub fn limit_hit(&self) -> Option<&str> {
        self.record["limit_hit"].as_str()
    }

    /// Status, exit code and the limit that was met, in one comparison.
    ///
    /// # Panics
    /// When one differs.
    #[track_caller]
    pub fn expect(&self, status: &str, code: i32, limit: Option<&str>) {
        assert_eq!(
            (self.status(), self.code, self.limit_hit()),
            (status, code, limit),
            "{}\n{}",
            self.record,
            self.stderr
        );
    }
}
