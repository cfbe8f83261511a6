//! Durable state: the state directory, who uses it, the rows of execs, and the ledger; and what
//! servers keep beside them. SQLite and PostgreSQL are an inner matter: none of their types is part
//! of the interface. What runs and why is decided elsewhere; here it is only written down, before
//! it starts and after it ends.

mod administration;
mod admission;
mod budget;
mod cancel;
mod columns;
mod execs;
mod failure;
mod group;
mod hex;
mod leases;
mod ledger;
mod owner;
mod page;
#[cfg(test)]
mod plans;
mod pool;
mod request_keys;
mod rows;
mod schema;
mod settings;
mod shared_schema;
mod sql;
mod stages;
mod state_dir;
mod store;
mod summary;
mod tokens;

pub use administration::Actor;
pub use admission::{Admitted, Terms};
pub use budget::BudgetTerms;
pub use execs::ExecFilter;
pub use leases::NOBODY;
pub use ledger::{
    Checkpoint, Entry, EntryFilter, Expectations, Export, ExportFormat, Kind, Problem,
    Verification, parse_receipt, verify_export,
};
pub use owner::{DeadOwner, Owner, dead_owners};
pub use page::Page;
pub use request_keys::{Once, RequestKey, StoredAnswer};
pub use stages::{Adopted, Opened, Refused, Unclosed};
pub use state_dir::StateDir;
pub use store::{PATIENCE, Store};
pub use tokens::TokenFilter;
