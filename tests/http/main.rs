//! The server as its clients see it.

mod execs;
mod kills;
mod two_servers;
