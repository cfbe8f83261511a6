//! Connections to the database, with the settings that the promises rest on.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use glovebox_model::Result;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::failure::{Doing, locked};

/// Pages in the write-ahead log before it is copied into the database. What is left in it is read
/// again by the next process that opens the database alone, so it is kept short: a one-shot
/// command must start quickly.
const LOG_PAGES: u32 = 128;

const IDLE_MOST: usize = 8;

fn connect(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    // The file is made before, with its mode; here it must exist.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    // Somebody else pays for copying the log, and not at the end of every short command.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.busy_handler(Some(waiter(patience)))?;
    connection.set_prepared_statement_cache_capacity(64);
    // FULL: an acknowledged commit is on disk.
    connection.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {LOG_PAGES};"
    ))?;
    Ok(connection)
}

/// Waits in short, uneven steps: SQLite's own waiting grows to a tenth of a second, in which many
/// writers that are quicker to ask pass one that waits.
fn waiter(patience: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut since = Instant::now();
    move |attempt| {
        if attempt == 0 {
            since = Instant::now();
        }
        let waited = since.elapsed();
        if waited >= patience {
            return false;
        }
        let step = 100u64 << attempt.clamp(0, 4);
        let uneven = u64::from(waited.subsec_nanos()) % step;
        thread::sleep(Duration::from_micros(step + uneven));
        true
    }
}

/// Connections that nobody uses right now. One is enough for a command; a server's readers get
/// their own, so that they never wait for a writer.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(path: PathBuf, patience: Duration) -> Self {
        Self {
            path,
            patience,
            idle: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn take(&self) -> Result<Connection> {
        if let Some(connection) = locked(&self.idle).pop() {
            return Ok(connection);
        }
        connect(&self.path, self.patience)
            .doing(&format!("open the database `{}`", self.path.display()))
    }

    /// Only for a connection that did its work: one that failed is better forgotten.
    pub(crate) fn give(&self, connection: Connection) {
        let mut idle = locked(&self.idle);
        if idle.len() < IDLE_MOST && connection.is_autocommit() {
            idle.push(connection);
        }
    }
}
