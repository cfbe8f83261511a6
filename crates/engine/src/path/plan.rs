//! A plan: what was approved, and the record it will have from its first moment on.

use glovebox_model::{Agreed, BackendName, Exec, Result, SandboxId, ScriptRef};
use glovebox_policy::Assessed;
use jiff::Timestamp;

use super::draft::{Draft, random};
use super::obtain::Approved;
use crate::backends::Chosen;
use crate::effects::Gated;
use crate::sandboxes::SandboxAssignment;

#[derive(Debug)]
pub(crate) struct Plan {
    draft: Draft,
    approved: Approved,
    /// As `running`.
    record: Exec,
    chosen: Chosen,
    assignment: Option<SandboxAssignment>,
    /// The scripts that it runs, as they were looked at.
    scripts: Vec<ScriptRef>,
    gated: Gated,
    /// A gate wants it run.
    of_gate: bool,
}

impl Plan {
    /// `assignment` is the kept sandbox that it runs in; without one it gets a sandbox of its own.
    pub(crate) fn new(
        draft: Draft,
        approved: Approved,
        chosen: Chosen,
        assignment: Option<SandboxAssignment>,
        scripts: Vec<ScriptRef>,
    ) -> Result<Self> {
        let sandbox_id = match &assignment {
            Some(assignment) => assignment.id.clone(),
            None => SandboxId::from_random(random()?),
        };
        let mut record = draft.planned(&approved, sandbox_id);
        record.backend = Some(chosen.backend);
        record.runtime.clone_from(&chosen.runtime);
        record.image.clone_from(&chosen.image);
        Ok(Self {
            draft,
            approved,
            record,
            chosen,
            assignment,
            scripts,
            gated: Gated::default(),
            of_gate: false,
        })
    }

    /// None: a gate wants it run, and nothing judges it.
    pub(crate) fn judged_by(mut self, gated: Option<Gated>) -> Self {
        self.of_gate = gated.is_none();
        self.gated = gated.unwrap_or_default();
        self
    }

    pub(crate) fn is_of_gate(&self) -> bool {
        self.of_gate
    }

    pub(crate) fn gated(&self) -> &Gated {
        &self.gated
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Whether the host's own programs are its root: only then can the caller's be shown beside.
    pub(crate) fn shows_the_host(&self) -> bool {
        self.chosen.backend == BackendName::Native
            && self.chosen.image.is_none()
            && self.assignment.is_none()
    }

    pub(crate) fn assignment(&self) -> Option<&SandboxAssignment> {
        self.assignment.as_ref()
    }

    pub(crate) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(crate) fn assessed(&self) -> &Assessed {
        self.approved.assessed()
    }

    /// What people have agreed to run must be what is run: `None` when nobody was asked.
    pub(crate) fn bound_scripts(&self) -> Option<&[ScriptRef]> {
        let asked = self.approved.consent().agreed == Agreed::People;
        asked.then_some(self.scripts.as_slice())
    }

    /// The workspace is to be kept as it is before this runs.
    pub(crate) fn keeps_before(&self) -> bool {
        self.approved.ruling().snapshot_before
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
