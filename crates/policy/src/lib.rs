//! Policy: layers become one effective profile, with the layer that decided each field.
//! Nothing here reads a clock, a file or the network; texts and host facts are handed in.
//!
//! `resolve` and `assess` are the first two stages of the path. Combining layers can only narrow:
//! each kind of field has one `meet`, and every layer goes through it.

mod approvals;
mod assess;
mod bound;
mod canonical;
mod choose;
mod config;
mod decide;
mod decided;
mod denied;
mod destinations;
mod effective;
mod env;
mod escalate;
mod explain;
mod field;
mod grant;
mod layer;
mod name;
mod network;
mod pattern;
mod preset;
mod range;
mod request;
mod resolve;
mod rule;
mod secret;
mod sight;
mod skill;
mod system;
mod tool;
mod webhook;
mod word;

pub use approvals::{AllowedMount, ApprovalSettings, Elevated, Gate, HostSettings, MountMode};
pub use assess::{Assessed, assess, assess_with};
pub use canonical::Binding;
pub use choose::{Choice, Offer, choose, demand};
pub use config::{
    CacheName, CacheSettings, CacheSharing, Config, FileAudit, PathRuntime, WorkspaceSettings,
};
pub use decide::{
    Action, Change, DecisionContext, compare, decide, decide_action, decide_reading, decide_with,
};
pub use decided::Decided;
pub use denied::{DeniedPath, DeniedPaths, HeldBy, PathRule, denied_paths, path_rules};
pub use explain::{Asking, Decision, Explanation, ListSource, ToolsExplained, explain};
pub use field::Field;
pub use grant::{GrantKind, kind_of};
pub use layer::{Decider, Layer, LayerName, Origin};
pub use network::{Endpoint, InspectSettings, NetworkSettings, RetrievalSettings};
pub use preset::TierPresets;
pub use resolve::{Resolved, resolve};
pub use rule::{Rules, Scripts};
pub use secret::{GrantedSecret, secret_variable};
pub use sight::Sight;
pub use skill::SkillSettings;
pub use system::{HostFacts, Surface, System};
pub use tool::{ToolAnswer, ToolPolicy, ToolSource};
pub use webhook::{WebhookKey, WebhookSettings};
