//! Judge: whether what happened is kept. A plain run worked on the workspace itself, so there is
//! nothing to hold back; what another wrote beside it is kept, held or discarded.

use glovebox_backend::TeardownGuard;
use glovebox_model::{Exec, Verdict};
use glovebox_workspace::Collected;

use super::collect::Captured;

#[derive(Debug)]
pub(crate) struct Judged {
    pub(super) entry: glovebox_store::Opened,
    pub(super) record: Exec,
    pub(super) collected: Option<Collected>,
    pub(super) remains: TeardownGuard,
}

/// `settle` decides about what it wrote, and carries that out.
pub(crate) fn judge(captured: Captured, settle: impl FnOnce(&mut Exec) -> Verdict) -> Judged {
    let Captured {
        entry,
        mut record,
        collected,
        remains,
    } = captured;
    record.verdict = Some(settle(&mut record));
    Judged {
        entry,
        record,
        collected,
        remains,
    }
}
