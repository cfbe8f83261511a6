//! Many sandboxes of one process with threads, all at once.

mod together;

use crate::harness::{self, Case};

pub(crate) fn cases() -> Vec<Case> {
    let all: &[Case] = cases![
        together::a_hundred_run_at_once_and_leave_nothing,
        together::a_name_that_is_taken_is_refused_and_left_alone,
        together::without_its_spawner_nothing_more_is_started,
    ];
    all.to_vec()
}
