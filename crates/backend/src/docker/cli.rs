//! The docker or podman program. Every call has a deadline of its own: an engine that hangs makes
//! its program hang, and nobody waits for that.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};

/// What the engine may say in one answer.
const LONGEST: usize = 8 << 20;

/// What the program itself needs to find its engine and its settings; nothing else is passed on.
const PASSED_ON: [&str; 12] = [
    "PATH",
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "DOCKER_API_VERSION",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Docker,
    Podman,
}

#[derive(Debug, Clone)]
pub(super) struct Cli {
    pub(super) path: PathBuf,
    pub(super) program: Program,
    env: Vec<(OsString, OsString)>,
}

/// What a call printed and how it ended.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Cli {
    /// The program by name or path; `host` says where the engine is, if not the environment.
    pub(super) fn find(cli: &str, host: Option<&str>) -> Result<Self> {
        let mut env: Vec<(OsString, OsString)> = PASSED_ON
            .iter()
            .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)))
            .collect();
        if let Some(host) = host {
            env.retain(|(name, _)| name != "DOCKER_HOST" && name != "DOCKER_CONTEXT");
            env.push(("DOCKER_HOST".into(), host.into()));
        }
        let path = if cli.starts_with('/') {
            Some(PathBuf::from(cli)).filter(|path| is_program(path))
        } else {
            let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
            // A relative directory there would be whatever directory we are in.
            std::env::split_paths(&path)
                .filter(|dir| dir.is_absolute())
                .map(|dir| dir.join(cli))
                .find(|path| is_program(path))
        };
        let path = path.ok_or_else(|| {
            Error::new(
                Code::BackendUnavailable,
                Stage::Open,
                format!("there is no program `{cli}`"),
            )
            .hint(
                "install Docker or podman, or say where it is with `cli` in the `docker` settings",
            )
        })?;
        let podman = path
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| name.contains("podman"));
        Ok(Self {
            path,
            program: if podman {
                Program::Podman
            } else {
                Program::Docker
            },
            env,
        })
    }

    /// Where the engine is, as far as the environment says.
    pub(super) fn host(&self) -> Option<&OsStr> {
        let named = |name: &str| self.env.iter().find(|(key, _)| key == name);
        named("DOCKER_HOST").map(|(_, host)| host.as_os_str())
    }

    /// What its program is started with.
    pub(super) fn environment(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    pub(super) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            // A terminal's interrupt is for us, not for it; and all of it can be ended at once.
            .process_group(0);
        command
    }

    /// Waits for the answer, at most so long.
    pub(super) fn call<S: AsRef<OsStr>>(&self, args: &[S], patience: Duration) -> Result<Answer> {
        self.call_with(args, std::iter::empty(), patience)
    }

    /// With more in its environment, to be passed on into a container.
    pub(super) fn call_with<'a, S: AsRef<OsStr>>(
        &self,
        args: &[S],
        more: impl Iterator<Item = (&'a str, &'a str)>,
        patience: Duration,
    ) -> Result<Answer> {
        let mut command = self.command(args);
        command
            .envs(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let name = args.first().map(|it| it.as_ref().to_string_lossy());
        let name = name.unwrap_or_default();
        let mut running = Running::start(command).map_err(|error| self.cannot_start(&error))?;
        let outcome = running.gather(Instant::now() + patience);
        match outcome {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(unreachable(&format!(
                "`{} {name}` did not answer within {} s",
                self.shown(),
                patience.as_secs()
            ))),
            Err(error) => Err(self.cannot_start(&error)),
        }
    }

    /// The same, when anything but success is an error of the engine.
    pub(super) fn ask<S: AsRef<OsStr>>(&self, args: &[S], patience: Duration) -> Result<Vec<u8>> {
        let answer = self.call(args, patience)?;
        if answer.status.success() {
            return Ok(answer.stdout);
        }
        Err(refused(&answer.stderr))
    }

    pub(super) fn cannot_start(&self, error: &dyn std::fmt::Display) -> Error {
        Error::new(
            Code::BackendUnavailable,
            Stage::Open,
            format!("`{}` cannot be started", self.shown()),
        )
        .caused_by(error)
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Whether it is not there, or only did not like what it was asked.
pub(super) fn refused(stderr: &str) -> Error {
    let said = stderr.trim();
    let gone = [
        "Cannot connect to the Docker daemon",
        "error during connect",
        "connection refused",
        "unexpected EOF",
        "connection reset",
        "Is the docker daemon running",
        "failed to connect to the docker API",
        "unable to connect to Podman",
    ];
    if gone.iter().any(|words| said.contains(words)) {
        return unreachable(&first_line(said));
    }
    Error::new(
        Code::SetupFailed,
        Stage::Open,
        "the container engine refused",
    )
    .caused_by(shorten(said))
}

/// Trying again may help: an engine comes back.
pub(super) fn unreachable(why: &str) -> Error {
    let mut error = Error::new(
        Code::BackendUnavailable,
        Stage::Run,
        "the container engine cannot be reached",
    )
    .caused_by(why)
    .hint("is it running? `docker info` must answer as the user that Glovebox runs as");
    error.retry.allowed = true;
    error
}

fn first_line(text: &str) -> String {
    shorten(text.lines().next().unwrap_or_default())
}

pub(super) fn shorten(text: &str) -> String {
    let text: String = text.chars().take(600).collect();
    text.trim().replace('\n', "; ")
}

/// One process of the program. Dropping it ends it, with everything it started.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
}

impl Running {
    pub(super) fn start(mut command: Command) -> std::io::Result<Self> {
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = match pid {
            Some(pid) => rustix::process::pidfd_open(pid, PidfdFlags::empty()),
            None => Err(rustix::io::Errno::SRCH),
        };
        match opened {
            Ok(pidfd) => Ok(Self {
                child,
                pidfd,
                ended: None,
            }),
            Err(errno) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(errno.into())
            }
        }
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    pub(super) fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }

    /// None when the time was up.
    fn gather(&mut self, deadline: Instant) -> std::io::Result<Option<Answer>> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut out = self.child.stdout.take();
        let mut err = self.child.stderr.take();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.kill();
                return Ok(None);
            }
            let mut fds = Vec::new();
            let mut which = Vec::new();
            if let Some(pipe) = &out {
                fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
                which.push(0);
            }
            if let Some(pipe) = &err {
                fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
                which.push(1);
            }
            if fds.is_empty() {
                fds.push(PollFd::new(&self.pidfd, PollFlags::IN));
                which.push(2);
            }
            let timeout = Timespec::try_from(left).map_err(std::io::Error::other)?;
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let ready: Vec<i32> = fds
                .iter()
                .zip(which)
                .filter(|(fd, _)| !fd.revents().is_empty())
                .map(|(_, which)| which)
                .collect();
            for which in ready {
                match which {
                    0 => take(&mut out, &mut stdout)?,
                    1 => take(&mut err, &mut stderr)?,
                    _ => {
                        let status = self.child.wait()?;
                        self.ended = Some(status);
                        return Ok(Some(Answer {
                            status,
                            stdout,
                            stderr: String::from_utf8_lossy(&stderr).into_owned(),
                        }));
                    }
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One portion; closed at its end. What is beyond the bound is read and forgotten.
fn take<P: Read>(pipe: &mut Option<P>, into: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = [0; 16 << 10];
    let Some(open) = pipe else { return Ok(()) };
    match open.read(&mut buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => {
            let room = LONGEST.saturating_sub(into.len());
            into.extend_from_slice(&buffer[..count.min(room)]);
        }
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Cli {
        Cli {
            path: "/bin/sh".into(),
            program: Program::Docker,
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }
    }

    #[test]
    fn a_call_that_hangs_is_ended_with_its_children() {
        let since = Instant::now();
        let script = "sleep 300 & echo $! >&2; wait";
        let hung = shell().call(&["-c", script], Duration::from_millis(300));
        assert_eq!(hung.err().map(|it| it.code), Some(Code::BackendUnavailable));
        assert!(since.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn nothing_of_ours_is_in_its_environment() -> Result<()> {
        let said = shell().ask(&["-c", "env"], Duration::from_secs(60))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let names: Vec<&str> = said
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name)
            .filter(|name| !["PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(name))
            .collect();
        assert!(names.is_empty(), "{names:?}");
        Ok(())
    }

    #[test]
    fn an_engine_that_is_gone_may_be_tried_again() {
        let gone = refused("Cannot connect to the Docker daemon at unix:///x. Is it running?\n");
        assert_eq!(gone.code, Code::BackendUnavailable);
        assert!(gone.retry.allowed);
        let refused = refused("Error response from daemon: invalid reference format\n");
        assert_eq!(refused.code, Code::SetupFailed);
        assert!(!refused.retry.allowed);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let missing = Cli::find("docker-that-is-not-there", None).err();
        assert!(missing.is_some_and(|it| it.message.contains("docker-that-is-not-there")));
    }
}
