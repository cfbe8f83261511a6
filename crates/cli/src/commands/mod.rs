//! One file per command.

pub(crate) mod approval;
pub(crate) mod artifact;
pub(crate) mod audit;
pub(crate) mod backend;
pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod cancel;
pub(crate) mod code;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod effects;
pub(crate) mod exec;
mod execute;
pub(crate) mod file;
pub(crate) mod image;
pub(crate) mod log;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
mod network_log;
pub(crate) mod policy;
pub(crate) mod ps;
pub(crate) mod retrieve;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod sandbox;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod skill;
pub(crate) mod snapshot;
pub(crate) mod token;
#[cfg(feature = "otel")]
mod traces;
pub(crate) mod webhook;
pub(crate) mod workspace;
