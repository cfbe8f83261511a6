//! Gates: what an exec put out and what it did is judged before anything of it is kept. A gate is a
//! list of checks; gates are asked in their order, and the first that blocks is the last.
//!
//! Nothing here reads a clock, a file or the network. A check that needs a program to be run asks
//! whoever implements `RunCommand`; one that needs what a file holds, whoever implements `Contents`.
//!
//! Falsy outputs are outputs, and failed runs are judged like all others. What cannot be judged, for
//! example because effects were dropped, is not good.

mod check;
mod command;
mod contents;
mod credential;
mod diff;
mod digest;
mod evidence;
mod finding;
mod finite;
mod gate;
mod glob;
mod history;
mod kinds;
mod metric;
mod pointer;
mod subject;

pub use check::{
    Anomaly, Bounds, Check, CheckName, Deterministic, DiffSize, Exit, Expression, Hosts, MaxSize,
    Method, Monotonic, NoSecrets, NotNull, PathScope, Quantity, Schema, VARIABLES,
};
pub use command::{COMMAND_TAIL_MAX, CommandCheck, CommandOutcome, RunCommand};
pub use contents::{Beginning, Content, Contents, NoContents};
pub use digest::digest;
pub use finite::Finite;
pub use gate::{CHECKS_MAX, Gate, judge};
pub use glob::PathGlob;
pub use history::{History, Sample};
pub use kinds::Kinds;
pub use metric::Metric;
pub use pointer::Pointer;
pub use subject::Subject;
