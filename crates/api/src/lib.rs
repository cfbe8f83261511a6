//! The requests and answers of the API that several crates speak in, declared once. The server's
//! description (`openapi.json`) is made from these types, requests are checked against it, and every
//! client sends and reads them.
//!
//! With the feature `client`: a [`Client`](client::Client) that sends them to a server, or to the
//! server's own router in the same process.

mod amount;
mod approval;
mod change;
#[cfg(feature = "client")]
pub mod client;
mod confirmation;
mod exec;
mod file;
mod input;
pub mod json;
mod legacy;
mod network;
mod of_call;
mod output;
mod overrides;
mod program;
mod replay;
mod result;
mod sandbox;
mod secret;
mod session;
mod settings;
mod skill;
mod snapshot;
mod target;
mod task;
mod text;
mod token;
mod webhook;
mod workspace;

pub use approval::{ReasonRequest, ReplyDecision, ReplyRequest};
pub use change::{ChangeSide, ChangeText, ChangeWhat, DecidedAnswer, WaitingAnswer, WaitingChange};
pub use confirmation::{Confirmation, ConfirmationAnswer, ConfirmationState, Meant};
pub use exec::{ExecRequest, TaskRef};
pub use file::{
    CopyAnswer, CopyRequest, FileInfo, FileKind, GlobAnswer, GlobPath, GlobRequest, Listing,
    Looked, MkdirRequest, MoveRequest, ReplaceAnswer, ReplaceRequest, SearchAnswer, SearchLine,
    SearchMatch, SearchRequest, UnpackAnswer, WatchChange, WatchKind,
};
pub use input::{InputFile, inputs};
pub use legacy::LegacyExec;
pub use network::NetworkPage;
pub use output::{OutputAnswer, OutputEncoding};
pub use overrides::{PolicyOverrides, destinations};
pub use program::{Asked, ExecSpec, ProgramSpec};
pub use replay::ReplayRequest;
pub use result::{EffectPage, TaskResult};
pub use sandbox::{KeptLifetime, RecreateRequest, SandboxRef, SandboxRequest, Sandboxes};
pub use secret::{SecretGrantRequest, SecretRequest, SecretValue};
pub use session::{
    SessionInfo, SessionInput, SessionList, SessionMessage, SessionOptions, SessionOutput,
    SessionPiece, SessionScreen, SessionSignal, SessionState, SessionStream,
};
pub use settings::SettingsAnswer;
pub use skill::{InvalidSkill, SkillAnswer, SkillCallRequest, SkillInfo, SkillList, SkillOrigin};
pub use snapshot::{
    CollectAnswer, CollectedSpace, DiffAnswer, DiffChange, DiffEntry, DiffEntryKind, DiffKind,
    DiffText, ForkRequest, ForkedWorkspace, HurtSnapshot, RestoreCounts, RestoredWorkspace,
    RollbackRequest, RolledBackWorkspace, SnapshotCounts, SnapshotInfo, SnapshotList,
    SnapshotRequest, StoreDamage, TakenSnapshot, UndoRequest, UndoneExec, VerifiedSpace,
    VerifyAnswer,
};
pub use target::Target;
pub use task::{SandboxTask, TaskTerms};
pub use text::{
    BackendText, Destination, EnvPattern, Free, GuestDir, Id, ImageName, InputPath, Plain,
    RuntimeName, SandboxName, Tags, ToolName, Words,
};
pub use token::{NewToken, TokenRequest};
pub use webhook::WebhookList;
pub use workspace::{
    ResetAnswer, ResetRequest, SeedAnswer, SkippedSeed, Workspace, WorkspaceName, Workspaces,
};

use glovebox_model::{Code, Error, Stage};

/// A request that has not the form that it must have.
fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

const fn yes() -> bool {
    true
}
