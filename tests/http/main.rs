//! The server as its clients see it.

mod admission;
mod audit;
mod bodies;
mod browser;
mod budgets;
mod contract;
mod events;
mod examples;
mod execs;
mod faults;
mod framing;
mod idempotency;
mod kills;
mod matrix;
mod metrics;
mod remote;
mod shutdown;
mod slow;
mod spaces;
mod tokens;
mod traces;
mod two_servers;
