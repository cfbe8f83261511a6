//! Judge: whether what happened is kept. A plain run worked on the workspace itself, so there is
//! nothing to hold back.

use glovebox_backend::Remains;
use glovebox_model::{Exec, Mode, Verdict};
use glovebox_workspace::Collected;

use super::collect::Captured;

#[derive(Debug)]
pub(crate) struct Judged {
    pub(super) entry: glovebox_store::Opened,
    pub(super) record: Exec,
    pub(super) collected: Option<Collected>,
    pub(super) remains: Remains,
}

pub(crate) fn judge(captured: Captured) -> Judged {
    let Captured {
        entry,
        mut record,
        collected,
        remains,
    } = captured;
    record.verdict = Some(match record.mode {
        Mode::Run => Verdict::Keep,
    });
    Judged {
        entry,
        record,
        collected,
        remains,
    }
}
