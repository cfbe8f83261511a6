//! One file per command.

pub(crate) mod code;
mod execute;
pub(crate) mod run;
