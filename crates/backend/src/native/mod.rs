//! The native Linux backend: namespaces, a system call filter, Landlock and control groups, without
//! any container engine.

mod baseline;
mod birth;
mod etc;
mod facts;
mod keep;
mod layout;
mod memory_layer;
mod notices;
mod parcels;
mod preload;
mod probe;
pub(crate) mod processes;
pub(crate) mod pump;
mod sandbox;
mod standing;
mod supervise;
mod warm;
mod watch;

pub use etc::Etc;
pub use keep::KeptNative;
pub use memory_layer::MemoryLayer;
pub use preload::{Language, Preload};
pub use probe::probe;
pub(crate) use sandbox::unspawned;
pub use sandbox::{Ground, Native, Prepared};
pub(crate) use supervise::{lease_over, no_exec};
pub use warm::Warm;
