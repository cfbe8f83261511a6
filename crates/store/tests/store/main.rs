//! The store by its interface, over SQLite and over PostgreSQL.

mod administration;
mod admission;
mod approvals;
mod awaiting;
mod common;
mod connections;
mod failures;
mod grants;
mod memory;
mod migration;
mod outbox;
mod processes;
mod proof;
mod reading;
mod sandboxes;
mod secrets;
mod servers;
mod shape;
mod stages;
mod tampering;
