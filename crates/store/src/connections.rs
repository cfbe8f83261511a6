//! Connections that nobody uses right now. One is enough for a command; a server's readers get
//! their own, so that they never wait for a writer.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};

use crate::failure::{Doing, locked};
use crate::sql::{Access, Server, Session, Shape, SqlResult, Writing, connect_sqlite, empty_log};

const IDLE_MOST: usize = 8;
/// A PostgreSQL server has a hundred connections by default, for everybody.
const SHARED_MOST: usize = 16;

#[derive(Debug)]
pub(crate) enum Source {
    File(PathBuf, Writing),
    Server(Box<Server>),
}

pub(crate) struct Pool {
    source: Source,
    patience: Duration,
    /// Connections that nobody uses, and that stay open.
    idle_most: AtomicUsize,
    state: Mutex<State>,
    given: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Session>,
    taken: usize,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A session while it is used. It goes back when it is fit for another use.
pub(crate) struct Taken<'p> {
    pool: &'p Pool,
    session: Option<Session>,
    fit: bool,
}

impl Deref for Taken<'_> {
    type Target = Session;

    #[allow(
        clippy::expect_used,
        reason = "it is there from the making to the drop"
    )]
    fn deref(&self) -> &Session {
        self.session
            .as_ref()
            .expect("a session until it is dropped")
    }
}

impl Taken<'_> {
    /// Says that no transaction is open on it.
    pub(crate) fn give_back(mut self) {
        self.fit = !self.is_broken();
    }

    /// Undoes what was begun; the session is kept when that works.
    pub(crate) fn undo(self) {
        if self.rollback().is_ok() {
            self.give_back();
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let session = self.session.take().filter(|_| self.fit);
        let mut state = locked(&self.pool.state);
        state.taken -= 1;
        let spare = match session {
            Some(session) if state.idle.len() < self.pool.idle_most.load(Ordering::Relaxed) => {
                state.idle.push(session);
                None
            }
            other => other,
        };
        drop(state);
        self.pool.given.notify_one();
        drop(spare);
    }
}

impl Pool {
    pub(crate) fn new(source: Source, patience: Duration) -> Self {
        Self {
            source,
            patience,
            idle_most: AtomicUsize::new(IDLE_MOST),
            state: Mutex::default(),
            given: Condvar::new(),
        }
    }

    pub(crate) fn keep_one(&self) {
        self.idle_most.store(1, Ordering::Relaxed);
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// A session with a new transaction. One that was cut while nobody used it is replaced.
    pub(crate) fn begin(&self, access: Access) -> Result<Taken<'_>> {
        self.with_living(
            |session| session.begin(access),
            match access {
                Access::Read => "read the database",
                Access::Write => "write to the database",
            },
        )
        .map(|(taken, ())| taken)
    }

    /// For a single statement that changes nothing, or on PostgreSQL may be repeated.
    pub(crate) fn once<T>(
        &self,
        what: &str,
        mut work: impl FnMut(&Session) -> SqlResult<T>,
    ) -> Result<T> {
        let (taken, result) = self.with_living(|session| session.once(&mut work), what)?;
        taken.give_back();
        Ok(result)
    }

    /// For the preparation of the database; what fails here is not kept.
    pub(crate) fn with_session<T>(&self, work: impl FnOnce(&Session) -> Result<T>) -> Result<T> {
        let (taken, _) = self.take()?;
        let result = work(&taken)?;
        taken.give_back();
        Ok(result)
    }

    fn with_living<T>(
        &self,
        mut work: impl FnMut(&Session) -> SqlResult<T>,
        what: &str,
    ) -> Result<(Taken<'_>, T)> {
        loop {
            let (taken, fresh) = self.take()?;
            match work(&taken) {
                Ok(result) => return Ok((taken, result)),
                Err(_) if taken.is_broken() && !fresh => {}
                Err(error) => {
                    // A begin of several statements may have failed after the first.
                    if taken.is_shared() && !taken.is_broken() {
                        taken.undo();
                    }
                    return Err(error).doing(what);
                }
            }
        }
    }

    /// And whether it was opened just now.
    fn take(&self) -> Result<(Taken<'_>, bool)> {
        let most = match self.source {
            Source::File(..) => usize::MAX,
            Source::Server(_) => SHARED_MOST,
        };
        let since = Instant::now();
        let mut state = locked(&self.state);
        while state.idle.is_empty() && state.taken >= most {
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Error::new(
                    Code::Busy,
                    Stage::Open,
                    "every connection to the database is in use",
                )
                .hint("try again in a moment"));
            }
            let waited = self.given.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let idle = state.idle.pop();
        state.taken += 1;
        drop(state);
        let fresh = idle.is_none();
        let mut taken = Taken {
            pool: self,
            session: idle,
            fit: false,
        };
        if fresh {
            taken.session = Some(self.connect()?);
        }
        Ok((taken, fresh))
    }

    fn connect(&self) -> Result<Session> {
        match &self.source {
            Source::File(path, writing) => connect_sqlite(path, self.patience, *writing)
                .map(|connection| Session::Sqlite(connection, Shape::default()))
                .doing(&format!("open the database `{}`", path.display())),
            Source::Server(server) => server.connect(),
        }
    }
}

impl Drop for Pool {
    /// PostgreSQL's client waits while it says goodbye, which a thread of an async runtime must
    /// not do; and the store may be dropped on one.
    fn drop(&mut self) {
        let idle = std::mem::take(&mut locked(&self.state).idle);
        if let Source::File(_, writing) = self.source {
            if let (Writing::Much, Some(Session::Sqlite(connection, _))) = (writing, idle.first()) {
                let _ = empty_log(connection);
            }
            return;
        }
        let _ = thread::spawn(move || drop(idle)).join();
    }
}
