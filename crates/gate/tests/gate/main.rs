//! Gates by their interface: what each check says to a subject, and the laws of chains.

#![allow(clippy::result_large_err, clippy::unwrap_used)]

mod chain;
mod effects;
mod fixture;
mod output;
mod statistics;
