//! A state directory and a workspace of a test's own, and `glovebox` started on them.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use glovebox_model::{Exec, ReceiptRef, SpaceId};
use glovebox_store::{ExecFilter, Expectations, StateDir, Store, Verification};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use support::wait_until;
use tempfile::TempDir;

use crate::traces;
use crate::wait::{PATIENCE, until};

pub(crate) struct Bench {
    dir: TempDir,
    state: PathBuf,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let state = dir.path().join("state");
        Self { dir, state }
    }

    /// With the state directory somewhere else.
    pub(crate) fn with_state(state: PathBuf) -> Self {
        Self {
            state,
            ..Self::new()
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A file that the payload can make and the test can see.
    pub(crate) fn mark(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(crate) fn glovebox(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .current_dir(self.work())
            .arg("--state-dir")
            .arg(&self.state)
            .stdin(Stdio::null());
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("GLOVEBOX_") {
                command.env_remove(key);
            }
        }
        command
    }

    /// `glovebox run FLAGS -- WORDS`.
    pub(crate) fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let mut command = self.glovebox();
        command.arg("run").args(flags).arg("--").args(words);
        command
    }

    pub(crate) fn run(&self, flags: &[&str], words: &[impl AsRef<OsStr>]) -> Ended {
        let mut command = self.glovebox();
        command.arg("run").args(flags).arg("--").args(words);
        Ended::of(&mut command)
    }

    /// Starts a shell script and returns when it has made the file `running`.
    pub(crate) fn start(&self, flags: &[&str], script: &str) -> Running {
        let mut command = self.command(flags, &["sh", "-c", script]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let running = Running::new(child);
        until("the payload runs", || self.mark("running").exists());
        std::fs::remove_file(self.mark("running")).unwrap();
        running
    }

    /// What `--json` printed, of a run that must end with this code.
    pub(crate) fn record(&self, code: i32, flags: &[&str], words: &[&str]) -> Value {
        let all: Vec<&str> = flags.iter().copied().chain(["--json"]).collect();
        let ended = self.run(&all, words);
        ended.assert_code(code);
        serde_json::from_slice(&ended.output.stdout).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&StateDir::open(&self.state).unwrap()).unwrap()
    }

    pub(crate) fn execs(&self) -> Vec<Exec> {
        let filter = ExecFilter {
            limit: 1000,
            ..ExecFilter::default()
        };
        let page = self.store().list(&SpaceId::local(), &filter).unwrap();
        assert!(page.next.is_none(), "more execs than one page holds");
        page.items
    }

    pub(crate) fn verify(&self, receipts: &[ReceiptRef]) -> Verification {
        let expectations = Expectations {
            receipts: receipts.to_vec(),
            ..Expectations::default()
        };
        self.store()
            .verify(&SpaceId::local(), &expectations)
            .unwrap()
    }

    pub(crate) fn assert_sound(&self, receipts: &[ReceiptRef]) {
        let verification = self.verify(receipts);
        assert!(verification.is_sound(), "{:?}", verification.problems);
    }

    /// The part of a control group's name that this state directory alone has.
    pub(crate) fn tag(&self) -> String {
        let facts = std::fs::metadata(&self.state).unwrap();
        format!("glovebox-{:x}-{:x}-", facts.dev(), facts.ino())
    }

    /// No process, control group or mount of this state directory, and nobody registered in it. A
    /// process that was killed while it waits for the disk ends when the disk is done.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        let mut left = Vec::new();
        let gone = wait_until(PATIENCE, || {
            left = self.left();
            left.is_empty()
        });
        assert!(gone, "left: {left:#?}");
    }

    fn left(&self) -> Vec<String> {
        let tag = self.tag();
        let groups = traces::groups(&tag).into_iter();
        let processes = traces::processes_in_groups(&tag).into_iter();
        let mounts = traces::mounts_below(self.path()).into_iter();
        let owners = traces::names_in(&self.state.join("owners")).into_iter();
        let mut left: Vec<String> = groups.map(|it| format!("group {it:?}")).collect();
        left.extend(processes.map(|it| format!("process {it:?}")));
        left.extend(mounts.map(|it| format!("mount {it}")));
        left.extend(owners.map(|it| format!("registered {it}")));
        left
    }
}

/// The binary beside this test's own, of the same build.
pub(crate) fn binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let binary = own
        .ancestors()
        .nth(2)
        .map(|profile| profile.join("glovebox"));
    binary
        .filter(|it| it.exists())
        .expect("`glovebox` is not built: run `cargo build` first")
}

pub(crate) struct Ended {
    pub(crate) output: Output,
}

impl Ended {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self {
            output: command.output().unwrap(),
        }
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(
            self.code(),
            Some(code),
            "{:?}\nstdout: {}\nstderr: {}",
            self.output.status,
            self.stdout(),
            self.stderr()
        );
        self
    }

    /// Every part is somewhere in what was said on standard error.
    #[track_caller]
    pub(crate) fn assert_says(&self, parts: &[&str]) -> &Self {
        let said = self.stderr();
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing in: {said}");
        }
        self
    }

    /// An error with its code and at least one hint.
    #[track_caller]
    pub(crate) fn assert_error_with_hint(&self, code: &str) -> &Self {
        self.assert_says(&[&format!("error[{code}]: "), "\nhint: "])
    }
}

/// A `glovebox run` under way; killed when a test fails before its end.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Self { child: Some(child) }
    }

    fn child(&self) -> &Child {
        self.child
            .as_ref()
            .expect("it is there until it is waited for")
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.child())
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("as above");
        child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> Ended {
        let child = self.child.take().expect("waited for once");
        Ended {
            output: child.wait_with_output().unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
