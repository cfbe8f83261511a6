//! Open: the intent is on disk before anything starts.

use glovebox_model::{Exec, Result};
use glovebox_store::{Owner, Store};

use super::obtain::Approved;

/// An approved plan whose intent is durable.
#[derive(Debug)]
pub(crate) struct Opened {
    approved: Approved,
    entry: glovebox_store::Opened,
    record: Exec,
}

impl Opened {
    pub(super) fn into_parts(self) -> (Approved, glovebox_store::Opened, Exec) {
        (self.approved, self.entry, self.record)
    }
}

pub(crate) fn open(
    store: &Store,
    owner: &Owner,
    approved: Approved,
    record: Exec,
) -> Result<Opened> {
    let entry = store.plan(owner.id(), &record)?;
    Ok(Opened {
        approved,
        entry,
        record,
    })
}
