//! A connection to PostgreSQL: prepared statements, and transactions that keep writers apart.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use ::postgres::error::Severity;
use ::postgres::types::ToSql;
use ::postgres::{Client, Error, Row, Statement};

use super::Value;
use super::session::{Access, dollars};

/// Writers of one database hold this lock, so that only one extends the chains at a time.
const WRITERS: i64 = i64::from_be_bytes(*b"glovebox");

/// Filters make statements of many lengths; those of a server are soon all there.
const STATEMENTS_MOST: usize = 256;

pub(crate) struct PostgresSession {
    client: RefCell<Client>,
    statements: RefCell<HashMap<String, Statement>>,
    broken: Cell<bool>,
}

impl PostgresSession {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client: RefCell::new(client),
            statements: RefCell::new(HashMap::new()),
            broken: Cell::new(false),
        }
    }

    pub(super) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql)?;
        self.noticing(|client| client.query(&statement, &references(values)))
    }

    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Error> {
        let statement = self.prepared(sql)?;
        self.noticing(|client| client.execute(&statement, &references(values)))
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), Error> {
        self.noticing(|client| client.batch_execute(sql))
    }

    /// Every statement of a writer sees what the writers before it committed, since each has a
    /// view of its own and the lock comes first.
    pub(super) fn begin(&self, access: Access) -> Result<(), Error> {
        match access {
            Access::Read => {
                self.batch("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            }
            Access::Write => self.batch(&format!(
                "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE;
                 SELECT pg_advisory_xact_lock({WRITERS})"
            )),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.get() || self.client.borrow().is_closed()
    }

    fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.noticing(|client| client.prepare(&dollars(sql)))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= STATEMENTS_MOST {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn noticing<T>(&self, work: impl FnOnce(&mut Client) -> Result<T, Error>) -> Result<T, Error> {
        let result = work(&mut self.client.borrow_mut());
        if let Err(error) = &result
            && is_lost(error)
        {
            self.broken.set(true);
        }
        result
    }
}

fn references<'v>(values: &'v [Value<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect()
}

/// Whether the connection died with it: everything that the server did not report, and its last
/// words.
fn is_lost(error: &Error) -> bool {
    error.as_db_error().is_none_or(|error| {
        matches!(
            error.parsed_severity(),
            None | Some(Severity::Fatal | Severity::Panic)
        )
    })
}
