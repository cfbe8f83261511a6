//! Durable state: the state directory, who uses it, the rows of execs, and the ledger. SQLite is an
//! inner matter: none of its types is part of the interface. What runs and why is decided elsewhere;
//! here it is only written down, before it starts and after it ends.

mod connection;
mod execs;
mod failure;
mod group;
mod hex;
mod ledger;
mod owner;
mod page;
mod rows;
mod schema;
mod stages;
mod state_dir;
mod store;
mod summary;

pub use execs::ExecFilter;
pub use ledger::{
    Checkpoint, Entry, EntryFilter, Expectations, ExportFormat, Kind, Problem, Verification,
    parse_receipt, verify_export,
};
pub use owner::{DeadOwner, Owner, dead_owners};
pub use page::Page;
pub use stages::{Opened, Unclosed};
pub use state_dir::StateDir;
pub use store::{PATIENCE, Store};
