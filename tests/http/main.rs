//! The server as its clients see it.

mod admission;
mod budgets;
mod contract;
mod events;
mod execs;
mod idempotency;
mod kills;
mod matrix;
mod metrics;
mod shutdown;
mod spaces;
mod traces;
mod two_servers;
