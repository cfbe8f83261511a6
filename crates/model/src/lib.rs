//! The nouns that every other crate speaks: typed ids, units, limits, profiles, calls, the exec
//! record and errors; and what a credential looks like. Nothing here touches a clock, a file or the
//! network.

mod approval;
mod backend_ref;
mod bytestring;
mod call;
mod consent;
mod correlation;
pub mod credential;
mod docker;
mod effect;
mod error;
mod exec;
mod gate;
mod glob;
mod host;
mod id;
mod isolation;
mod limits;
mod network;
mod page;
mod permit;
mod pool;
mod profile;
mod sandbox;
#[cfg(feature = "openapi")]
mod schema;
mod secret;
mod session;
mod settings;
mod simulation;
mod skill;
mod status;
mod stream;
mod strict;
mod token;
mod units;
mod unseen;
mod webhook;
mod writes;

pub use approval::{
    Answer, Approval, ApprovalState, Ask, Bound, BoundTo, Grant, Party, Reply, ScriptRef, StdinRef,
    Via,
};
pub use backend_ref::BackendRef;
pub use bytestring::ByteString;
pub use call::{Call, EnvVar, Input, Mode, OnExceed, Program, WorkspaceRef};
pub use consent::{Agreed, Consent};
pub use correlation::{Correlation, Vouched};
pub use docker::{DockerConfig, Pull, Ulimit};
pub use effect::{
    Deed, Effect, EffectCount, EffectKind, FileFacts, FileOp, FileRead, FileWrite, NetworkRequest,
    ProcessSpawn, Reported,
};
pub use error::{Blame, Code, Error, RequestId, Result, Retry, RuleRef, Stage};
pub use exec::{
    Artifact, Exec, Preview, ReceiptRef, Risk, RiskSignal, SHOWN_BYTES_MAX, Usage, Verdict,
};
pub use gate::{Confidence, FailureCode, GateResult, GateStatus, Recovery, Validation};
pub use glob::{ByteGlob, Glob};
pub use host::{HostPattern, HostPort, NamePattern, is_private_name, private_ending};
pub use id::{
    ApprovalId, ClientId, EnvKey, ExecId, GrantId, IdError, MessageId, ProjectId, SandboxId,
    SecretName, SnapshotId, SpaceId, TokenId, TokenName,
};
pub use isolation::{Evidence, Grade, Guarantee, Isolation};
pub use limits::{LimitField, LimitKind, LimitPair, LimitScope, LimitValue, Limits, PartialLimits};
pub use network::{Approach, Attempt, NetCode, Refused, Spoken, Traffic};
pub use page::Page;
pub use permit::{ApprovalMode, Permit, Reason, ReasonCode, ReasonKind, Ruling, Upgrade};
pub use pool::PoolConfig;
pub use profile::{
    Access, BackendName, Capped, LimitsDemand, NetworkMode, PartialProfile, Profile, SecurityMode,
    Tier,
};
pub use sandbox::{
    Lifetime, Placement, Published, Sandbox, SandboxConfig, SandboxSettings, SandboxState,
};
pub use secret::{Delivery, Secret, SecretGiven, SecretGrant, SecretUse};
pub use session::{SessionTerms, TerminalSize};
pub use settings::{Budget, Settings};
pub use simulation::{Failure, Fault, FaultPattern, PresetResponse, RateLimit, Simulation};
pub use skill::{SkillCall, SkillRef};
pub use status::Status;
pub use stream::Stream;
pub use strict::{Numbers, strict_json};
pub use token::{Role, Scope, Token};
pub use units::{Bytes, Count, Cpus, Millis, UnitError};
pub use unseen::{is_unseen, visible};
pub use webhook::{DeliveryState, WebhookDelivery, WebhookEvent, WebhookInfo};
pub use writes::{ChangeCount, Writes};
