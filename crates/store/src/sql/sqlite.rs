//! Connections to the embedded database, with the settings that the promises rest on.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How much is written before the write-ahead log is copied into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// A little, now and then. What is left in the log is read again by the next process that opens
    /// the database alone, so it is kept short: a one-shot command must start quickly.
    Little,
    /// All day long: a page that changes with every commit is copied once for many of them.
    Much,
}

impl Writing {
    const fn log_pages(self) -> u32 {
        match self {
            Self::Little => 128,
            Self::Much => 1024,
        }
    }
}

/// Empties the log, unless others are using it: the next who opens the database has nothing to read.
pub(crate) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}

pub(crate) fn connect(
    path: &Path,
    patience: Duration,
    writing: Writing,
) -> rusqlite::Result<Connection> {
    // The file is made before, with its mode; here it must exist.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    // Somebody else pays for copying the log, and not at the end of every short command.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.busy_handler(Some(waiter(patience)))?;
    connection.set_prepared_statement_cache_capacity(64);
    // FULL: an acknowledged commit is on disk. What is only kept to undo a part of a transaction
    // needs no file.
    connection.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = {};",
        writing.log_pages()
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
