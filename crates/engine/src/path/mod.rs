//! The stages after policy's. A value of each type exists only if the stage before it succeeded:
//! every field is private to the stage that fills it.

mod admit;
mod close;
mod collect;
mod draft;
mod judge;
mod obtain;
mod open;
mod run;

pub(crate) use admit::admit;
pub(crate) use close::close;
pub(crate) use collect::collect;
pub(crate) use draft::{Draft, random};
pub(crate) use judge::judge;
pub(crate) use obtain::{Approved, obtain};
pub(crate) use open::open;
pub(crate) use run::{Streams, run};
