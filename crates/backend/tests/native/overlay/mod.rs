//! Execs on a layer over their workspace: what they see, what they cannot reach, what is left of them.

mod attacks;
pub(crate) mod ground;
mod over;
mod quota;
mod refused;
mod written;

use crate::harness::{self, Caller, Case};

pub(crate) fn cases() -> Vec<Case> {
    let root: &[Case] = cases![
        &[Caller::Root],
        written::files_keep_the_owner_of_the_workspace,
    ];
    let all: &[Case] = cases![
        written::the_workspace_stays_as_it_is_until_the_changes_are_kept,
        written::a_directory_is_moved_by_copying,
        written::a_large_file_and_one_with_holes_arrive,
        written::nothing_of_a_discarded_exec_is_left,
        written::two_execs_on_one_workspace_do_not_see_each_other,
        attacks::the_layer_is_seen_nowhere_else,
        attacks::rules_for_files_hold_on_a_layer,
        attacks::marks_of_the_kernel_cannot_be_forged,
        attacks::what_is_no_file_stays_behind,
        attacks::links_lead_nowhere,
        over::what_stands_before_a_name_stays_whatever_becomes_of_the_name,
        over::a_workspace_that_is_only_read_can_be_covered_too,
        quota::a_layer_on_disk_is_counted_and_its_workspace_is_not,
        quota::files_without_a_name_are_counted,
        quota::a_layer_in_memory_is_limited_by_the_kernel,
        quota::memory_is_graded_as_what_it_is,
        refused::a_workspace_that_may_not_be_written_has_no_layer,
        refused::what_the_kernel_cannot_do_is_told_and_nothing_runs,
    ];
    [root, all].concat()
}
