//! An engine of containers for one test alone, which stops, kills and pauses it.

mod image;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::{missing, wait_until};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// An engine that is this test's alone, with a shell and little else as its image; gone when dropped.
#[derive(Debug)]
pub struct OwnEngine {
    directory: TempDir,
    host: String,
}

impl OwnEngine {
    /// `None`, loudly, where no engine can be started.
    ///
    /// # Panics
    /// With `CI=true` where none can be started, or when one does not come up.
    pub fn start() -> Option<Self> {
        if !is_installed("dockerd") || !rustix::process::geteuid().is_root() {
            missing("no engine can be started: `dockerd` is not installed, or this is not root");
            return None;
        }
        let directory = tempfile::Builder::new()
            .prefix("gbx-")
            .tempdir_in(image::place())
            .expect("make a directory");
        let mut engine = Self {
            directory,
            host: String::new(),
        };
        engine.host = engine.tell("start");
        image::furnish(&engine.host, Path::new(ROOT));
        Some(engine)
    }

    /// What `DOCKER_HOST` must be.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// One word to `scripts/dockerd`: `restart`, `kill`, `pause` or `resume`.
    ///
    /// # Panics
    /// When it cannot be done.
    pub fn tell(&self, word: &str) -> String {
        let output = self.script(word);
        assert!(output.status.success(), "{word}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn script(&self, word: &str) -> Output {
        Command::new(format!("{ROOT}/scripts/dockerd"))
            .arg(word)
            .arg(self.directory.path())
            .output()
            .expect("scripts/dockerd")
    }

    /// Programs go on while the engine is away, from its next start on.
    ///
    /// # Panics
    /// When its settings cannot be changed.
    pub fn let_containers_live(&self) {
        let path = self.directory.path().join("daemon.json");
        let text = std::fs::read_to_string(&path).expect("the engine's settings");
        let text = text.replacen('{', "{\n    \"live-restore\": true,", 1);
        std::fs::write(&path, text).expect("the engine's settings");
        self.tell("restart");
    }

    /// The engine's own command, beside Glovebox: what it prints, on whichever stream.
    pub fn docker(&self, args: &[&str]) -> String {
        let output = Command::new("docker")
            .args(args)
            .env("DOCKER_HOST", &self.host)
            .output()
            .expect("docker");
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        said.trim().to_owned()
    }

    /// The names of all containers, those that ended too.
    pub fn containers(&self) -> Vec<String> {
        let said = self.docker(&["ps", "--all", "--format", "{{.Names}}"]);
        said.lines().map(str::to_owned).collect()
    }

    /// # Panics
    /// When some stay.
    #[track_caller]
    pub fn assert_empty(&self) {
        let empty = wait_until(Duration::from_secs(60), || self.containers().is_empty());
        assert!(empty, "left in the engine: {:?}", self.containers());
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        // One that stands still cannot end its containers.
        self.script("resume");
        self.script("stop");
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(program).is_file())
}
