//! Sandboxes that stand before their exec is known: what they show, what they keep apart, and
//! interpreters that wait in them.

mod bound;
mod interpreters;
mod limits;
mod node;
mod python;
mod refused;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        bound::an_exec_sees_its_directories_and_may_write_only_where_it_should,
        bound::what_one_exec_left_is_in_no_other_sandbox,
        bound::one_that_died_is_noticed_before_it_is_given_away,
        bound::its_places_cannot_be_exchanged_from_inside,
        bound::an_exec_and_a_sandbox_that_disagree_are_refused,
        bound::a_command_or_a_directory_that_is_missing_is_told,
        bound::canceled_it_ends,
        bound::one_that_is_not_needed_leaves_nothing,
        limits::memory_is_limited,
        limits::processes_are_limited,
        limits::time_is_counted_from_the_order,
        limits::nothing_from_before_is_counted,
        python::a_python_program_cannot_tell,
        python::what_acts_at_its_end_does,
        python::nobody_writes_after_its_end,
        python::its_own_modules_come_first,
        python::standard_input_is_as_ever,
        node::a_node_program_cannot_tell,
        interpreters::an_order_that_cannot_be_read_is_our_failure,
        interpreters::a_directory_that_is_missing_is_told,
        interpreters::one_that_died_is_noticed,
        interpreters::what_cannot_be_started_ahead_is_told,
        interpreters::its_channel_is_closed_before_the_program_runs,
    ];
    let user: &[Case] = cases![&[Caller::User], refused::an_ordinary_user_has_none,];
    [root, user].concat()
}
