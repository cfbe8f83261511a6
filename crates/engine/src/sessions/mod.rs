//! Sessions: execs whose program is talked to while it runs. Each has a process of its own, its keeper,
//! which walks the whole path for it and outlives this one. What is asked of a session is asked there.

mod directory;
mod io;
mod keeper;
mod keys;
mod links;
mod protocol;
mod ring;
mod screen;
mod view;

use std::os::unix::net::UnixStream;
use std::time::Duration;

use glovebox_api::{
    SessionInfo, SessionInput, SessionList, SessionOutput, SessionScreen, SessionSignal,
};
use glovebox_model::{
    ApprovalMode, Code, Error, Exec, Result, SessionTerms, Stage, Status, TerminalSize,
};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Signal, kill_process};

pub(crate) use io::SessionIo;
pub use keeper::keep_session;
pub use links::SessionCommand;
pub(crate) use links::{KeptFor, SessionLimits, Sessions};

use crate::dispatch::{Dispatcher, Submission};
use crate::visibility::{Seen, Viewer};
use directory::Directory;
use protocol::{Answer, Ask, gone};
use view::Sight;

/// How long an answer may take once its wait is over.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which output is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRead {
    /// From these offsets on.
    pub stdout: u64,
    pub stderr: u64,
    /// At most so many bytes of each.
    pub most: usize,
    /// When there is nothing yet: how long to wait for some.
    pub wait: Duration,
}

/// What is asked of a session, beside its output.
#[derive(Debug)]
pub enum SessionOrder {
    Show,
    /// Answered when its program has ended or waits for input, and after so long at the latest.
    Settle(Duration),
    Type {
        input: SessionInput,
        /// What names this request, also to the keeper: asked again, it types nothing.
        once: Option<String>,
    },
    Resize(TerminalSize),
    /// Of a pipe its end; on a terminal what the key for it types.
    CloseInput,
    Signal(SessionSignal),
    /// Ends everything in it at once, and is answered when that is done.
    Kill,
}

/// A question that a session's keeper has been asked. It answers in its time: when this can be read.
#[derive(Debug)]
pub struct PendingAnswer {
    /// None: there is no keeper any more.
    socket: Option<UnixStream>,
    /// What only a program that runs can be told.
    needs_program: bool,
    /// May be done twice, or is done once however often it is asked.
    repeatable: bool,
    /// The session is to end: also when its keeper does not answer.
    ends: bool,
}

impl PendingAnswer {
    /// What can be read once the answer is there, without blocking. None: the answer needs no waiting.
    pub fn watch(&self) -> std::io::Result<Option<UnixStream>> {
        let Some(socket) = &self.socket else {
            return Ok(None);
        };
        let watched = socket.try_clone()?;
        watched.set_nonblocking(true)?;
        Ok(Some(watched))
    }

    /// None: there is no keeper any more.
    fn read(&mut self) -> Result<Option<(Answer, Vec<u8>)>> {
        let Some(mut socket) = self.socket.take() else {
            return Ok(None);
        };
        // It may have been watched.
        socket
            .set_nonblocking(false)
            .map_err(|error| gone().caused_by(error))?;
        match protocol::answer(&mut socket, PATIENCE, self.repeatable) {
            Err(error) if error.code == Code::NotFound => Ok(None),
            // One that is stopped. Everything of the session ends with it.
            Err(error) if self.ends && error.code == Code::Busy && is_silent(&socket) => {
                let keeper = socket_peercred(&socket).ok().map(|it| it.pid);
                match keeper.map(|it| kill_process(it, Signal::KILL)) {
                    Some(Ok(())) => Ok(None),
                    Some(Err(_)) | None => Err(error),
                }
            }
            answered => answered.map(Some),
        }
    }
}

impl Dispatcher {
    /// Takes a session on; whether the same request was here before. A refusal by policy is an error
    /// that names its exec.
    pub fn start_session(&self, submission: Submission) -> Result<(Seen<Exec>, bool)> {
        // What was taken on before takes no place.
        if let Some(key) = &submission.key
            && let Some(id) = self.store()?.replay(&submission.call.ids.space_id, key)?
        {
            let was_here = self.replayed(&submission.call, &id)?;
            return Ok((was_here.exec, was_here.replayed));
        }
        let (settings, _) = self.settings();
        let limits = SessionLimits {
            all: settings.max_sessions,
            of_space: settings.max_sessions_per_space,
        };
        let state = self.state();
        let (exec, replayed) = self.sessions.start(state.path(), submission, limits)?;
        // Another process has opened its secrets; they are looked for in answers of this one.
        self.masks_of(&exec)?;
        if exec.status != Status::PolicyDenied {
            return Ok((Seen::own(exec), replayed));
        }
        let unnamed = || {
            let message = "policy does not allow it";
            Error::new(Code::PolicyDenied, Stage::Resolve, message)
        };
        let error = exec.error.clone().unwrap_or_else(unnamed);
        Err(error.of_exec(exec.exec_id))
    }

