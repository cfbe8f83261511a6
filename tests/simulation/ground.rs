//! A trial with a configuration: simulations in it, what they tell, and what becomes of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use glovebox_model::Effect;
use serde_json::Value;
use support::{Caller, Trial};

use crate::census::{Census, census};

/// What a gate holds back ends with this code.
pub(crate) const HELD: i32 = 6;

pub(crate) struct Ground {
    pub(crate) trial: Trial,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A record, and how its command ended.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) code: i32,
    pub(crate) record: Value,
    pub(crate) stderr: String,
}

impl Ground {
    /// `None` when the caller does not exist on this host.
    pub(crate) fn new(caller: Caller, config: &str) -> Option<Self> {
        let trial = Trial::in_memory(caller)?;
        let ground = Self { trial };
        ground.configure(config);
        Some(ground)
    }

    pub(crate) fn root(config: &str) -> Self {
        Self::new(Caller::Root, config).expect("root is always there")
    }

    /// Another configuration, from the next command on.
    pub(crate) fn configure(&self, config: &str) {
        fs::write(self.config(), config).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.trial.home().join("glovebox.toml")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.trial.work()
    }

    pub(crate) fn census(&self) -> Census {
        census(&self.work())
    }

    pub(crate) fn command_in(&self, directory: &Path, words: &[&str]) -> Command {
        let mut command = self.trial.glovebox();
        command.arg("--config").arg(self.config()).args(words);
        command.current_dir(directory);
        command
    }

    pub(crate) fn glovebox(&self, words: &[&str]) -> Ended {
        Ended::of(self.command_in(&self.work(), words).output().unwrap())
    }

    /// A shell line in a sandbox on a directory; its record, however it ended.
    #[track_caller]
    pub(crate) fn run_in(&self, directory: &Path, options: &[&str], line: &str) -> Simulated {
        let tag = format!("TRIAL_TAG={}", self.trial.tag());
        let mut words = vec!["--json", "run", "--toolchain", "off", "--env", &tag];
        words.extend(options);
        words.extend(["--", "/bin/sh", "-c", line]);
        let output = self.command_in(directory, &words).output().unwrap();
        Simulated::of(output)
    }

    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], line: &str) -> Simulated {
        self.run_in(&self.work(), options, line)
    }

    #[track_caller]
    pub(crate) fn simulate(&self, line: &str) -> Simulated {
        self.run(&["--simulate"], line)
    }

    /// All effects of an exec, by the command that tells them.
    #[track_caller]
    pub(crate) fn effects(&self, exec: &str) -> Vec<Effect> {
        let ended = self.glovebox(&["--json", "effects", exec]);
        ended.assert_code(0);
        let lines = ended.stdout.lines();
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    pub(crate) fn glovebox_in(&self, directory: &Path, words: &[&str]) -> Ended {
        Ended::of(self.command_in(directory, words).output().unwrap())
    }

    pub(crate) fn apply(&self, exec: &str) -> Ended {
        self.glovebox(&["apply", exec])
    }

    /// It has a record of its own.
    #[track_caller]
    pub(crate) fn rerun(&self, exec: &str) -> Simulated {
        let words = ["--json", "apply", exec, "--rerun"];
        Simulated::of(self.command_in(&self.work(), &words).output().unwrap())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    pub(crate) fn end(self) {
        self.trial.end();
    }
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
    }

    /// A refusal with its code and the way out.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: &str) {
        assert_ne!(self.code, 0, "{}", self.stdout);
        let said = self.stderr.contains(&format!("error[{code}]: "));
        assert!(said && self.stderr.contains("\nhint: "), "{}", self.stderr);
    }
}

impl Simulated {
    #[track_caller]
    pub(crate) fn of(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            record: serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
                panic!(
                    "no record: {}{stderr}",
                    String::from_utf8_lossy(&output.stdout)
                )
            }),
            stderr,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.record["exec_id"].as_str().expect("an exec")
    }

    pub(crate) fn status(&self) -> &str {
        self.record["status"].as_str().unwrap_or_default()
    }

    /// Its status and the code it ended with, in one comparison.
    #[track_caller]
    pub(crate) fn expect(&self, status: &str, code: i32) {
        let said = (self.status(), self.code);
        assert_eq!(said, (status, code), "{:#}\n{}", self.record, self.stderr);
    }

    /// The gates that blocked it, by name.
    pub(crate) fn blocked_by(&self) -> Vec<&str> {
        let gates = self.record["gates"].as_array();
        let blocked = gates
            .into_iter()
            .flatten()
            .filter(|it| it["blocked"] == true);
        blocked.filter_map(|it| it["gate"].as_str()).collect()
    }
}
