//! The native sandbox's child side: a typed plan comes in over a socket, a confined process comes
//! out. System calls only; no runtime, no threads, nothing of policy.
//!
//! Three processes: the *caller* (the engine) holds a [`Handle`]; the *keeper* is forked from it
//! before any thread exists, owns one sandbox and outlives a killed caller just long enough to
//! clean up; *pid 1* of the sandbox applies the plan's steps, starts the payload and reaps. A caller
//! with threads cannot fork: it has a [`Spawner`], forked while it had none, that does it instead.

mod apply;
pub mod cgroup;
mod descriptors;
mod handle;
mod init;
mod keeper;
mod lease;
mod moment;
#[cfg(debug_assertions)]
mod mutation;
mod netlink;
pub mod observe;
mod payload;
mod plan;
pub mod seccomp;
mod spawner;
mod stat;
mod sys;
mod terminal;
mod way_out;
mod wire;

pub use descriptors::close_inherited;
pub use handle::{Event, Handle};
pub use lease::Over;
pub use moment::Moment;
#[cfg(debug_assertions)]
pub use mutation::leaves_out;
pub use netlink::can_ask_netfilter;
pub use plan::{
    After, Attachment, Attribute, FileRule, Ids, Namespace, Opener, PayloadStep, Plan, Resource,
    Rights, Source, Steering, Step, Told, Upper,
};
pub use spawner::{SpawnError, Spawner};
pub use sys::{landlock_abi, take_variable};
pub use terminal::{Terminal, WindowSize};
pub use way_out::WayOut;
pub use wire::{Failure, Guard, Order, Parcel, ProcessUsage, Scratch};

/// Nothing is ever left out.
#[cfg(not(debug_assertions))]
pub const fn leaves_out(_: &str) -> bool {
    false
}
