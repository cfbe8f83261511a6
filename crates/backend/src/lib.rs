//! What execs run in. A backend says which guarantees it gives on this host right now, each with
//! evidence; it refuses what it cannot enforce and never weakens.

mod disk;
mod docker;
mod ended;
mod host;
mod host_mount;
mod keepers;
mod native;
mod notice;
mod sandbox;
mod spec;
mod streams;

pub use docker::{ContainerName, Docker, EngineFacts, Found, Labels, Probe, Program};
pub use ended::{Ended, Ending};
pub use glovebox_cage::WayOut;
pub use host::Host;
pub use host_mount::HostMount;
pub use keepers::Keepers;
pub use native::{
    Etc, Ground, KeptNative, Language, MemoryLayer, Native, Preload, Prepared, Warm, probe,
};
pub use notice::{Notice, Noticed, Observation};
pub use sandbox::{Kept, Run, Sandbox, TeardownGuard};
pub use spec::{
    CacheMount, ExecDirs, Layer, Layers, Observe, Order, Place, Secret, SecretFiles, SecretForm,
    Spec, ToolchainLink, ToolchainMount, Tree,
};
pub use streams::{Cancel, Canceler, Control, Controller, Sink};
