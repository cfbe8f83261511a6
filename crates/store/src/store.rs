//! The open store: reads on any connection, writes through the group commit.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use glovebox_model::{Result, SpaceId};
use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::connection::Pool;
use crate::failure::{Doing, internal, locked, tampered};
use crate::group::Group;
use crate::ledger::chain::{Chains, Head};
use crate::ledger::key::LedgerKey;
use crate::schema;
use crate::state_dir::StateDir;

/// How long a call waits for another process before it gives up with `busy`.
pub const PATIENCE: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce(&mut Chains<'_>) -> Result<()> + Send>;

/// The durable state of one state directory. Any number of processes may have it open.
pub struct Store {
    pool: Pool,
    group: Group<Job, Result<()>>,
    key_path: PathBuf,
    key: OnceLock<LedgerKey>,
    /// Where the chains ended when this process last looked.
    known: Mutex<HashMap<SpaceId, Head>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database, and makes it or brings it up to date when needed.
    pub fn open(state: &StateDir) -> Result<Self> {
        Self::open_with_patience(state, PATIENCE)
    }

    /// As [`Store::open`], with another bound on every wait for other processes.
    pub fn open_with_patience(state: &StateDir, patience: Duration) -> Result<Self> {
        state.touch("glovebox.db")?;
        let pool = Pool::new(state.database(), patience);
        let mut connection = pool.take()?;
        schema::bring_up(&mut connection, state, patience)?;
        pool.give(connection);
        Ok(Self {
            pool,
            group: Group::new(),
            key_path: state.ledger_key(),
            key: OnceLock::new(),
            known: Mutex::new(HashMap::new()),
        })
    }

    /// One consistent view of the database.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = self.pool.take()?;
        let view = connection
            .unchecked_transaction()
            .doing("read the database")?;
        let result = read(&view);
        view.finish().doing("read the database")?;
        self.pool.give(connection);
        result
    }

    /// Durable when it returns `Ok`; without a trace when it returns an error. The job shares its
    /// transaction with those of other threads, and fails alone.
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

    /// The key that signs this state directory's ledgers; made on first use.
    pub(crate) fn key(&self, connection: &Connection) -> Result<&LedgerKey> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = match self.existing_key()? {
            Some(key) => key,
            None if any_head(connection)? => {
                // A head is written after the key was made: look again, in case it was just now.
                self.existing_key()?.ok_or_else(|| {
                    tampered(format!(
                        "the ledger's key `{}` is missing",
                        self.key_path.display()
                    ))
                })?
            }
            None => LedgerKey::load_or_create(&self.key_path)?,
        };
        Ok(self.key.get_or_init(|| key))
    }

    /// From the file each time, since it may have been exchanged.
    pub(crate) fn existing_key(&self) -> Result<Option<LedgerKey>> {
        LedgerKey::load(&self.key_path)
    }

    fn commit(&self, jobs: Vec<Job>) -> Vec<Result<()>> {
        let count = jobs.len();
        self.try_commit(jobs)
            .unwrap_or_else(|error| vec![Err(error); count])
    }

    fn try_commit(&self, jobs: Vec<Job>) -> Result<Vec<Result<()>>> {
        let connection = self.pool.take()?;
        let key = self.key(&connection)?;
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)
            .doing("write to the database")?;
        let mut known = locked(&self.known);
        let mut chains = Chains::new(&transaction, key, &known, Timestamp::now());
        let results = run(jobs, &mut chains)?;
        let heads = chains.finish()?;
        transaction.commit().doing("commit to the database")?;
        known.extend(heads);
        drop(known);
        self.pool.give(connection);
        Ok(results)
    }
}

fn run(jobs: Vec<Job>, chains: &mut Chains<'_>) -> Result<Vec<Result<()>>> {
    let connection = chains.connection();
    // Alone, a failed job takes the whole transaction with it and needs no savepoint.
    if jobs.len() == 1 {
        return jobs.into_iter().map(|job| job(chains).map(Ok)).collect();
    }
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
        let before = chains.position();
        connection
            .execute_batch("SAVEPOINT job")
            .doing("write to the database")?;
        let result = job(chains);
        if let Err(error) = &result {
            // Some failures end the transaction of all, and then nobody's work is kept.
            if connection.is_autocommit() {
                return Err(error.clone());
            }
            connection
                .execute_batch("ROLLBACK TO job")
                .doing("undo a failed change")?;
            chains.restore(before);
        }
        connection
            .execute_batch("RELEASE job")
            .doing("write to the database")?;
        results.push(result);
    }
    Ok(results)
}

fn any_head(connection: &Connection) -> Result<bool> {
    connection
        .query_row("SELECT EXISTS (SELECT 1 FROM ledger_heads)", (), |row| {
            row.get(0)
        })
        .doing("read the ledger's heads")
}
