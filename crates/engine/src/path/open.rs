//! Open: the intent is on disk before anything starts.

use glovebox_model::{
    Call, Code, Correlation, Error, Exec, Profile, Sandbox, SnapshotId, SpaceId, Status, Verdict,
};
use jiff::Timestamp;

use super::obtain::Approved;
use super::plan::Plan;

/// An approved plan whose intent is durable.
#[derive(Debug)]
pub(crate) struct Opened {
    approved: Approved,
    entry: glovebox_store::Opened,
    record: Exec,
}

impl Opened {
    /// The store has taken the plan's record; `entry` proves it.
    pub(crate) fn new(plan: Plan, entry: glovebox_store::Opened) -> Self {
        let (approved, record) = plan.into_parts();
        Self {
            approved,
            entry,
            record,
        }
    }

    pub(crate) fn profile(&self) -> &Profile {
        self.approved.assessed().profile()
    }

    pub(crate) fn ids(&self) -> &Correlation {
        &self.record.ids
    }

    pub(crate) fn space(&self) -> &SpaceId {
        &self.record.ids.space_id
    }

    pub(crate) fn call(&self) -> &Call {
        self.approved.assessed().call()
    }

    /// What whoever asked should know about where it runs, and the kept sandbox that it really is:
    /// one that stood may have been made otherwise.
    pub(crate) fn note(&mut self, notes: Vec<String>, kept: Option<Sandbox>) {
        self.record.notes = notes;
        if let Some(row) = kept {
            self.record.sandbox_id = Some(row.sandbox_id);
            self.record.backend = Some(row.config.backend);
            self.record.runtime = row.config.docker.and_then(|it| it.runtime);
            self.record.image = row.config.image;
        }
    }

    pub(crate) fn snapshot_before(&mut self, id: Option<SnapshotId>) {
        self.record.snapshot_before = id;
    }

    /// The end of something that was not to be run: the answer is the one that was given beforehand.
    pub(crate) fn mocked(self) -> (glovebox_store::Opened, Exec) {
        let call = self.approved.assessed().call();
        let given = call
            .simulation
            .as_ref()
            .and_then(|it| it.data.get("output"));
        let mut record = self.record;
        record.stdout = match given {
            None => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        record.stdout_bytes = record.stdout.len() as u64;
        record.status = Status::Succeeded;
        record.ended_at = Some(Timestamp::now());
        record.duration_ms = Some(0);
        record.verdict = Some(Verdict::Discard);
        (record.sandbox_id, record.backend) = (None, None);
        record
            .notes
            .push("policy was asked, and nothing was run".to_owned());
        (self.entry, record)
    }

    /// The end of something that could not be started after all.
    pub(crate) fn fail(self, error: Error) -> (glovebox_store::Opened, Exec) {
        (self.entry, failed(self.record, error))
    }

    pub(super) fn into_parts(self) -> (Approved, glovebox_store::Opened, Exec) {
        (self.approved, self.entry, self.record)
    }
}

/// The record of something that could not be started, and why.
pub(crate) fn failed(mut record: Exec, error: Error) -> Exec {
    record.status = match error.code {
        Code::Canceled => Status::Canceled,
        Code::Denied => Status::PolicyDenied,
        _ => Status::Error,
    };
    record.started_at = None;
    record.ended_at = Some(Timestamp::now());
    record.error = Some(error.of_exec(record.exec_id.clone()));
    record
}
