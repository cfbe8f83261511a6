//! A plan: what was approved, and the record it will have from its first moment on.

use glovebox_model::{BackendName, Exec, Result, SandboxId};
use glovebox_policy::Assessed;
use jiff::Timestamp;

use super::draft::{Draft, random};
use super::obtain::Approved;

#[derive(Debug)]
pub(crate) struct Plan {
    draft: Draft,
    approved: Approved,
    /// As `running`.
    record: Exec,
}

impl Plan {
    pub(crate) fn new(draft: Draft, approved: Approved) -> Result<Self> {
        let sandbox_id = SandboxId::from_random(random()?);
        let mut record = draft.planned(approved.assessed(), sandbox_id);
        record.backend = Some(BackendName::Native);
        Ok(Self {
            draft,
            approved,
            record,
        })
    }

    pub(crate) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(crate) fn assessed(&self) -> &Assessed {
        self.approved.assessed()
    }

    pub(crate) fn record(&self) -> &Exec {
        &self.record
    }

    /// From now on it counts as running; when its program really started is known at its end.
    pub(crate) fn begin(&mut self) {
        self.record.started_at = Some(Timestamp::now());
    }

    pub(super) fn into_parts(self) -> (Approved, Exec) {
        (self.approved, self.record)
    }
}
