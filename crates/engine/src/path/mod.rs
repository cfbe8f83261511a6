//! The stages after policy's. A value of each type exists only if the stage before it succeeded:
//! every field is private to the stage that fills it.

mod admit;
mod close;
mod collect;
mod draft;
mod judge;
mod obtain;
mod open;
mod plan;
mod run;

pub(crate) use admit::admit;
pub(crate) use close::{close, end};
pub(crate) use collect::collect;
pub(crate) use draft::{Draft, random, working_directory};
pub(crate) use judge::judge;
pub(crate) use obtain::obtain;
pub(crate) use open::{Opened, failed, open};
pub(crate) use plan::Plan;
pub(crate) use run::{Errand, Streams, run};
