//! What execs run in. A backend says which guarantees it gives on this host right now, each with
//! evidence; it refuses what it cannot enforce and never weakens.

mod ended;
mod native;
mod spec;
mod streams;

pub use ended::{Ended, Ending};
pub use native::{Etc, Ground, Native, Prepared, Remains, probe};
pub use spec::{Order, Spec, ToolchainLink, ToolchainMount, Tree};
pub use streams::{Cancel, Canceler, Sink, Stream};
