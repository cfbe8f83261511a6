//! Open: the intent is on disk before anything starts.

use glovebox_model::{Error, Exec, Input, Result, Status};
use glovebox_store::{Owner, Store};
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

    /// What goes in before it starts.
    pub(crate) fn inputs(&self) -> &[Input] {
        &self.approved.assessed().call().inputs
    }

    /// The end of something that could not be started after all.
    pub(crate) fn fail(self, error: Error) -> (glovebox_store::Opened, Exec) {
        let mut record = self.record;
        record.status = Status::Error;
        record.started_at = None;
        record.ended_at = Some(Timestamp::now());
        record.error = Some(error.of_exec(record.exec_id.clone()));
        (self.entry, record)
    }

    pub(super) fn into_parts(self) -> (Approved, glovebox_store::Opened, Exec) {
        (self.approved, self.entry, self.record)
    }
}

pub(crate) fn open(store: &Store, owner: &Owner, plan: Plan) -> Result<Opened> {
    let entry = store.plan(owner.id(), plan.record())?;
    Ok(Opened::new(plan, entry))
}
