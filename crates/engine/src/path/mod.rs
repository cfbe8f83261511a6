//! The stages after policy's. A value of each type exists only if the stage before it succeeded:
//! every field is private to the stage that fills it.

mod admit;
mod close;
mod collect;
mod command_source;
mod draft;
mod execute;
mod judge;
mod obtain;
mod open;
mod plan;
mod prepare;
mod receive;
mod run;
mod start_error;
mod walk;

pub(crate) use admit::admit;
pub(crate) use close::{close, end};
pub(crate) use collect::collect;
pub(crate) use command_source::CommandSource;
pub(crate) use draft::{Draft, random, working_directory};
pub(crate) use judge::judge;
pub(crate) use obtain::obtain;
pub(crate) use open::{Opened, failed};
pub(crate) use plan::Plan;
pub(crate) use prepare::{PreparedRun, SandboxSource, place};
pub(crate) use receive::{CallWithConsent, Planned, refusal};
pub(crate) use run::{RunInputs, Streams, run};
pub(crate) use walk::{Runner, Walked};
