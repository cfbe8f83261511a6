//! A keeper beside each program that runs in a container: an engine lets it run on whatever becomes
//! of us. The keeper ends it when its time or the server's lease is over and when this process is
//! gone, by the engine's own command.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use glovebox_cage::{Event, Guard, Moment, Over};
use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};

use super::cli::Cli;
use super::engine::Engine;
use crate::keepers::Keeper;

/// From the end of its time to when the keeper ends it, if we have not: an engine's command takes a
/// moment, and all of it should be over within a second.
pub(super) const LATE: Duration = Duration::from_millis(650);
/// A container that is only one exec's is looked for so long; another may use one that is kept.
const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(5);
/// By then the guard of a kept one has given up, with two commands that hang; and how often that is
/// looked at.
const DONE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Guarded(Option<Keeper>);

impl Guarded {
    /// Of a container that is removed with its program.
    pub(super) fn once(engine: &Engine, cli: &Cli, name: &str) -> Result<Option<Self>> {
        let clear = ["rm", "--force", "--volumes", name];
        Self::set(engine, cli, [&["kill", name], &clear], LONG, None)
    }

    /// Of one that is kept: it is stopped, and its files stay. By its id, since another may have its
    /// name soon; and nothing else is run in it before the guard is done.
    pub(super) fn kept(engine: &Engine, cli: &Cli, name: &str, id: &str) -> Result<Option<Self>> {
        let kill: &[&str] = &["kill", id];
        let lock = engine.guard_lock(name);
        Self::set(engine, cli, [kill, kill], SHORT, Some(lock.as_os_str()))
    }

    /// Waits until nothing ends a kept container any more for an exec of a process that is gone.
    pub(super) fn wait_for_none(engine: &Engine, name: &str) -> Result<()> {
        let Ok(lock) = File::open(engine.guard_lock(name)) else {
            return Ok(());
        };
        let until = Instant::now() + DONE;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= until {
                let message =
                    format!("the container `{name}` is still being ended for an earlier exec");
                return Err(Error::new(Code::BackendUnavailable, Stage::Open, message)
                    .hint("see that the engine answers, and try again"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// None where there are no keepers at all.
    fn set(
        engine: &Engine,
        cli: &Cli,
        [end, clear]: [&[&str]; 2],
        patience: Duration,
        lock: Option<&OsStr>,
    ) -> Result<Option<Self>> {
        let Some(keeper) = engine.keepers.take()? else {
            return Ok(None);
        };
        let command = |args: &[&str]| -> Result<Vec<CString>> {
            let program = [cli.path.as_os_str()].into_iter();
            program
                .chain(args.iter().map(OsStr::new))
                .map(word)
                .collect()
        };
        let pair = |(name, value): &(OsString, OsString)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            word(&pair)
        };
        let guard = Guard {
            end: command(end)?,
            clear: command(clear)?,
            patience,
            lock: lock.map(word).transpose()?,
            env: cli.environment().iter().map(pair).collect::<Result<_>>()?,
        };
        let handle = keeper.handle();
        handle.guard(guard).map_err(|errno| unguarded(&errno))?;
        // Nothing is started that is not guarded.
        match handle.next_control().map_err(|errno| unguarded(&errno))? {
            Event::Guards => Ok(Some(Self(Some(keeper)))),
            Event::Failed(failure) => Err(unguarded(&failure)),
            other => Err(unguarded(&format!("unexpected {other:?}"))),
        }
    }

    /// It may go on for so long from now; a keeper that is gone is seen when it is asked.
    pub(super) fn allow(&self, long: Duration) {
        if let Some(keeper) = &self.0 {
            let until = Moment::now().after(long.saturating_add(LATE));
            let _ = keeper.handle().until(until);
        }
    }

    /// Why and when the keeper ended it, if it did.
    pub(super) fn over(&self) -> Option<(Over, Moment)> {
        let handle = self.0.as_ref()?.handle();
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut watched = [PollFd::from_borrowed_fd(handle.control_fd(), PollFlags::IN)];
        if !matches!(poll(&mut watched, Some(&now)), Ok(1..)) {
            return None;
        }
        match handle.next_control() {
            Ok(Event::Ended { over, at, .. }) => over.map(|over| (over, at)),
            _ => None,
        }
    }

    /// The engine says that it has ended: nothing is left to guard.
    pub(super) fn release(mut self) {
        match self.0.take() {
            Some(Keeper::Spawned(mut handle)) => {
                let _ = handle.release();
                let _ = handle.wait_keeper();
            }
            Some(Keeper::Seated(native)) => drop(native.keeper().release()),
            None => {}
        }
    }
}

/// What may still run is the keeper's to end, and this process does not wait for that.
impl Drop for Guarded {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Keeper::Spawned(handle)) => handle.leave(),
            // It sees the end of this process.
            Some(Keeper::Seated(native)) => std::mem::forget(native),
            None => {}
        }
    }
}

fn word(text: impl AsRef<OsStr>) -> Result<CString> {
    CString::new(text.as_ref().as_bytes()).map_err(|error| unguarded(&error))
}

fn unguarded(cause: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::SetupFailed,
        Stage::Run,
        "nothing would end the container in time, so nothing was started in it",
    )
    .caused_by(cause)
    .hint("this host is short of something: try again, or lower `max_concurrent_execs`")
}
