//! The engine of containers that the tests share: `scripts/dockerd start DIR` prints its address,
//! which `GLOVEBOX_TEST_DOCKER` hands on.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// An address of an engine that has the image of `images/sandbox`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Docker(String);

impl Docker {
    /// `None` when there is none here; in CI that is a failure, elsewhere it is said.
    ///
    /// # Panics
    /// In CI without an engine.
    pub fn shared() -> Option<Self> {
        match std::env::var("GLOVEBOX_TEST_DOCKER") {
            Ok(host) if !host.is_empty() => Some(Self(host)),
            _ => {
                missing("GLOVEBOX_TEST_DOCKER is not set; `scripts/dockerd start DIR` prints it");
                None
            }
        }
    }

    /// What `DOCKER_HOST` must be.
    pub fn host(&self) -> &str {
        &self.0
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("docker");
        command.env("DOCKER_HOST", &self.0);
        command
    }

    /// What the engine's own program says.
    ///
    /// # Panics
    /// When it fails.
    pub fn ask(&self, words: &[&str]) -> String {
        let output = self.command().args(words).output().expect("start docker");
        assert!(
            output.status.success(),
            "docker {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The names of the containers that were made from this state directory, running or not.
    pub fn containers(&self, state: &Path) -> Vec<String> {
        let Ok(facts) = std::fs::metadata(state) else {
            return Vec::new();
        };
        let house = format!("label=glovebox.house={:x}-{:x}", facts.dev(), facts.ino());
        let words = ["ps", "--all", "--filter", &house, "--format", "{{.Names}}"];
        self.ask(&words).lines().map(str::to_owned).collect()
    }

    /// Whether the engine has this runtime.
    pub fn has_runtime(&self, name: &str) -> bool {
        let known = self.ask(&["info", "--format", "{{json .Runtimes}}"]);
        known.contains(&format!("\"{name}\":"))
    }
}

/// What cannot be tested here: a failure in CI, else said.
///
/// # Panics
/// In CI.
pub fn missing(said: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "{said}");
    eprintln!("SKIPPED: {said}");
}