    /// Those on this machine, the newest first.
    pub fn sessions(&self, eyes: &Viewer) -> Result<SessionList> {
        let mut sessions = Vec::new();
        for id in Directory::all(self.state().path())? {
            match self.find(eyes, id.as_str()) {
                Ok(exec) => {
                    if exec.status.is_final() {
                        sessions.push(self.session_on_record(&exec)?);
                        continue;
                    }
                    let asked = self.order_session(eyes, &exec, SessionOrder::Show);
                    let shown = asked.and_then(|asked| self.session(&exec, asked));
                    // One whose keeper does not answer hides none of the others.
                    sessions.push(shown.or_else(|_| self.session_on_record(&exec))?);
                }
                // Another agent's, or of another space.
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        // Those that have not started came last.
        sessions.sort_by_key(|it| std::cmp::Reverse(it.started_at.unwrap_or(Timestamp::MAX)));
        Ok(SessionList { sessions })
    }

    /// Asks for something. An exec that is no session is not found. `eyes` is who asks: where policy
    /// asks people about everything, no agent types.
    pub fn order_session(
        &self,
        eyes: &Viewer,
        exec: &Seen<Exec>,
        order: SessionOrder,
    ) -> Result<PendingAnswer> {
        session_terms(exec)?;
        if !matches!(order, SessionOrder::Show | SessionOrder::Settle(_)) {
            may_change(eyes, exec)?;
        }
        if matches!(order, SessionOrder::Type { .. } | SessionOrder::CloseInput) {
            may_type(eyes, exec)?;
        }
        let needs_program = !matches!(
            order,
            SessionOrder::Show | SessionOrder::Settle(_) | SessionOrder::Kill
        );
        let ask = match order {
            SessionOrder::Show => Ask::State,
            SessionOrder::Settle(patience) => Ask::Settle {
                patience_ms: millis(patience),
            },
            SessionOrder::Type { input, once } => Ask::Type { input, once },
            SessionOrder::Resize(size) => Ask::Resize(size),
            SessionOrder::CloseInput => Ask::CloseInput,
            SessionOrder::Signal(signal) => Ask::Signal(signal_number(&signal.signal)?),
            SessionOrder::Kill => Ask::Kill,
        };
        let kills = matches!(ask, Ask::Kill);
        let repeatable = !matches!(ask, Ask::Type { once: None, .. });
        let socket = self.put_to_keeper(exec, ask)?;
        if kills && socket.is_none() {
            // It waits, and its keeper died meanwhile.
            self.cancel(exec.clone())?;
        }
        Ok(PendingAnswer {
            socket,
            needs_program,
            repeatable,
            ends: kills,
        })
    }

    /// The session after what was asked of it. One that has ended takes no more orders, and says how it
    /// ended; to kill it again changes nothing.
    pub fn session(&self, exec: &Seen<Exec>, mut asked: PendingAnswer) -> Result<SessionInfo> {
        let terms = session_terms(exec)?;
        match asked.read()? {
            Some((Answer::State(now), _)) => {
                Ok(Sight::of_now(self.latest(exec)?, terms, now).info())
            }
            Some(_) => Err(gone()),
            None => {
                let sight = self.sight_without_keeper(exec, terms)?;
                match asked.needs_program {
                    true => Err(sight.has_ended()),
                    false => Ok(sight.info()),
                }
            }
        }
    }

    /// Asks for output.
    pub fn read_session(&self, exec: &Seen<Exec>, read: SessionRead) -> Result<PendingAnswer> {
        session_terms(exec)?;
        let ask = Ask::Read {
            stdout: read.stdout,
            stderr: read.stderr,
            most: read.most,
            wait_ms: millis(read.wait),
        };
        Ok(PendingAnswer {
            socket: self.put_to_keeper(exec, ask)?,
            needs_program: false,
            repeatable: true,
            ends: false,
        })
    }

    pub fn session_output(
        &self,
        exec: &Seen<Exec>,
        read: SessionRead,
        mut asked: PendingAnswer,
    ) -> Result<SessionOutput> {
        let terms = session_terms(exec)?;
        match asked.read()? {
            Some((
                Answer::Output {
                    now,
                    stdout,
                    stderr,
                },
                bytes,
            )) => {
                let record = self.latest(exec)?;
                let (out, err) = bytes.split_at(stdout.length.min(bytes.len()));
                let found = [(stdout.offset, out.to_vec()), (stderr.offset, err.to_vec())];
                self.output_of(Sight::of_now(record, terms, now), read, found)
            }
            Some(_) => Err(gone()),
            None => {
                let sight = self.sight_without_keeper(exec, terms)?;
                let found = sight.kept_output(read);
                self.output_of(sight, read, found)
            }
        }
    }

    /// Asks for the screen.
    pub fn read_screen(&self, exec: &Seen<Exec>) -> Result<PendingAnswer> {
        session_terms(exec)?;
        Ok(PendingAnswer {
            socket: self.put_to_keeper(exec, Ask::Screen)?,
            needs_program: false,
            repeatable: true,
            ends: false,
        })
    }

    pub fn session_screen(
        &self,
        exec: &Seen<Exec>,
        mut asked: PendingAnswer,
    ) -> Result<SessionScreen> {
        let terms = session_terms(exec)?;
        match asked.read()? {
            Some((Answer::Screen(screen), _)) => Ok(*screen),
            Some(_) => Err(gone()),
            None => self.sight_without_keeper(exec, terms)?.screen(),
        }
    }

    /// Whether one that has ended is off the list: it was removed, or is not kept any more.
    pub fn is_forgotten(&self, exec: &Exec) -> Result<bool> {
        let is_there = Directory::find(self.state().path(), &exec.exec_id)?.is_some();
        Ok(exec.session.is_some() && exec.status.is_final() && !is_there)
    }

    /// Forgets what a session put out; its record stays. One that runs is not removed.
    pub fn remove_session(&self, eyes: &Viewer, exec: &Seen<Exec>) -> Result<()> {
        may_change(eyes, exec)?;
        let info = self.session(exec, self.order_session(eyes, exec, SessionOrder::Show)?)?;
        if !info.state.is_final() {
            let id = &exec.exec_id;
            let message = format!("the session `{id}` has not ended");
            return Err(Error::new(Code::Conflict, Stage::Run, message)
                .hint(format!("end it first: `glovebox session kill {id}`")));
        }
        match Directory::find(self.state().path(), &exec.exec_id)? {
            Some(directory) => directory.remove(),
            None => Ok(()),
        }
    }

    fn latest(&self, exec: &Exec) -> Result<Exec> {
        self.store()?.get(&exec.ids.space_id, &exec.exec_id)
    }

    /// None: there is no keeper any more.
    fn put_to_keeper(&self, exec: &Exec, ask: Ask) -> Result<Option<UnixStream>> {
        let directory = Directory::find(self.state().path(), &exec.exec_id)?;
        let socket = directory.map(|it| it.connect()).transpose()?;
        let Some(mut socket) = socket.flatten() else {
            return Ok(None);
        };
        // One that ends just now is seen to have ended when its answer is read.
        let _ = protocol::put(&mut socket, ask);
        Ok(Some(socket))
    }
}

/// Whether nothing at all came.
fn is_silent(socket: &UnixStream) -> bool {
    let mut watched = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut watched, Some(&Timespec::default())), Ok(0))
}

