//! Open: the intent is on disk before anything starts.

use glovebox_model::{Exec, Result};
use glovebox_store::{Owner, Store};

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

    pub(super) fn into_parts(self) -> (Approved, glovebox_store::Opened, Exec) {
        (self.approved, self.entry, self.record)
    }
}

pub(crate) fn open(store: &Store, owner: &Owner, plan: Plan) -> Result<Opened> {
    let entry = store.plan(owner.id(), plan.record())?;
    Ok(Opened::new(plan, entry))
}
