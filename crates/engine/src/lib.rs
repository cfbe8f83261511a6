//! The one path that everything walks, from any surface: resolve, assess, obtain, open, admit, run,
//! collect, judge, close. Each stage is a function from one type to the next, and the next type can
//! be made nowhere else.

mod approvals;
mod backends;
mod carry_out;
mod containers;
mod digest;
mod dispatch;
mod effects;
mod engine;
mod environment;
mod given;
mod here;
mod kept;
mod leftovers;
mod loan;
mod masks;
mod network;
mod one_seat;
mod outside;
mod path;
mod patience;
mod pool;
mod prepare;
mod private_key;
mod pull;
mod recovery;
mod retrieve;
mod secrets;
mod settings;
mod sight;
mod skill;
mod stage;
mod warm;
mod webhooks;
mod workspaces;

pub use approvals::{Approver, Difference, Replayed};
pub use backends::{BackendView, probe_docker};
pub use dispatch::{
    Attended, ContainerEngine, Dispatcher, Drained, EVENTS_KEPT, Event, EventPage, Health,
    HouseRules, KEYS_KEPT, LEASE, Load, Progress, Spawner, Submission, Submitted, What, ambiguous,
    check_settings,
};
pub use effects::{Listener, Rehearsed};
pub use engine::{Engine, Io, Seat, Settings};
pub use glovebox_backend::probe;
pub use glovebox_backend::{Cancel, Canceler, EngineFacts, Sink};
pub use glovebox_cage::{Handle as Keeper, take_variable};
pub use glovebox_egress::retrieve::{RetrieveRequest, Retrieved};
pub use kept::{Next, Pruned, Recreated, SandboxExplanation, SandboxRequest, Selection, Trouble};
pub use loan::Loan;
pub use masks::LogMask;
pub use outside::Outside;
pub use patience::Wait;
pub use pool::{PoolStats, ShelfStats};
pub use pull::{ImageReference, PullProgress, RegistryTransport, pull};
pub use recovery::Recovered;
pub use secrets::{
    GRANT_MOST, GrantSecret, Hold, KeySource, KnownSecret, Masks, NewKey, OpenedSecret, Removal,
    Revocation, Revoked, RevokedWatch, Rotated, Secrets, SetSecret, Vault,
};
pub use settings::{ToolchainSettings, host_facts};
pub use sight::{Eyes, OF_AGENT, Seen, hashed, named_after, of_session};
pub use webhooks::{Webhook, webhooks_of};
pub use workspaces::{
    Expected, ListRequest, Opened, Present, Room, Workspace, Writing, changed_path, file_path,
    watched,
};
