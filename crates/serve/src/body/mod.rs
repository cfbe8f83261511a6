//! What callers send, read within bounds and taken only when it is exactly what the API's own
//! description says.

mod json;
mod query;
mod read;
mod room;
mod schema;

pub(crate) use json::{Json, Mutation, Sent, parse};
pub(crate) use query::Query;
pub(crate) use read::{Limit, whole};
pub(crate) use room::Room;
