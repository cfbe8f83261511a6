//! Sessions as a server or a command has them: how their keepers are started, and which of them know that
//! a server is there.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use glovebox_model::{Code, Error, Exec, ExecId, Result, Stage};
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::protocol::{self, Answer, Ask, Frame, Start, Started};
use crate::dispatch::Submission;
use crate::patience::Wait;
use crate::visibility::Viewer;

/// How long a keeper may take to take its exec on.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer may take that needs nothing of the session.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// How long sessions go on while their server is away.
const ORPHAN_GRACE: Duration = Duration::from_secs(600);
/// Of one agent's host, which does not come back.
const HOST_GRACE: Duration = Duration::from_secs(10);
/// Sessions that have ended, of which the output is kept.
const KEPT_MOST: usize = 1000;

/// How a session's keeper is started: this program, under this environment and no other.
#[derive(Debug, Clone)]
pub struct SessionCommand {
    pub program: PathBuf,
    /// What it is called: by this it knows what it is to be.
    pub name: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// What seals secrets, where it was given to this process. It is in no environment.
    pub secrets_key: fn() -> Result<Option<OsString>>,
}

/// For whom sessions are kept, and how long they go on alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptFor {
    /// Also those of an earlier server of the same state directory.
    Server,
    /// One agent's host: they end with it.
    Host,
    /// A command: they live until their own time is over.
    Command,
}

/// The most sessions at once, for which each is a process with a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionLimits {
    pub(crate) all: u32,
    /// None: half of all.
    pub(crate) of_space: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    kept_for: KeptFor,
    command: OnceLock<SessionCommand>,
    /// Keepers that this process started, until they are reaped.
    started: Mutex<Vec<Child>>,
    held: Mutex<Held>,
}

/// The sessions of this process, as far as it knows.
#[derive(Debug, Default)]
struct Held {
    /// Whose sessions are being started.
    starting: Vec<Viewer>,
    attended: HashMap<ExecId, Link>,
    /// What this process has started: of one agent's host nothing else is its own.
    own: HashSet<ExecId>,
}

#[derive(Debug)]
struct Link {
    of: Viewer,
    /// Open as long as this process is there.
    socket: UnixStream,
}

