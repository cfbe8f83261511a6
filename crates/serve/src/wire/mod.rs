//! What goes over the wire, where it differs from the nouns of the model. The description in
//! `/openapi.json` is made from these types, and requests are checked against it.

mod amount;
mod approval;
mod call;
mod change;
mod confirmation;
mod exec;
mod file;
mod input;
mod legacy;
mod network;
mod overrides;
mod page;
mod program;
mod result;
mod sandbox;
mod secret;
mod skill;
mod snapshot;
mod task;
mod text;
mod workspace;

/// What is answered about workspaces, their files and their snapshots. The command line says the same
/// in the same words, whether it asks a server or looks for itself.
pub mod answer {
    pub use super::change::{
        ChangeSide, ChangeText, ChangeWhat, DecidedAnswer, WaitingAnswer, WaitingChange,
    };
    pub use super::file::{
        CopyAnswer, FileInfo, FileKind, GlobAnswer, GlobPath, Listing, Looked, ReplaceAnswer,
        SearchAnswer, SearchLine, SearchMatch, UnpackAnswer, WatchChange, WatchKind,
    };
    pub use super::network::NetworkPage;
    pub use super::result::{EffectPage, TaskResult};
    pub use super::skill::{InvalidSkill, SkillAnswer, SkillInfo, SkillList, SkillOrigin};
    pub use super::snapshot::{
        CollectAnswer, CollectedSpace, DiffAnswer, DiffChange, DiffEntry, DiffEntryKind, DiffKind,
        DiffText, ForkedWorkspace, HurtSnapshot, RestoreCounts, RestoredWorkspace,
        RolledBackWorkspace, SnapshotCounts, SnapshotInfo, SnapshotList, StoreDamage,
        TakenSnapshot, UndoneExec, VerifiedSpace, VerifyAnswer,
    };
    pub use super::workspace::{
        ResetAnswer, SeedAnswer, SkippedSeed, Workspace, WorkspaceName, Workspaces,
    };
}

pub(crate) use approval::ReplyRequest;
pub(crate) use call::{is_reserved, not_reserved};
pub(crate) use confirmation::{Confirmation, ConfirmationAnswer};
pub(crate) use exec::{ExecRequest, TaskRef};
use file::octal;
pub(crate) use file::{
    CopyRequest, GlobRequest, MkdirRequest, MoveRequest, ReplaceRequest, SearchRequest,
};
pub(crate) use legacy::LegacyExec;
pub(crate) use page::Page;
pub(crate) use sandbox::{KeptLifetime, RecreateRequest, SandboxRequest};
pub(crate) use secret::{SecretGrantRequest, SecretRequest};
pub(crate) use skill::SkillCallRequest;
pub(crate) use snapshot::{ForkRequest, RollbackRequest, SnapshotRequest, UndoRequest};
use text::{
    BackendText, Destination, EnvPattern, GuestDir, ImageName, InputPath, Plain, RuntimeName,
    SandboxName, Words,
};
pub(crate) use text::{Free, Id, Tags, ToolName};
pub(crate) use workspace::ResetRequest;
