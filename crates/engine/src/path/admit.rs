//! Admit: an opened exec gets its sandbox.

use glovebox_backend::Sandbox;
use glovebox_model::{Access, Exec};

use super::obtain::Approved;
use super::open::Opened;

/// A sandbox that is this exec's alone.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(super) approved: Approved,
    pub(super) entry: glovebox_store::Opened,
    pub(super) record: Exec,
    pub(super) sandbox: Box<dyn Sandbox>,
}

impl Lease {
    pub(crate) fn sees_workspace(&self) -> bool {
        self.approved.assessed().profile().workspace != Access::None
    }
}

pub(crate) fn admit(opened: Opened, sandbox: Box<dyn Sandbox>) -> Lease {
    let (approved, entry, record) = opened.into_parts();
    Lease {
        approved,
        entry,
        record,
        sandbox,
    }
}
