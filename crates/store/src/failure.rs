//! Turns what the databases and the system report into errors that say what can be done.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use glovebox_model::{Code, Error, Result, Stage};
use rusqlite::{ErrorCode, ffi};

use crate::sql::SqlError;

/// Says what was being done when the error came. The stage is that of the surrounding call, which
/// sets it with [`at`].
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T>;
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| from_sqlite(&error, what))
    }
}

impl<T> Doing<T> for Result<T, postgres::Error> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| from_postgres(&error, what))
    }
}

impl<T> Doing<T> for Result<T, SqlError> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| match error {
            SqlError::Sqlite(error) => from_sqlite(&error, what),
            SqlError::Postgres(error) => from_postgres(&error, what),
            SqlError::Tampered(found) => tampered(found),
        })
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| from_io(&error, what))
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| from_io(&error.into(), what))
    }
}

pub(crate) fn at(stage: Stage) -> impl FnOnce(Error) -> Error {
    move |mut error| {
        error.stage = stage;
        error
    }
}

pub(crate) fn internal(message: impl Into<String>) -> Error {
    Error::new(Code::Internal, Stage::Open, message)
}

pub(crate) fn tampered(message: impl Into<String>) -> Error {
    Error::new(Code::LedgerTampered, Stage::Open, message)
        .hint("see where: `glovebox audit verify`")
        .hint("nothing runs on this state directory until it is restored from a copy you trust, or set aside")
}

/// A panic while a lock was held leaves data that is still whole: every change to it is one step.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(what: &str) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!("cannot {what}"),
    )
}

fn disk_full(what: &str) -> Error {
    Error::new(
        Code::DiskFull,
        Stage::Open,
        format!("cannot {what}: the disk is full"),
    )
    .hint("free some space, or name another state directory with `--state-dir`")
}

pub(crate) fn from_io(error: &io::Error, what: &str) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => disk_full(what),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => unavailable(what)
            .caused_by(error)
            .hint("name a state directory that you may write with `--state-dir`"),
        _ => unavailable(what).caused_by(error),
    }
}

fn from_sqlite(error: &rusqlite::Error, what: &str) -> Error {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return internal(format!("cannot {what}")).caused_by(error);
    };
    // The file beside the database that SQLite shares between processes could not grow: on Linux
    // that is a full disk, reported as an input/output error.
    if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE {
        return disk_full(what);
    }
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::new(
            Code::Busy,
            Stage::Open,
            format!("cannot {what}: another process holds the state for too long"),
        )
        .hint("see which processes use the state directory, and try again"),
        ErrorCode::DiskFull => disk_full(what),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::new(
            Code::StoreUnavailable,
            Stage::Open,
            format!("cannot {what}: `glovebox.db` is damaged or is not a database"),
        )
        .caused_by(error)
        .hint("restore the state directory from a copy, or move it away and start a new one"),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            unavailable(what)
                .caused_by(error)
                .hint("name a state directory that you may write with `--state-dir`")
        }
        _ => unavailable(what).caused_by(error),
    }
}

fn from_postgres(error: &postgres::Error, what: &str) -> Error {
    use postgres::error::SqlState;
    let Some(reported) = error.as_db_error() else {
        let mut failed = unavailable(what).caused_by(error);
        if let Some(cause) = std::error::Error::source(error) {
            failed = failed.caused_by(cause);
        }
        return failed
            .hint("see that the database's server runs and can be reached, and try again");
    };
    let code = reported.code();
    if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code) {
        return Error::new(
            Code::Busy,
            Stage::Open,
            format!("cannot {what}: the database is held by another server for too long"),
        )
        .hint("see what the other servers do, and try again");
    }
    let failed = unavailable(what).caused_by(reported.message());
    match code.code() {
        "53100" => Error::new(
            Code::DiskFull,
            Stage::Open,
            format!("cannot {what}: the disk of the database's server is full"),
        )
        .hint("free some space there"),
        "53300" => failed.hint("let the database's server have more connections, and try again"),
        "25006" => failed.hint("name the primary in the database's URL: this one only reads"),
        "3D000" => failed.hint("make that database first: `createdb`"),
        "42501" => failed.hint("let this user create a schema in the database, and write to it"),
        class if class.starts_with("28") => {
            failed.hint("see the user and the password in the database's URL")
        }
        _ => failed,
    }
}
