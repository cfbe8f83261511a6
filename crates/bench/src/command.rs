//! A whole command, from its start to its end, as a shell would wait for it.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::container::Container;
use crate::interrupt::Interrupt;

/// Nothing that is measured takes a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of each stream that are read and quoted.
const OUTPUT_MOST: u64 = 400;

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) argv: Vec<OsString>,
    /// What it must print, byte by byte.
    pub(crate) expected: &'static str,
    pub(crate) environment: Environment,
    /// Where it is started; some commands work on it.
    pub(crate) directory: PathBuf,
    pub(crate) inherited: Option<Inherited>,
    /// The container that it runs in, started before the clock.
    pub(crate) container: Option<Container>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Environment {
    Empty,
    /// The caller's own: a client may find its server by a variable.
    Inherited,
}

/// A file that a command reads through a descriptor named in its arguments.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) file: PathBuf,
    /// Where in `argv` the number goes.
    pub(crate) position: usize,
}

impl Invocation {
    /// The time from just before its start until its end was collected.
    pub(crate) fn measure(&self, interrupt: &Interrupt) -> Result<Duration> {
        if let Some(container) = &self.container {
            container.start(interrupt)?;
        }
        let (mut command, inherited) = self.command()?;
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| self.failed(&error))?;
        let waited = wait(&mut child, interrupt);
        let took = started.elapsed();
        drop(inherited);
        let success = waited.map_err(|error| self.as_failure(error))?;
        let (stdout, stderr) = (text(child.stdout.take()), text(child.stderr.take()));
        if success && stdout == self.expected {
            return Ok(took);
        }
        let (stdout, stderr) = (stdout.trim_end(), stderr.trim_end());
        Err(self.failed(&format!("it printed `{stdout}` and `{stderr}`")))
    }

    /// What it printed; for commands that are not measured.
    pub(crate) fn output(&self, interrupt: &Interrupt) -> Result<String> {
        let mut child = self.start()?;
        if wait(&mut child, interrupt).map_err(|error| self.as_failure(error))? {
            return Ok(text(child.stdout.take()));
        }
        let stderr = text(child.stderr.take());
        Err(self.failed(&stderr.trim_end()))
    }

    /// Starts it and leaves it running.
    pub(crate) fn start(&self) -> Result<Child> {
        let (mut command, _inherited) = self.command()?;
        command.spawn().map_err(|error| self.failed(&error))
    }

    /// No hook runs between fork and exec, so the C library may use its vfork.
    fn command(&self) -> Result<(Command, Option<OwnedFd>)> {
        let mut argv = self.argv.clone();
        let inherited = match &self.inherited {
            None => None,
            Some(inherited) => {
                let opened = inheritable(&inherited.file).map_err(|error| self.failed(&error))?;
                let number = std::os::fd::AsRawFd::as_raw_fd(&opened).to_string();
                if let Some(word) = argv.get_mut(inherited.position) {
                    *word = number.into();
                }
                Some(opened)
            }
        };
        let mut words = argv.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.environment == Environment::Empty {
            command.env_clear();
        }
        Ok((command, inherited))
    }

    fn failed(&self, cause: &dyn std::fmt::Display) -> Error {
        let name = self.argv.first().cloned().unwrap_or_default();
        let message = format!("`{}` failed", name.to_string_lossy());
        Error::new(Code::BackendUnavailable, Stage::Run, message).caused_by(cause)
    }

    fn as_failure(&self, error: Error) -> Error {
        match error.code {
            Code::Canceled => error,
            _ => self.failed(&error.message),
        }
    }
}

/// A descriptor of its own for each start: the reader moves its position. It is not closed on exec.
fn inheritable(file: &std::path::Path) -> std::io::Result<OwnedFd> {
    let file = std::fs::File::open(file)?;
    let copy = rustix::io::dup(&file)?;
    Ok(copy)
}

/// Whether it ended well. It is killed when this fails.
pub(crate) fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<bool> {
    let ended = await_end(child, interrupt);
    if ended.is_err() {
        let _ = child.kill();
    }
    let status = child.wait();
    ended?;
    status
        .map(|status| status.success())
        .map_err(|error| Error::new(Code::Internal, Stage::Run, format!("cannot wait: {error}")))
}

fn await_end(child: &Child, interrupt: &Interrupt) -> Result<()> {
    let lost = |errno: rustix::io::Errno| {
        Error::new(Code::Internal, Stage::Run, format!("cannot wait: {errno}"))
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| lost(rustix::io::Errno::SRCH))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(lost)?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        interrupt.check()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| lost(rustix::io::Errno::INVAL))?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => {
                let message = format!("it was still running after {} s", TIMEOUT.as_secs());
                return Err(Error::new(Code::BackendUnavailable, Stage::Run, message));
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(lost(errno)),
        }
    }
}

/// What lies in the pipe of a command that has ended. It does not wait for the end of the pipe, which
/// grandchildren may hold open.
fn text(pipe: Option<impl Into<OwnedFd>>) -> String {
    let Some(pipe) = pipe else {
        return String::new();
    };
    let pipe: OwnedFd = pipe.into();
    let _ = rustix::io::ioctl_fionbio(&pipe, true);
    let mut bytes = Vec::new();
    let _ = std::fs::File::from(pipe)
        .take(OUTPUT_MOST)
        .read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use glovebox_engine::Cancel;

    use super::*;

    fn interrupt() -> Interrupt {
        Interrupt::new(Arc::default(), Cancel::new().unwrap().0)
    }

    fn shell(script: &str, expected: &'static str) -> Invocation {
        Invocation {
            argv: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            expected,
            environment: Environment::Empty,
            directory: "/".into(),
            inherited: None,
            container: None,
        }
    }

    #[test]
    fn a_command_counts_only_if_it_did_what_it_should() {
        let interrupt = interrupt();
        shell("echo 1", "1\n").measure(&interrupt).unwrap();
        let wrong = shell("echo 2", "1\n").measure(&interrupt).unwrap_err();
        assert!(wrong.causes[0].contains("`2"), "{wrong:?}");
        let failing = shell("echo broken >&2; exit 1", "").measure(&interrupt);
        assert!(failing.unwrap_err().causes[0].contains("broken"));
    }

    #[test]
    fn an_inherited_file_is_read_from_its_start_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "content").unwrap();
        let mut invocation = shell("cat <&$0", "content");
        invocation.argv.push("number".into());
        invocation.inherited = Some(Inherited { file, position: 3 });
        let interrupt = interrupt();
        for _ in 0..2 {
            invocation.measure(&interrupt).unwrap();
        }
    }
}
