//! A workspace at a server.

use std::path::Path;

use glovebox_engine::{Present, SnapshotAsk};
use glovebox_model::{Code, Error, ExecId, ProjectId, Result, SnapshotId, Stage};
use glovebox_serve::answer::{
    DecidedAnswer, DiffAnswer, ForkedWorkspace, ResetAnswer, RestoredWorkspace,
    RolledBackWorkspace, SeedAnswer, SnapshotInfo, SnapshotList, TakenSnapshot, UndoneExec,
    WaitingAnswer, Workspace as WorkspaceInfo,
};
use glovebox_workspace::Reset;
use serde::Serialize;

use super::{LISTED, WORKSPACES, Workspace};
use crate::remote::{Remote, Target};

const EXECS: &str = "/v1/execs";

#[derive(Debug)]
pub(super) struct There {
    remote: Remote,
    project: ProjectId,
}

#[derive(Debug, Serialize)]
struct ResetRequest {
    inputs: bool,
    artifacts: bool,
}

#[derive(Debug, Serialize)]
struct UndoRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_id: Option<&'a ExecId>,
}

#[derive(Debug, Serialize)]
struct RollbackRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<&'a SnapshotId>,
}

#[derive(Debug, Serialize)]
struct ForkRequest<'a> {
    into: &'a ProjectId,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<&'a SnapshotId>,
}

#[derive(Debug, Serialize)]
struct SnapshotRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    live: bool,
}

impl There {
    pub(super) fn new(remote: Remote, project: ProjectId) -> Self {
        Self { remote, project }
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(super) fn target(&self) -> Target {
        Target::new(WORKSPACES).segment(self.project.as_str())
    }

    fn of_snapshot(&self, id: &SnapshotId) -> Target {
        self.target().segment("snapshots").segment(id.as_str())
    }

    fn of_exec(exec: &ExecId, verb: &str) -> Target {
        Target::new(EXECS).segment(exec.as_str()).segment(verb)
    }
}

impl Workspace for There {
    fn info(&self) -> Result<WorkspaceInfo> {
        self.remote.get(self.target())
    }

    fn seed(&self, from: Option<&Path>) -> Result<SeedAnswer> {
        if from.is_some() {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "a server seeds from its own template, not from a directory of this machine",
            )
            .hint("leave out `--from`, or send the directory: `glovebox file upload DIR`"));
        }
        self.remote.post_nothing(self.target().segment("seed"))
    }

    fn reset(&self, what: Reset) -> Result<ResetAnswer> {
        let body = ResetRequest {
            inputs: what.inputs,
            artifacts: what.artifacts,
        };
        self.remote
            .post_slowly(self.target().segment("reset"), &body)
    }

    fn undo(&self, exec: Option<&ExecId>, present: Present) -> Result<UndoneExec> {
        let body = UndoRequest { exec_id: exec };
        let target = self.target().segment("undo");
        self.remote.post_slowly(keeping(target, present), &body)
    }

    fn rollback(&self, to: Option<&SnapshotId>, present: Present) -> Result<RolledBackWorkspace> {
        let body = RollbackRequest { snapshot_id: to };
        let target = self.target().segment("rollback");
        self.remote.post_slowly(keeping(target, present), &body)
    }

    fn fork(&self, from: Option<&SnapshotId>, into: &ProjectId) -> Result<ForkedWorkspace> {
        let body = ForkRequest {
            into,
            snapshot_id: from,
        };
        self.remote
            .post_slowly(self.target().segment("fork"), &body)
    }

    fn changes(&self, exec: &ExecId) -> Result<WaitingAnswer> {
        self.remote.get_slowly(Self::of_exec(exec, "changes"))
    }

    fn keep(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.remote.post_nothing(Self::of_exec(exec, "keep"))
    }

    fn discard(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.remote.post_nothing(Self::of_exec(exec, "discard"))
    }

    fn apply(&self, exec: &ExecId) -> Result<DecidedAnswer> {
        self.remote.post_nothing(Self::of_exec(exec, "apply"))
    }

    fn take(&self, ask: SnapshotAsk) -> Result<TakenSnapshot> {
        let body = SnapshotRequest {
            label: ask.label,
            note: ask.note,
            live: ask.live,
        };
        self.remote
            .post_slowly(self.target().segment("snapshots"), &body)
    }

    fn snapshots(&self) -> Result<SnapshotList> {
        let target = self.target().segment("snapshots");
        self.remote.get(target.query("limit", LISTED))
    }

    fn snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        self.remote.get(self.of_snapshot(id))
    }

    fn diff(&self, from: Option<&SnapshotId>, to: Option<&SnapshotId>) -> Result<DiffAnswer> {
        let target = self
            .target()
            .segment("diff")
            .optional("from", from)
            .optional("to", to);
        self.remote.get_slowly(target)
    }

    fn restore(&self, id: &SnapshotId, present: Present) -> Result<RestoredWorkspace> {
        let target = self.of_snapshot(id).segment("restore");
        self.remote.post_nothing(keeping(target, present))
    }

    fn remove_snapshot(&self, id: &SnapshotId) -> Result<()> {
        self.remote.delete_quietly(self.of_snapshot(id))
    }
}

fn keeping(target: Target, present: Present) -> Target {
    match present {
        Present::Snapshot => target,
        Present::Lost => target.query("snapshot_before", "false"),
    }
}
