//! One connection, and what is done on it.

use std::borrow::Cow;
use std::fmt;

use rusqlite::{Connection, params_from_iter};

use super::postgres::PostgresSession;
use super::shape::Shape;
use super::{Row, Value};
use crate::hex;
use crate::ledger::encoding::sha256;

#[derive(Debug)]
pub(crate) enum SqlError {
    Sqlite(rusqlite::Error),
    Postgres(::postgres::Error),
    /// What the database answers is not what its own statements and ours can lead to.
    Tampered(&'static str),
}

pub(crate) type SqlResult<T> = Result<T, SqlError>;

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<::postgres::Error> for SqlError {
    fn from(error: ::postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            // The sentence of the server, without the library's words around it.
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => f.write_str(error.message()),
                None => error.fmt(f),
            },
            Self::Tampered(what) => f.write_str(what),
        }
    }
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// One consistent view.
    Read,
    /// Alone: no other writer, of any process or machine, is inside one at the same time.
    Write,
}

pub(crate) enum Session {
    /// With what is known of its shape.
    Sqlite(Connection, Shape),
    Postgres(Box<PostgresSession>),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite(..) => "Session::Sqlite",
            Self::Postgres(_) => "Session::Postgres",
        })
    }
}

impl Session {
    /// Whether other machines may use the database too: PostgreSQL.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Returns how many rows were changed.
    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<u64> {
        match self {
            Self::Sqlite(connection, _) => {
                let mut statement = connection.prepare_cached(sql)?;
                Ok(statement.execute(params_from_iter(values))? as u64)
            }
            Self::Postgres(session) => Ok(session.execute(sql, values)?),
        }
    }

    /// As [`Session::execute`], of a statement that changes one row. A trigger can drop a change
    /// without an error, and what was dropped must not count as written.
    pub(crate) fn change_one(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<()> {
        match self.execute(sql, values)? {
            1 => Ok(()),
            _ => Err(SqlError::Tampered(
                "the database did not keep a row that was written",
            )),
        }
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        match self {
            Self::Sqlite(connection, _) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params_from_iter(values))?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }
            Self::Postgres(session) => {
                let rows = session.query(sql, values)?;
                rows.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// The first row.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        match self {
            Self::Sqlite(connection, _) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params_from_iter(values))?;
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            Self::Postgres(session) => {
                let rows = session.query(sql, values)?;
                rows.first()
                    .map(|row| read(&Row::Postgres(row)))
                    .transpose()
            }
        }
    }

    /// The answer of a `SELECT EXISTS`.
    pub(crate) fn exists(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<bool> {
        Ok(self.row(sql, values, |row| row.get(0))?.unwrap_or(false))
    }

    /// Statements without values.
    pub(crate) fn batch(&self, sql: &str) -> SqlResult<()> {
        match self {
            Self::Sqlite(connection, _) => Ok(connection.execute_batch(sql)?),
            Self::Postgres(session) => Ok(session.batch(sql)?),
        }
    }

    pub(crate) fn begin(&self, access: Access) -> SqlResult<()> {
        match (self, access) {
            (Self::Sqlite(connection, shape), access) => {
                connection.execute_batch(match access {
                    Access::Read => "BEGIN DEFERRED",
                    Access::Write => "BEGIN IMMEDIATE",
                })?;
                shape.ensure_ours(connection)
            }
            (Self::Postgres(session), access) => Ok(session.begin(access)?),
        }
    }

    /// For a single statement that only reads. SQLite's shape is looked at in the same view.
    pub(crate) fn once<T>(&self, work: impl FnOnce(&Self) -> SqlResult<T>) -> SqlResult<T> {
        if self.is_shared() {
            return work(self);
        }
        self.begin(Access::Read)?;
        let found = work(self)?;
        self.commit()?;
        Ok(found)
    }

    pub(crate) fn commit(&self) -> SqlResult<()> {
        self.batch("COMMIT")
    }

    pub(crate) fn rollback(&self) -> SqlResult<()> {
        self.batch("ROLLBACK")
    }

    /// Whether a failed statement has ended the whole transaction, or the connection.
    pub(crate) fn has_lost_transaction(&self) -> bool {
        match self {
            Self::Sqlite(connection, _) => connection.is_autocommit(),
            Self::Postgres(session) => session.is_broken(),
        }
    }

    /// Whether the connection is of no more use.
    pub(crate) fn is_broken(&self) -> bool {
        match self {
            Self::Sqlite(..) => false,
            Self::Postgres(session) => session.is_broken(),
        }
    }

    /// A text as it is kept in an indexed column. PostgreSQL's indexes refuse long ones: there its
    /// digest stands in, which is as good, since such columns are only compared.
    pub(crate) fn indexed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.is_shared() || text.len() <= INDEXED_MOST {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!("sha256:{}", hex::encode(&sha256(text.as_bytes()))))
    }
}

const INDEXED_MOST: usize = 1024;

/// Statements with `$N` in place of `?N`. No statement of ours has a question mark in a literal.
pub(crate) fn dollars(sql: &str) -> String {
    sql.replace('?', "$")
}
