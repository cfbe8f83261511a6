//! Small Python programs on the host's side of a test: they hold what no safe Rust call makes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// The system's own interpreter: the one that a sandbox without toolchains has too.
pub fn python() -> &'static str {
    "/usr/bin/python3"
}

/// A program that says one line of JSON when it is ready and one for each line it is sent.
#[derive(Debug)]
pub struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub ready: Value,
}

impl Helper {
    /// # Panics
    /// When it does not come up.
    pub fn start(code: &str, arguments: &[&str]) -> Self {
        Self::start_with(Command::new(python()).arg("-c").arg(code).args(arguments))
    }

    pub fn start_with(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start a helper");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut helper = Self {
            child,
            input,
            output,
            ready: Value::Null,
        };
        helper.ready = helper.line();
        helper
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("hear the helper");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the helper said `{line}`"))
    }

    pub fn ask(&mut self, question: &str) -> Value {
        let input = self.input.as_mut().expect("a helper that still listens");
        writeln!(input, "{question}").expect("ask the helper");
        self.line()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The end of its input ends it; it removes what it made.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
