//! The native Linux backend: namespaces, a system call filter, Landlock and control groups, without
//! any container engine.

mod etc;
mod facts;
mod layout;
mod probe;
mod processes;
mod pump;
mod sandbox;
mod space;
mod supervise;
mod watch;

pub use etc::Etc;
pub use probe::probe;
pub use sandbox::{Ground, Native, Prepared, Remains};
