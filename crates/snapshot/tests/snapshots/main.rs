//! Snapshots by their interface: what comes back is what was there, whatever stands in the way,
//! whoever kills us and whatever happens to the disk.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod changes;
mod damage;
mod ground;
mod hostile;
mod incremental;
mod kills;
mod owner;
mod races;
mod readers;
mod retention;
mod round_trip;
mod waiting;
