//! One file per command.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod code;
pub(crate) mod completions;
pub(crate) mod doctor;
mod execute;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod ps;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod token;
#[cfg(feature = "otel")]
mod traces;
