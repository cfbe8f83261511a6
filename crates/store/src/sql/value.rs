//! What a statement's parameters hold.

use std::borrow::Cow;

use ::postgres::types::private::BytesMut;
use ::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use rusqlite::types::{ToSqlOutput, ValueRef};

#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Null | Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    /// As PostgreSQL keeps it: it has no text with a NUL in it, and the sign for it stands in.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Text(value) => Some(value.replace('\0', "\u{2400}")),
            Self::Null | Self::Int(_) | Self::Bytes(_) => None,
        }
    }
}

/// The values of a statement, in the order of its `?1`, `?2`, …
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(value: Cow<'a, str>) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) => value.to_sql_checked(ty, out),
            Self::Text(value) if value.contains('\0') => self.text().to_sql_checked(ty, out),
            Self::Text(value) => value.as_ref().to_sql_checked(ty, out),
            Self::Bytes(value) => value.to_sql_checked(ty, out),
        }
    }

    /// Each value is checked against the parameter's type when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
