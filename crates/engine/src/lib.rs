//! The one path that everything walks, from any surface: resolve, assess, obtain, open, admit, run,
//! collect, judge, close. Each stage is a function from one type to the next, and the next type can
//! be made nowhere else.

mod approvals;
mod backends;
mod cgroup_cleanup;
mod containers;
mod digest;
mod dispatch;
mod effects;
mod engine;
mod environment;
mod instance;
mod network;
mod path;
mod patience;
mod policy;
mod pool;
mod private_key;
mod pull;
mod recovery;
mod sandboxes;
mod secrets;
mod sessions;
mod settings;
mod skill;
mod stage;
mod visibility;
mod webhooks;
mod workspaces;

pub use approvals::{Approvals, Approver, Difference, Replayed};
pub use backends::{BackendView, probe_docker};
pub use dispatch::{
    Attended, ContainerEngine, Dispatcher, Drained, EVENTS_KEPT, Event, EventKind, EventPage,
    Health, KEYS_KEPT, LEASE, Load, Progress, ServerConfig, ServerPurpose, Spawner, Submission,
    Submitted, check_settings,
};
pub use effects::{Listener, Rehearsed, Simulations};
pub use engine::{Engine, Io, KeeperSlot, Settings};
pub use glovebox_backend::probe;
pub use glovebox_backend::{Cancel, Canceler, EngineFacts, Sink};
pub use glovebox_cage::{Handle as Keeper, close_inherited, take_variable};
pub use glovebox_egress::retrieve::{RetrieveRequest, Retrieved};
pub use network::{EgressRuntime, Network};
pub use patience::Wait;
pub use policy::ActivePolicy;
pub use pool::{PoolStats, ShelfStats};
pub use pull::{ImageReference, PullProgress, RegistryTransport, pull};
pub use recovery::Recovered;
pub use sandboxes::{
    Next, Pruned, Recreated, SandboxExplanation, SandboxRegistry, SandboxRequest, Sandboxes,
    Selection, Trouble,
};
pub use secrets::{
    GRANT_MOST, GrantSecret, Hold, KeySource, KnownSecret, LogMask, Masks, NewKey, OpenedSecret,
    Removal, Revocation, Revoked, RevokedWatch, Rotated, Secrets, SetSecret, Vault,
};
pub use sessions::{
    PendingAnswer, SessionCommand, SessionOrder, SessionRead, keep_session, session_terms,
};
pub use settings::{ToolchainSettings, host_facts};
pub use visibility::{OF_AGENT, Seen, Viewer, hashed, named_after, of_session};
pub use webhooks::{Webhook, Webhooks, webhooks_of};
pub use workspaces::{
    DirectoryToShare, Expected, ListRequest, Opened, Present, QuotaLeft, Workspace, Workspaces,
    Writing, changed_path, file_path, watched,
};