fn millis(long: Duration) -> u64 {
    u64::try_from(long.as_millis()).unwrap_or(u64::MAX)
}

/// How a session is talked to. An exec that is none is not found.
pub fn session_terms(exec: &Exec) -> Result<SessionTerms> {
    exec.session.ok_or_else(|| {
        let id = &exec.exec_id;
        let message = format!("the exec `{id}` is no session: it was not started as one");
        Error::new(Code::NotFound, Stage::Parse, message)
            .hint(format!("what it put out: `glovebox logs {id}`"))
    })
}

/// What `[agents] see` shows an agent is not its to talk to: the session runs under the policy, with the
/// secrets and on the record of who started it.
fn may_change(eyes: &Viewer, exec: &Exec) -> Result<()> {
    if eyes.owns(&exec.ids) {
        return Ok(());
    }
    let id = &exec.exec_id;
    let message = format!("the session `{id}` is another agent's: it can be read, and not changed");
    Err(Error::new(Code::Forbidden, Stage::Run, message)
        .hint("start a session of your own, or ask people"))
}

/// What is typed into a shell is run by it, and nothing of it was approved.
fn may_type(eyes: &Viewer, exec: &Exec) -> Result<()> {
    let profile = exec.policy_snapshot.as_ref();
    let asks = profile.is_some_and(|it| it.approval == ApprovalMode::Manual);
    if !asks || eyes.is_person() {
        return Ok(());
    }
    let message = "policy asks people about everything (`approval = \"manual\"`), so no agent types into a session";
    Err(Error::new(Code::PolicyDenied, Stage::Run, message)
        .hint("run each command as an exec of its own; people may type"))
}

fn signal_number(name: &str) -> Result<i32> {
    let unknown = || {
        let message = format!("there is no signal `{}`", name.escape_default());
        Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("`INT`, `TERM`, `HUP`, `QUIT`, `USR1`, `USR2`, `CONT`, `STOP`, `TSTP`, `WINCH`, `KILL` or a number from 1 to 64")
    };
    if name.starts_with(|first: char| matches!(first, '1'..='9')) {
        let number = name.parse().ok();
        return number
            .filter(|it| (1..=64).contains(it))
            .ok_or_else(unknown);
    }
    let named = match name.strip_prefix("SIG").unwrap_or(name) {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "ALRM" => Signal::ALARM,
        "TERM" => Signal::TERM,
        "CHLD" => Signal::CHILD,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TSTP" => Signal::TSTP,
        "TTIN" => Signal::TTIN,
        "TTOU" => Signal::TTOU,
        "WINCH" => Signal::WINCH,
        _ => return Err(unknown()),
    };
    Ok(named.as_raw())
}
