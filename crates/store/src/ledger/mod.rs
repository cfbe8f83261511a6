//! The ledger: append-only entries in one hash chain per space, with a signed head. `LEDGER.md`
//! beside this crate describes the format for those who verify it without this program.

pub(crate) mod chain;
pub(crate) mod encoding;
pub(crate) mod entry;
pub(crate) mod exec_proof;
mod export;
pub(crate) mod index;
pub(crate) mod kept_head;
pub(crate) mod key;
mod ocsf;
mod offline;
pub(crate) mod operator;
mod query;
mod row_check;
pub(crate) mod row_proof;
pub(crate) mod timeline;
pub(crate) mod trail;
mod verify;
mod vouch;
mod walk;

pub use entry::{Entry, Kind};
pub use export::{Export, ExportFormat};
pub use key::Checkpoint;
pub use offline::{read_checkpoints, verify_export};
pub use query::EntryFilter;
pub use timeline::{Step, Timeline, TimelineFilter};
pub use walk::{Expectations, Problem, SpaceLedger, Verification, parse_receipt};
