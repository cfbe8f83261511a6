//! The open store: reads on any connection, writes through the group commit.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use jiff::Timestamp;

use crate::connections::{Pool, Source};
use crate::failure::{Doing, internal, locked, tampered};
use crate::group::Group;
use crate::ledger::chain::{Chains, Head};
use crate::ledger::kept_head::KeptHead;
use crate::ledger::key::LedgerKey;
use crate::mask::Mask;
use crate::sql::{Access, Server, Session, SqlError, SqlResult, Writing, values};
use crate::state_dir::StateDir;
use crate::{schema, shared_schema};

/// How long a call waits for another process before it gives up with `busy`.
pub const PATIENCE: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce(&mut Chains<'_>) -> Result<()> + Send>;

/// The durable state of one state directory, or of the servers that share a database. Any number
/// of processes may have it open.
pub struct Store {
    pool: Pool,
    group: Group<Job, Result<()>>,
    key_path: PathBuf,
    /// Keys are kept elsewhere, and may be those of more than one ledger.
    keys_apart: bool,
    key: OnceLock<LedgerKey>,
    /// Where the chains ended when this process last looked.
    known: Mutex<HashMap<SpaceId, Head>>,
    owners: PathBuf,
    pub(crate) mask: OnceLock<Box<dyn Mask>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database in the state directory, and makes it or brings it up to date when needed.
    pub fn open(state: &StateDir) -> Result<Self> {
        Self::open_with_patience(state, PATIENCE)
    }

    /// As [`Store::open`], for a process that stays and writes all day long. The operator's chain
    /// must reach what was kept of it.
    pub fn open_to_serve(state: &StateDir, patience: Duration) -> Result<Self> {
        let store = Self::open_file(state, patience, Writing::Much)?;
        store.ensure_reached()?;
        Ok(store)
    }

    /// That the operator's chain has what was kept of it.
    fn ensure_reached(&self) -> Result<()> {
        self.read_with_kept_head(|session, kept| match kept {
            Some(kept) => kept.ensure_reached(session),
            None => Ok(()),
        })
    }

    /// As [`Store::read`], with where the operator's chain was by the file beside its key. That is read
    /// first: the chain only grows.
    pub(crate) fn read_with_kept_head<T>(
        &self,
        read: impl FnOnce(&Session, Option<&KeptHead>) -> Result<T>,
    ) -> Result<T> {
        let kept = KeptHead::read(&self.key_path, self.is_shared())?;
        self.read(|session| {
            let own = match &kept {
                Some(kept) => kept.is_of(session, self.keys_apart)?,
                None => false,
            };
            read(session, kept.as_ref().filter(|_| own))
        })
    }

    /// As [`Store::open`], with another bound on every wait for other processes.
    pub fn open_with_patience(state: &StateDir, patience: Duration) -> Result<Self> {
        Self::open_file(state, patience, Writing::Little)
    }

    fn open_file(state: &StateDir, patience: Duration, writing: Writing) -> Result<Self> {
        // In this order: the process that made the key had the database before it.
        if state.has_begun()? && !state.has_database()? {
            return Err(state.database_is_gone());
        }
        state.touch("glovebox.db")?;
        let store = Self::new(Source::File(state.database(), writing), state, patience);
        store.pool.with_session(|session| {
            schema::bring_up(session, state, patience, || store.key_of(session))
        })?;
        Ok(store)
    }

    /// Opens a PostgreSQL database, and makes its tables or brings them up to date when needed.
    /// Never to be called on a thread of an async runtime, like everything else here.
    pub fn connect(state: &StateDir, url: &str) -> Result<Self> {
        Self::connect_with_patience(state, url, PATIENCE)
    }

    /// As [`Store::connect`], with another bound on every wait for other servers.
    pub fn connect_with_patience(state: &StateDir, url: &str, patience: Duration) -> Result<Self> {
        let server = Server::parse(url, patience)?;
        let store = Self::new(Source::Server(Box::new(server)), state, patience);
        let key = store.pool.with_session(|session| {
            shared_schema::bring_up(session, state)?;
            shared_schema::agree_on_key(session, &store.key_path)
        })?;
        store.key.get_or_init(|| key);
        store.ensure_reached()?;
        Ok(store)
    }

    fn new(source: Source, state: &StateDir, patience: Duration) -> Self {
        Self {
            pool: Pool::new(source, patience),
            group: Group::new(),
            key_path: state.ledger_key(),
            keys_apart: state.keys() != state.path(),
            key: OnceLock::new(),
            mask: OnceLock::new(),
            known: Mutex::new(HashMap::new()),
            owners: state.owners(),
        }
    }

    /// For a process that is one of many on this database: of its connections one stays open.
    pub fn keep_one_connection(&self) {
        self.pool.keep_one();
    }

    /// Whether other machines may use the database too.
    pub fn is_shared(&self) -> bool {
        matches!(self.pool.source(), Source::Server(_))
    }

    /// Writes something, durably: notices a store that can only be read, or is full.
    pub fn ping(&self) -> Result<()> {
        self.write(|chains| {
            chains
                .session()
                .execute(
                    "INSERT INTO pulse (one, at) VALUES (1, ?1)
                     ON CONFLICT (one) DO UPDATE SET at = excluded.at",
                    values![chains.now().as_microsecond()],
                )
                .doing("write to the database")?;
            Ok(())
        })
    }

    /// Where the files of the owners are that use the state directory.
    pub(crate) fn owners(&self) -> &PathBuf {
        &self.owners
    }

    /// One consistent view of the database.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Session) -> Result<T>) -> Result<T> {
        let taken = self.pool.begin(Access::Read)?;
        let result = read(&taken);
        if result.is_ok() {
            taken.commit().doing("read the database")?;
            taken.give_back();
        } else {
            taken.undo();
        }
        result
    }

    /// For a single statement, which is a consistent view by itself. It may be repeated on another
    /// connection.
    pub(crate) fn ask<T>(
        &self,
        what: &str,
        ask: impl FnMut(&Session) -> SqlResult<T>,
    ) -> Result<T> {
        self.pool.once(what, ask)
    }

    /// Durable when it returns `Ok`; without a trace when it returns an error, unless that says
    /// that the outcome is not known. The job shares its transaction with those of other threads,
    /// and fails alone.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Chains<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let job: Job = Box::new(move |chains| {
            *locked(&filled) = Some(job(chains)?);
            Ok(())
        });
        let lost = || internal("the commit did not come to an end");
        self.group
            .submit(job, |jobs| self.commit(jobs))
            .unwrap_or_else(|| Err(lost()))?;
        locked(&slot).take().ok_or_else(lost)
    }

    /// The key that signs the ledgers; made on first use.
    pub(crate) fn key(&self, session: &Session) -> Result<&LedgerKey> {
        match self.key.get() {
            Some(key) => Ok(key),
            None => {
                let key = self.key_of(session)?;
                Ok(self.key.get_or_init(|| key))
            }
        }
    }

    fn key_of(&self, session: &Session) -> Result<LedgerKey> {
        Ok(match self.existing_key()? {
            Some(key) => key,
            None if any_head(session)? => {
                // A head is written after the key was made: look again, in case it was just now.
                self.existing_key()?.ok_or_else(|| {
                    tampered(format!(
                        "the ledger's key `{}` is missing",
                        self.key_path.display()
                    ))
                })?
            }
            None => LedgerKey::load_or_create(&self.key_path)?,
        })
    }

    /// From the file each time, since it may have been exchanged.
    pub(crate) fn existing_key(&self) -> Result<Option<LedgerKey>> {
        if let Some(key) = LedgerKey::load(&self.key_path)? {
            return Ok(Some(key));
        }
        // Whoever began the ledger was killed before the key had its name.
        LedgerKey::confirm(&self.key_path)?;
        LedgerKey::load(&self.key_path)
    }

    fn commit(&self, jobs: Vec<Job>) -> Vec<Result<()>> {
        let count = jobs.len();
        self.try_commit(jobs)
            .unwrap_or_else(|error| vec![Err(error); count])
    }

    /// A connection that died during the commit does not say whether it was done, but another can:
    /// once it holds the writers' lock, the transaction has ended, and its entries are there or not.
    fn resolve(&self, heads: &HashMap<SpaceId, Head>, cause: &SqlError) -> Result<()> {
        let unknown = || {
            lost_in_commit(cause, "whether it was written is not known")
                .hint("ask again with the same idempotency key, or look before you repeat it")
        };
        let (space, head) = heads.iter().next().ok_or_else(unknown)?;
        let taken = self.pool.begin(Access::Write).map_err(|_| unknown())?;
        let written = taken
            .exists(
                "SELECT EXISTS (SELECT 1 FROM ledger_entries
                 WHERE space_id = ?1 AND seq = ?2 AND hash = ?3)",
                values![space.as_str(), head.seq.cast_signed(), &head.hash],
            )
            .map_err(|_| unknown());
        taken.undo();
        if written? {
            return Ok(());
        }
        Err(lost_in_commit(cause, "nothing was written").hint("try again"))
    }

    fn try_commit(&self, jobs: Vec<Job>) -> Result<Vec<Result<()>>> {
        let taken = self.pool.begin(Access::Write)?;
        let mut known = locked(&self.known);
        let worked = self.key(&taken).and_then(|key| {
            let mut chains = Chains::new(&taken, key, &known, Timestamp::now());
            let results = run(jobs, &mut chains)?;
            let passed = chains.passed();
            Ok((results, passed, chains.finish()?))
        });
        match worked {
            Ok((results, passed, heads)) => {
                let committed = taken.commit();
                let broken = taken.is_broken();
                if let (Ok(()), Some(passed)) = (&committed, passed) {
                    // What was committed stands. Without it less is known, until the next.
                    let _ = KeptHead::write(&taken, &self.key_path, self.keys_apart, passed);
                }
                taken.give_back();
                match committed {
                    Err(error) if broken => self.resolve(&heads, &error)?,
                    other => other.doing("commit to the database")?,
                }
                known.extend(heads);
                Ok(results)
            }
            Err(error) => {
                taken.undo();
                Err(error)
            }
        }
    }
}

fn lost_in_commit(cause: &SqlError, then: &str) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!("the connection was lost during the commit: {then}"),
    )
    .caused_by(cause)
}

fn run(jobs: Vec<Job>, chains: &mut Chains<'_>) -> Result<Vec<Result<()>>> {
    let session = chains.session();
    // Alone, a failed job takes the whole transaction with it and needs no savepoint.
    if jobs.len() == 1 {
        return jobs.into_iter().map(|job| job(chains).map(Ok)).collect();
    }
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
        let before = chains.position();
        session
            .batch("SAVEPOINT job")
            .doing("write to the database")?;
        let result = job(chains);
        if let Err(error) = &result {
            // Some failures end the transaction of all, and then nobody's work is kept.
            if session.has_lost_transaction() {
                return Err(error.clone());
            }
            session
                .batch("ROLLBACK TO job")
                .doing("undo a failed change")?;
            chains.restore(before);
        }
        session
            .batch("RELEASE job")
            .doing("write to the database")?;
        results.push(result);
    }
    Ok(results)
}

fn any_head(session: &Session) -> Result<bool> {
    session
        .exists("SELECT EXISTS (SELECT 1 FROM ledger_heads)", &[])
        .doing("read the ledger's heads")
}
