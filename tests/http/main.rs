//! The server as its clients see it.

mod admission;
mod budgets;
mod events;
mod execs;
mod idempotency;
mod kills;
mod matrix;
mod spaces;
mod two_servers;
