//! One row of a result.

use rusqlite::types::FromSql;

use super::session::{SqlError, SqlResult};

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
}
