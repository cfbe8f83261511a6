//! Directories of the host's that an operator shows to sandboxes.

mod shown;

use crate::harness::{self, Case};

pub(crate) fn cases() -> Vec<Case> {
    let all: &[Case] = cases![
        shown::what_is_granted_for_reading_is_only_read,
        shown::what_is_granted_for_writing_is_written,
        shown::links_in_it_lead_nowhere_outside,
        shown::what_is_held_stays_what_was_checked,
    ];
    all.to_vec()
}
