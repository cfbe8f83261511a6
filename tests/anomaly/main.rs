//! What befalls a run from outside: kills, crowds, signals, full disks, torn files, bad input.
//!
//! Each test has a state directory of its own and looks for what is left by the name that its
//! control groups carry, so tests may run side by side.

mod arguments;
mod bench;
mod config;
mod crowd;
mod kills;
mod signals;
mod storage;
mod streams;
mod tampering;
mod traces;
mod wait;
