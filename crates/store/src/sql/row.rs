//! One row of a result.

use rusqlite::types::{FromSql, ValueRef};

use super::session::{SqlError, SqlResult};
use crate::hex;

pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r ::postgres::Row),
}

impl Row<'_> {
    pub(crate) fn get<T>(&self, index: usize) -> SqlResult<T>
    where
        T: FromSql + for<'a> ::postgres::types::FromSql<'a>,
    {
        match self {
            Self::Sqlite(row) => row.get(index).map_err(SqlError::from),
            Self::Postgres(row) => row.try_get(index).map_err(SqlError::from),
        }
    }

    /// The bytes of a text, whatever somebody with a database shell may have made of it.
    pub(crate) fn raw(&self, index: usize) -> SqlResult<Vec<u8>> {
        match self {
            Self::Sqlite(row) => {
                let bytes = row.get_ref(index)?.as_bytes();
                Ok(bytes.map_err(rusqlite::Error::from)?.to_vec())
            }
            Self::Postgres(row) => Ok(row.try_get::<_, String>(index)?.into_bytes()),
        }
    }

    /// Lossy: bytes that are not text were never written by us, so they differ from what was.
    pub(crate) fn text(&self, index: usize) -> SqlResult<String> {
        let bytes = self.raw(index)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Whatever is there, as a text: numbers in decimal, bytes in hexadecimal. On PostgreSQL the
    /// statement selects a text.
    pub(crate) fn cell(&self, index: usize) -> SqlResult<Option<Vec<u8>>> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(index)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
                ValueRef::Real(number) => Some(number.to_string().into_bytes()),
                ValueRef::Text(text) => Some(text.to_vec()),
                ValueRef::Blob(bytes) => Some(hex::encode(bytes).into_bytes()),
            }),
            Self::Postgres(row) => {
                let text: Option<String> = row.try_get(index)?;
                Ok(text.map(String::into_bytes))
            }
        }
    }
}
