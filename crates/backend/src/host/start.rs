//! A program on the host on its way: a session of its own, no terminal, no descriptor but its three
//! streams, its directory by handle.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Limits, Result, Stage};
use glovebox_workspace::Dir;
use nix::errno::Errno as SpawnErrno;
use nix::sched::{CloneFlags, unshare};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, WaitOptions, WaitStatus, pidfd_open, prlimit, waitpid,
};

use super::family::Family;
use crate::native::no_exec;

/// `POSIX_SPAWN_SETSID`, which the crate has no name for; the same in every C library of Linux.
const OWN_SESSION: PosixSpawnFlags = PosixSpawnFlags::from_bits_retain(0x80);
/// Of proc_pid_fdinfo(5): the descriptor is closed when a program is executed.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;
/// From KILL to giving up on a process that the kernel does not let go.
pub(super) const STUBBORN: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Debug)]
pub(super) struct Launch<'run> {
    pub(super) command: Vec<u8>,
    /// With the command's own name first.
    pub(super) argv: Vec<CString>,
    pub(super) env: &'run [CString],
    pub(super) path: &'run [&'static str],
    pub(super) cwd: &'run Dir,
    pub(super) stdio: [OwnedFd; 3],
    pub(super) limits: &'run Limits,
    pub(super) largest_file: Option<u64>,
    pub(super) mark: Vec<u8>,
}

/// A program that runs. Dropping it ends it, with everybody that it started.
#[derive(Debug)]
pub(super) struct Program {
    pid: Pid,
    process: OwnedFd,
    pub(super) family: Family,
    status: Option<WaitStatus>,
    bounds: Vec<(Resource, u64)>,
    bounded: BTreeSet<(i32, u64)>,
}

impl Program {
    pub(super) fn start(launch: Launch<'_>) -> Result<Self> {
        let Launch {
            limits,
            largest_file,
            ..
        } = launch;
        let mark = launch.mark.clone();
        let pid = in_its_directory(&launch)?;
        // Our ends only from here on: the program has its own.
        drop(launch);
        let held = pidfd_open(pid, PidfdFlags::empty());
        let mut family = Family::new(pid, mark);
        let process = match held {
            Ok(process) => process,
            Err(errno) => {
                family.end(Instant::now() + STUBBORN);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                return Err(failed("cannot watch the program").caused_by(errno));
            }
        };
        let mut program = Self {
            pid,
            process,
            family,
            status: None,
            bounds: bounds(limits, largest_file),
            bounded: BTreeSet::new(),
        };
        // A moment after it began: these hold for what it does from now on, and for whoever it
        // starts. Those that it started before are found by the search.
        program.bound()?;
        program.family.search();
        program.bound()?;
        Ok(program)
    }

    /// Sets the limits of whoever was found since.
    pub(super) fn bound(&mut self) -> Result<()> {
        for member in self.family.members() {
            if self.bounded.insert(member)
                && let Some(pid) = Pid::from_raw(member.0)
            {
                limit(pid, &self.bounds)?;
                // A server stays last when memory runs out on the host; what it runs does not.
                let _ = std::fs::write(format!("/proc/{}/oom_score_adj", member.0), "1000");
            }
        }
        Ok(())
    }

    /// Readable when the program itself has ended.
    pub(super) fn process(&self) -> &OwnedFd {
        &self.process
    }

    /// Ends whoever is left and buries the program, which has ended or is ended here.
    pub(super) fn finish(&mut self) -> Result<WaitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let alone = self.family.end(Instant::now() + STUBBORN);
        let status = waitpid(Some(self.pid), WaitOptions::NOHANG);
        let status = status.ok().flatten().map(|(_, status)| status);
        self.status = status;
        match status {
            Some(status) if alone => Ok(status),
            Some(_) | None => Err(failed(
                "processes that the program started on the host could not be ended",
            )
            .hint("look for them with `ps` and end them by hand")),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// A thread has a working directory of its own for as long as this takes: a handle needs no path
/// that somebody could exchange.
fn in_its_directory(launch: &Launch<'_>) -> Result<Pid> {
    let no_thread = |why: &dyn std::fmt::Display| failed("cannot start a thread").caused_by(why);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("glovebox-host".to_owned())
            .spawn_scoped(scope, || {
                unshare(CloneFlags::CLONE_FS).map_err(|errno| {
                    failed("a thread cannot have a working directory of its own")
                        .caused_by(errno)
                        .hint("something around Glovebox forbids `unshare`; run it outside of that")
                })?;
                rustix::process::fchdir(launch.cwd).map_err(|errno| {
                    Error::new(
                        Code::CwdNotFound,
                        Stage::Run,
                        "the working directory cannot be entered",
                    )
                    .caused_by(errno)
                })?;
                spawn(launch)
            })
            .map_err(|error| no_thread(&error))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(no_thread(&"it broke off")))
    })
}

