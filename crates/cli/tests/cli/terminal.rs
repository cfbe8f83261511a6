//! A command with a person before it: a real terminal, typed at and read.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::trial::{Running, Trial, until};

pub(crate) struct Terminal {
    child: Running,
    keys: ChildStdin,
    said: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// `script` gives it a terminal of its own, which is the controlling one of its session.
    pub(crate) fn start(trial: &Trial, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let plain = trial.command(args);
        let words = std::iter::once(plain.get_program()).chain(plain.get_args());
        // Without `exec` the shell would tell of an interrupt, not of how the command ended.
        let line = format!("exec {}", words.map(quoted).collect::<Vec<_>>().join(" "));
        let mut command = Command::new("script");
        command
            .args(["-qefc", &line, "/dev/null"])
            .current_dir(trial.work())
            .env_clear()
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped());
        for (key, value) in plain.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.envs(variables.iter().copied());
        let mut child = Running::spawn(&mut command);
        let keys = child.0.stdin.take().unwrap();
        let mut screen = child.0.stdout.take().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).replace('\r', "");
                heard.lock().unwrap().push_str(&text);
            }
        });
        Self {
            child,
            keys,
            said,
            reader,
        }
    }

    /// Waits until it was asked so many times.
    pub(crate) fn asked(&self, times: usize) -> String {
        self.asks("[d]eny: ", times)
    }

    /// The same with other words at the end of the question.
    pub(crate) fn asks(&self, question: &str, times: usize) -> String {
        until(|| {
            let said = self.said.lock().unwrap();
            (said.matches(question).count() >= times).then(|| said.clone())
        })
    }

    /// Waits until it has said this.
    pub(crate) fn shows(&self, text: &str) {
        until(|| self.said.lock().unwrap().contains(text).then_some(()));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Its exit code and all that it said, once it has ended by itself.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = until(|| self.child.0.try_wait().unwrap()).code();
        drop(self.keys);
        self.reader.join().unwrap();
        let said = self.said.lock().unwrap().clone();
        (code, said)
    }
}

fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"))
}
