//! Programs that judge: the project's tests, for example. They are run by whoever has sandboxes.

use glovebox_model::{Bytes, Millis, Result};

/// Bytes of a program's output that are worth keeping.
pub const COMMAND_TAIL_MAX: usize = 4096;

/// What is run, and what it may use at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCheck {
    pub argv: Vec<String>,
    pub timeout: Millis,
    pub memory: Option<Bytes>,
    pub pids: Option<u64>,
}

impl CommandCheck {
    pub const TIMEOUT: Millis = Millis::secs(120);
    pub const ARGV_MAX: usize = 256;
    pub const ARGUMENT_BYTES_MAX: usize = 4096;

    pub fn new(argv: Vec<String>) -> std::result::Result<Self, String> {
        if argv.is_empty() || argv.len() > Self::ARGV_MAX {
            return Err(format!("must hold 1 to {} words", Self::ARGV_MAX));
        }
        if argv.first().is_some_and(|it| it.trim().is_empty()) {
            return Err("does not name a program".to_owned());
        }
        if argv.iter().any(|it| it.len() > Self::ARGUMENT_BYTES_MAX) {
            let most = Self::ARGUMENT_BYTES_MAX;
            return Err(format!("holds a word of more than {most} bytes"));
        }
        if argv.iter().any(|it| it.contains('\0')) {
            return Err("holds a NUL byte".to_owned());
        }
        Ok(Self {
            argv,
            timeout: Self::TIMEOUT,
            memory: None,
            pids: None,
        })
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutcome {
    /// None when a signal or a limit ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The end of what it put out, without secrets. More than `COMMAND_TAIL_MAX` is cut off.
    pub tail: String,
    /// What else went wrong with it, such as a limit that it hit.
    pub error: Option<String>,
}

pub trait RunCommand {
    /// Runs it in a sandbox of its own, on the changes that are judged. Nothing that it writes is
    /// kept.
    fn run_command(&self, command: &CommandCheck) -> Result<CommandOutcome>;
}
