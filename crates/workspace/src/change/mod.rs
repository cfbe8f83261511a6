//! What a program did to a workspace while its writes went to a layer of their own: read as a list
//! of changes, and carried into the workspace, all of it or nothing.
//!
//! The layer is the upper directory of an overlay (`userxattr`) and holds whatever its program
//! wished: nothing in it is followed, no FIFO is opened, no size is believed. A workspace may be
//! somebody's own directory and may change at any time: every path is reached without following a
//! link, looked at again at the moment it is exchanged, and left alone when somebody else was there.

mod apply;
mod attributes;
mod base;
mod carry;
mod cover;
mod entry;
mod ground;
mod held;
mod intent;
mod locked;
mod place;
mod plan;
mod read;
mod stage;
mod state;
mod text;
mod waiting;

pub use apply::{Applied, Outcome, RecoveredChange, apply, recover};
pub use base::Base;
pub use carry::LeftOut;
pub(crate) use carry::{Marks, carry};
pub use cover::{Cover, Covers, Matches, Sought};
pub use entry::{Change, Changes, EntryChange, Facts, Skipped};
pub use ground::Ground;
pub use held::Held;
pub use read::{ReadLimits, read};
pub use state::TreeState;
pub use text::{text, unified};