impl Held {
    fn count(&self, so: impl Fn(&Viewer) -> bool) -> u32 {
        let attended = self.attended.values().map(|it| &it.of);
        let count = attended.chain(&self.starting).filter(|it| so(it)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// No space can keep the others from starting one, and no agent the others of its space.
    fn reserve(&mut self, eyes: &Viewer, limits: SessionLimits) -> Result<()> {
        self.forget_ended();
        let share = limits.of_space.unwrap_or((limits.all / 2).max(1));
        if self.count(|_| true) >= limits.all {
            return Err(too_many(limits.all, "run already"));
        }
        if self.count(|it| it.space() == eyes.space()) >= share {
            return Err(too_many(share, "of this space run already"));
        }
        let of_agent = (share / 2).max(1);
        if eyes.agent().is_some() && self.count(|it| it.is_same_agent(eyes)) >= of_agent {
            return Err(too_many(of_agent, "of this agent run already"));
        }
        self.starting.push(eyes.clone());
        Ok(())
    }

    fn forget_ended(&mut self) {
        self.attended.retain(|_, link| {
            let read = link.socket.read(&mut [0]);
            matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        });
    }

    fn give_back(&mut self, eyes: &Viewer) {
        if let Some(at) = self.starting.iter().position(|it| it == eyes) {
            self.starting.swap_remove(at);
        }
    }
}

impl Sessions {
    pub(crate) fn new(kept_for: KeptFor) -> Self {
        Self {
            kept_for,
            command: OnceLock::new(),
            started: Mutex::default(),
            held: Mutex::default(),
        }
    }

    pub(crate) fn start_with(&self, command: SessionCommand) {
        let _ = self.command.set(command);
    }

    fn grace(&self) -> Option<Duration> {
        match self.kept_for {
            KeptFor::Server => Some(Wait::Orphans.within(ORPHAN_GRACE)),
            KeptFor::Host => Some(HOST_GRACE),
            KeptFor::Command => None,
        }
    }

    /// The exec as its keeper took it on, and whether the same request was here before.
    pub(super) fn start(
        &self,
        state: &Path,
        submission: Submission,
        limits: SessionLimits,
    ) -> Result<(Exec, bool)> {
        let command = self.command.get().ok_or_else(|| {
            Error::new(
                Code::BackendUnavailable,
                Stage::Admit,
                "this process starts no sessions",
            )
            .hint("start them with `glovebox session start`, or at a server")
        })?;
        self.reap();
        let eyes = submission.eyes.clone();
        locked(&self.held).reserve(&eyes, limits)?;
        let started = self.start_keeper(command, submission);
        if let Ok((exec, _)) = &started
            && self.kept_for != KeptFor::Command
        {
            locked(&self.held).own.insert(exec.exec_id.clone());
            self.attend(state, &exec.exec_id);
        }
        locked(&self.held).give_back(&eyes);
        started
    }

    fn start_keeper(
        &self,
        command: &SessionCommand,
        submission: Submission,
    ) -> Result<(Exec, bool)> {
        let key = (command.secrets_key)()?.map(OsString::into_encoded_bytes);
        let (mut ours, theirs) = UnixStream::pair().map_err(unstarted)?;
        let mut keeper = Command::new(&command.program);
        let mut child = keeper
            .env_clear()
            .envs(command.env.iter().map(|(key, value)| (key, value)))
            .arg0(&command.name)
            .args(&command.args)
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(unstarted)?;
        // It holds the other end open, and would hide that the keeper has ended.
        drop(keeper);
        let start = Start::of(submission, key, (self.kept_for, self.grace()));
        let answered = ours
            .set_read_timeout(Some(START_PATIENCE))
            .and_then(|()| ours.set_write_timeout(Some(START_PATIENCE)))
            .and_then(|()| protocol::send(&mut ours, &start, &[]))
            .and_then(|()| protocol::receive::<Started>(&mut ours));
        let failed = match answered {
            Ok(Frame::Whole(Started::TakenOn { exec, replayed }, _)) => {
                locked(&self.started).push(child);
                return Ok((*exec, replayed));
            }
            Ok(Frame::Whole(Started::Refused(error), _)) => {
                locked(&self.started).push(child);
                return Err(*error);
            }
            Ok(Frame::Foreign(version, _)) => protocol::another_version(version),
            Ok(Frame::End) => unstarted("it ended at once"),
            Err(error) => unstarted(error),
        };
        // What it would still begin would be known to no client.
        let _ = child.kill();
        let _ = child.wait();
        Err(failed)
    }

    /// Tells a keeper that a process is there. One that is gone, or is kept for others, needs none.
    fn attend(&self, state: &Path, exec: &ExecId) {
        let Ok(Some(directory)) = Directory::find(state, exec) else {
            return;
        };
        let Ok(Some(mut socket)) = directory.connect() else {
            return;
        };
        let answer = protocol::ask(&mut socket, Ask::Attend(self.kept_for), ANSWER_PATIENCE);
        if let Ok((Answer::Attended { kept_for, of }, _)) = answer
            && kept_for == self.kept_for
            && socket.set_nonblocking(true).is_ok()
        {
            let link = Link { of, socket };
            locked(&self.held).attended.insert(exec.clone(), link);
        }
    }

    /// Now and then: keepers that have ended are reaped, and those that do not know that this process
    /// is there are told. One that hangs holds up the others.
    pub(crate) fn look_after(&self, state: &Path) {
        self.reap();
        let mut held = locked(&self.held);
        held.forget_ended();
        let mut all = match self.kept_for {
            KeptFor::Server => Directory::all(state).unwrap_or_default(),
            KeptFor::Host => held.own.iter().cloned().collect(),
            KeptFor::Command => return,
        };
        all.retain(|exec| !held.attended.contains_key(exec));
        drop(held);
        for exec in all {
            self.attend(state, &exec);
        }
    }

    /// Ends those that this process started: no other one will come for them.
    pub(crate) fn end_all(&self, state: &Path) {
        let all: Vec<ExecId> = locked(&self.held).own.iter().cloned().collect();
        for exec in all {
            let socket = Directory::find(state, &exec).ok().flatten();
            if let Some(mut socket) = socket.and_then(|it| it.connect().ok().flatten()) {
                // One that does not answer ends by itself when this process is gone.
                let _ = protocol::ask(&mut socket, Ask::Kill, ANSWER_PATIENCE);
            }
        }
    }

    /// What sessions left that ended before this moment, and of a large number the oldest.
    pub(crate) fn forget(state: &Path, before: SystemTime) -> Result<()> {
        let mut ended = Vec::new();
        for exec in Directory::all(state)? {
            // What another process removes meanwhile is forgotten.
            if let Ok(Some(directory)) = Directory::find(state, &exec)
                && matches!(directory.connect(), Ok(None))
                && let Ok(changed) = directory.changed()
            {
                ended.push((changed, directory));
            }
        }
        ended.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        for (at, (changed, directory)) in ended.into_iter().enumerate() {
            if (changed < before || at >= KEPT_MOST)
                && let Err(error) = directory.remove()
            {
                tracing::warn!(%error, "what a session left is still there");
            }
        }
        Ok(())
    }

    fn reap(&self) {
        locked(&self.started).retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

fn too_many(most: u32, what: &str) -> Error {
    let message = format!("{most} sessions {what}");
    let mut error = Error::new(Code::RateLimited, Stage::Admit, message);
    error.retry.allowed = true;
    error.hint("end those that are not needed: `glovebox session ls`, `glovebox session kill ID`")
}

fn unstarted(why: impl std::fmt::Display) -> Error {
    let mut error = Error::new(
        Code::BackendUnavailable,
        Stage::Admit,
        "the process that would keep the session cannot be started",
    )
    .caused_by(why);
    error.retry.allowed = true;
    error.hint("this host may be short of memory or processes: try again")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
