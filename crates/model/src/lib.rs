//! The nouns that every other crate speaks: typed ids, units, limits, profiles, calls, the exec
//! record and errors. Nothing here touches a clock, a file or the network.

mod bytestring;
mod call;
mod correlation;
mod error;
mod exec;
mod id;
mod isolation;
mod limits;
mod profile;
#[cfg(feature = "openapi")]
mod schema;
mod settings;
mod status;
mod token;
mod units;

pub use bytestring::ByteString;
pub use call::{Call, EnvVar, Input, Mode, OnExceed, Program, WorkspaceRef};
pub use correlation::Correlation;
pub use error::{Blame, Code, Error, RequestId, Result, Retry, RuleRef, Stage};
pub use exec::{Artifact, Exec, Never, ReceiptRef, Risk, RiskSignal, Usage, Verdict};
pub use id::{
    ClientId, EnvKey, ExecId, IdError, ProjectId, SandboxId, SpaceId, TokenId, TokenName,
};
pub use isolation::{Evidence, Grade, Guarantee, Isolation};
pub use limits::{LimitKind, Limits, PartialLimits};
pub use profile::{
    Access, BackendName, Capped, HostPort, LimitsDemand, NetworkMode, PartialProfile, Profile,
    SecurityMode, Tier,
};
pub use settings::{Budget, Settings};
pub use status::Status;
pub use token::{Role, Scope, Token};
pub use units::{Bytes, Count, Cpus, Millis, UnitError};