fn spawn(launch: &Launch<'_>) -> Result<Pid> {
    let cannot = |errno: SpawnErrno| failed("cannot prepare the program").caused_by(errno);
    // Above the three, so that none is put where another still has to be read from.
    let mut stdio = Vec::new();
    for fd in &launch.stdio {
        let copy = rustix::io::fcntl_dupfd_cloexec(fd, 3);
        stdio.push(copy.map_err(|errno| failed("no descriptor is left").caused_by(errno))?);
    }
    let mut actions = PosixSpawnFileActions::init().map_err(cannot)?;
    for (fd, number) in stdio.iter().zip(0..) {
        actions
            .add_dup2(fd.as_fd().as_raw_fd(), number)
            .map_err(cannot)?;
    }
    for fd in inheritable()? {
        actions.add_close(fd).map_err(cannot)?;
    }
    let mut attributes = PosixSpawnAttr::init().map_err(cannot)?;
    let signals = PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    attributes
        .set_flags(signals | OWN_SESSION)
        .map_err(cannot)?;
    attributes.set_sigdefault(&SigSet::all()).map_err(cannot)?;
    attributes.set_sigmask(&SigSet::empty()).map_err(cannot)?;
    let attempt =
        |path: &CStr, argv: &[CString]| posix_spawn(path, &actions, &attributes, argv, launch.env);
    let mut answer = SpawnErrno::ENOENT;
    for candidate in candidates(&launch.command, launch.path) {
        let tried = match attempt(&candidate, &launch.argv) {
            // A script without a first line that names its interpreter: the shell's, by old custom.
            Err(SpawnErrno::ENOEXEC) => {
                let mut argv = vec![c"sh".to_owned(), candidate];
                argv.extend(launch.argv.iter().skip(1).cloned());
                attempt(c"/bin/sh", &argv)
            }
            tried => tried,
        };
        match tried {
            Ok(pid) => {
                return Pid::from_raw(pid.as_raw())
                    .ok_or_else(|| failed("the program has no number"));
            }
            Err(SpawnErrno::ENOENT | SpawnErrno::ENOTDIR) => {}
            // A file that may not be executed hides no other further on, but is the better answer.
            Err(SpawnErrno::EACCES) => answer = SpawnErrno::EACCES,
            Err(errno) => return Err(no_exec(errno as i32)),
        }
    }
    Err(no_exec(answer as i32))
}

/// As a shell looks a command up: with a slash as it is, else in each directory in turn.
fn candidates(command: &[u8], path: &[&str]) -> Vec<CString> {
    if command.is_empty() {
        return Vec::new();
    }
    if command.contains(&b'/') {
        return CString::new(command).into_iter().collect();
    }
    path.iter()
        .filter_map(|directory| CString::new([directory.as_bytes(), b"/", command].concat()).ok())
        .collect()
}

/// Descriptors that a program would inherit: none of ours, but those that were left open when
/// Glovebox itself was started.
fn inheritable() -> Result<Vec<RawFd>> {
    let unknown =
        |error: std::io::Error| failed("cannot list the open descriptors").caused_by(error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fdinfo").map_err(unknown)? {
        let name = entry.map_err(unknown)?.file_name();
        let Some(fd) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        // One that was closed meanwhile is no longer there to be read.
        let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else {
            continue;
        };
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        // What cannot be understood is closed.
        if fd > 2 && flags.is_none_or(|flags| flags & CLOSE_ON_EXEC == 0) {
            found.push(fd);
        }
    }
    Ok(found)
}

fn bounds(limits: &Limits, largest_file: Option<u64>) -> Vec<(Resource, u64)> {
    let disk = limits.disk_bytes.get();
    vec![
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files.get()),
        (
            Resource::Fsize,
            largest_file.map_or(disk, |most| most.min(disk)),
        ),
        // A second later than the watch, which knows why: for a process that it cannot see.
        (Resource::Cpu, limits.cpu_ms.get().div_ceil(1000) + 1),
    ]
}

fn limit(pid: Pid, bounds: &[(Resource, u64)]) -> Result<()> {
    for &(resource, most) in bounds {
        // Where the host's own is lower it stays: raising would need privilege.
        let host = rustix::process::getrlimit(resource).maximum;
        let most = host.map_or(most, |host| host.min(most));
        let rule = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        match prlimit(Some(pid), resource, rule) {
            // It has ended already, or is another user's now, who may have set its own.
            Ok(_) | Err(Errno::SRCH | Errno::PERM) => {}
            Err(errno) => {
                return Err(failed("cannot set the limits of the program").caused_by(errno));
            }
        }
    }
    Ok(())
}

pub(super) fn failed(message: &str) -> Error {
    Error::new(Code::SetupFailed, Stage::Run, message.to_owned())
}
