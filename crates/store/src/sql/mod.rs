//! The little of SQL that both databases share: statements with `?N` parameters, values, rows, and
//! transactions. What is above this module is written once; where the dialects really differ,
//! [`Session::is_shared`] says which one it is.

mod postgres;
mod row;
mod server;
mod session;
mod shape;
mod sqlite;
mod tls;
mod value;

pub(crate) use row::Row;
pub(crate) use server::Server;
pub(crate) use session::{Access, Session, SqlError, SqlResult};
pub(crate) use shape::Shape;
#[cfg(test)]
pub(crate) use shape::{OURS as SHAPE, digest as shape_of};
pub(crate) use sqlite::{Writing, connect as connect_sqlite, empty_log};
pub(crate) use value::{Value, values};
