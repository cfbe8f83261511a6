//! Durable state: the state directory, who uses it, the rows of execs, and the ledger; and what
//! servers keep beside them. SQLite and PostgreSQL are an inner matter: none of their types is part
//! of the interface. What runs and why is decided elsewhere; here it is only written down, before
//! it starts and after it ends.

mod administration;
mod admission;
mod adoption;
mod approval_rows;
mod approvals;
mod audit_summary;
mod awaiting;
mod budget;
mod cancel;
mod columns;
mod connections;
mod execs;
mod failure;
mod grants;
mod group;
mod hex;
mod leases;
mod ledger;
mod mask;
mod outbox;
mod outbox_rows;
mod owner;
mod page;
mod private_file;
#[cfg(test)]
mod query_plans;
mod registry;
mod request_keys;
mod retention;
mod retrievals;
mod rows;
mod sandboxes;
mod schema;
mod secret_grants;
mod secret_values;
mod secrets;
mod settings;
mod settled;
mod shared_schema;
mod sql;
mod stages;
mod state_dir;
mod store;
mod summary;
mod tokens;
mod verified_snapshots;
#[cfg(test)]
mod without_tags;

pub use administration::Actor;
pub use admission::{Admitted, Terms};
pub use approvals::{ApprovalFilter, NewGrant};
pub use budget::BudgetTerms;
pub use execs::ExecFilter;
pub use grants::GrantFilter;
pub use leases::NOBODY;
pub use ledger::{
    Checkpoint, Entry, EntryFilter, Expectations, Export, ExportFormat, Kind, Problem, SpaceLedger,
    Step, Timeline, TimelineFilter, Verification, parse_receipt, read_checkpoints, verify_export,
};
pub use mask::{Hide, Mask};
pub use outbox::{Attempted, Claimed, DeliveryFilter, Subscription};
pub use owner::{DeadOwner, Owner, dead_owners};
pub use private_file::{
    Key, KeyFault, KeyForm, MadeBy, PrivateFault, create_private, load_key, load_or_create_key,
    read_private,
};
pub use registry::Registered;
pub use request_keys::{Once, RequestKey, StoredAnswer};
pub use retention::{AgedEntry, RetentionTier};
pub use secret_grants::SecretGrantFilter;
pub use secret_values::{SealedValue, ValuePlace};
pub use secrets::SecretWrite;
pub use stages::{Adopted, Opened, Refused, Unclosed};
pub use state_dir::StateDir;
pub use store::{PATIENCE, Store};
pub use tokens::TokenFilter;
pub use verified_snapshots::{SnapshotMark, VerifiedSnapshot};
