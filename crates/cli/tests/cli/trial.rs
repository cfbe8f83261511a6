//! The built binary with a state directory and a working directory of its own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Far longer than anything here takes; only a test that would hang waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Trial {
    place: TempDir,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The answer, once it is known to be this exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A disk that is busy elsewhere makes every commit long; what is tested here is not the disk.
fn in_memory() -> TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).unwrap()
}

impl Trial {
    pub(crate) fn new() -> Self {
        let place = in_memory();
        std::fs::create_dir(place.path().join("work")).unwrap();
        Self { place }
    }

    /// Made by the first run, not before.
    pub(crate) fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.place.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.place.path())
            .env("GLOVEBOX_STATE_DIR", self.state())
            .env("GLOVEBOX_CONFIG", self.empty_config())
            .stdin(Stdio::null());
        command
    }

    /// So that the host's own configuration has no say.
    fn empty_config(&self) -> PathBuf {
        let path = self.place.path().join("empty.toml");
        if !path.exists() {
            std::fs::write(&path, "").unwrap();
        }
        path
    }

    pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Answer {
        self.command(args).output().unwrap().into()
    }

    /// Runs a script in a sandbox and gives its record.
    pub(crate) fn record(&self, script: &str) -> Value {
        self.run(&["run", "--scratch", "--json", "--", "sh", "-c", script])
            .json()
    }

    /// Starts a script that waits for its standard input, and returns once it is on record.
    pub(crate) fn start(&self, script: &str) -> (Running, String) {
        let args = ["run", "--scratch", "--stdin", "--", "sh", "-c", script];
        let mut command = self.command(&args);
        command.stdin(Stdio::piped());
        let child = Running::spawn(&mut command);
        let id = until(|| {
            let listed = self.run(&["ps", "--quiet"]).stdout;
            (!listed.is_empty()).then(|| listed.trim().to_owned())
        });
        (child, id)
    }
}

/// A child that does not outlive its test.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    pub(crate) fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// What it printed, once it ended by itself.
    pub(crate) fn answer(mut self) -> Answer {
        let code = until(|| self.0.try_wait().unwrap()).code();
        let mut answer = Answer {
            code,
            stdout: String::new(),
            stderr: String::new(),
        };
        let (out, err) = (self.0.stdout.take(), self.0.stderr.take());
        out.unwrap().read_to_string(&mut answer.stdout).unwrap();
        err.unwrap().read_to_string(&mut answer.stderr).unwrap();
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks again and again until there is an answer.
pub(crate) fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(since.elapsed() < PATIENCE, "waited in vain");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
